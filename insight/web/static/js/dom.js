// Elements without a library. Text is always text: nothing that came from a cluster is read as HTML.
const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "data") Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

/** Announce it to users of screen readers. */
export function announce(text) {
  const log = document.getElementById("announce");
  log.append(h("p", null, text));
  while (log.childNodes.length > 5) log.firstChild.remove();
}

/** `call` at most every `ms`, and once more after the last time it was asked for. */
export function throttled(call, ms) {
  let timer = null;
  let last = -Infinity;
  const run = () => { timer = null; last = performance.now(); call(); };
  const ask = () => { timer ??= setTimeout(run, Math.max(0, last + ms - performance.now())); };
  ask.cancel = () => { clearTimeout(timer); timer = null; };
  return ask;
}
