// Questions to the server, and what it tells by itself.
import { h } from "./dom.js";
import { chosen } from "./router.js";

export class Refused extends Error {
  constructor(status, sentence) { super(sentence); this.status = status; }
}

/** The answer as JSON, from the cluster that is shown. Throws Refused with a sentence for people; asks for the token where one is needed. */
export const get = (name, params = {}, signal = undefined) => ask(name, params, { signal });

/** The same, for what changes something. */
export const post = (name, body) => ask(name, {}, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

async function ask(name, params, options) {
  const asked = new URLSearchParams();
  for (const [key, value] of Object.entries({ cluster: chosen(), ...params })) if (value !== null && value !== undefined && value !== "") asked.set(key, value);
  const query = asked.size ? `?${asked}` : "";
  for (;;) {
    let answer;
    try {
      answer = await fetch(`/api/${name}${query}`, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refused(0, "The page's server does not answer. It goes on by itself when it does.");
    }
    if (answer.ok) return answer.json();
    if (answer.status === 401) { await signIn(FOR_PAGE); continue; }
    const body = await answer.json().catch(() => ({}));
    throw new Refused(answer.status, body.error ?? `The server answered ${answer.status}.`);
  }
}

const FOR_PAGE = "This page asks for the token that it was started with (--token-file).";
let asking = null;
/** Ask for a token until it is right; `why`: a sentence. With `optional` the dialog can be closed: then the answer is false. */
export function signIn(why, optional = false) {
  asking ??= askForToken(why, optional).finally(() => { asking = null; });
  return asking;
}

function askForToken(why, optional) {
  return new Promise((resolve) => {
    const input = h("input", { type: "password", autocomplete: "current-password", required: true, id: "token" });
    const wrong = h("p", { role: "alert", class: "small" });
    const form = h("form", { onsubmit: async (event) => {
      event.preventDefault();
      const answer = await fetch("/api/session", { method: "POST", body: input.value }).catch(() => null);
      if (answer?.ok) { end(true); return; }
      wrong.textContent = answer?.status === 401 ? "That is not the token." : "The server does not answer: try again.";
      input.select();
    } },
    h("h2", { id: "token-title" }, "Sign in"),
    h("p", { class: "muted" }, why),
    h("label", null, "Token", input), wrong, h("button", { class: "primary", type: "submit" }, "Sign in"),
    optional ? h("button", { type: "button", onclick: () => end(false) }, "Cancel") : null);
    const dialog = h("dialog", { "aria-labelledby": "token-title", oncancel: (event) => { event.preventDefault(); if (optional) end(false); } }, form);
    const end = (done) => { dialog.close(); dialog.remove(); resolve(done); };
    document.body.append(dialog);
    dialog.showModal();
  });
}

const KINDS = ["hello", "reload", "cluster", "rebalance", "group", "event"];
const AGAIN_MS = 3000;

/** Server-sent events as DOM events of this object: hello, reload, cluster, rebalance, group, event; and `status`. */
class Live extends EventTarget {
  /** Tell of `cluster` from now on, and of no other; null: of none. */
  start(cluster) {
    this.source?.close();
    clearTimeout(this.again);
    this.source = null;
    if (cluster === null) return;
    this.source = new EventSource(`/api/live${cluster ? `?${new URLSearchParams({ cluster })}` : ""}`);
    for (const kind of KINDS) this.source.addEventListener(kind, (event) => this.tell(kind, JSON.parse(event.data)));
    this.source.addEventListener("open", () => {
      if (this.lost) this.tell("reload", {});
      this.lost = false;
      this.tell("status", "live");
    });
    this.source.addEventListener("error", () => {
      this.tell("status", "off");
      if (this.source.readyState !== EventSource.CLOSED) return;
      // It was refused: it does not try again by itself.
      this.lost = true;
      this.again = setTimeout(() => this.start(cluster), AGAIN_MS);
    });
  }

  tell(kind, detail) { this.dispatchEvent(new CustomEvent(kind, { detail })); }

  /** Listen until `signal` ends. */
  on(kind, call, signal) { this.addEventListener(kind, (event) => call(event.detail), { signal }); }
}

export const live = new Live();
