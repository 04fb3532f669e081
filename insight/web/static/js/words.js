// Chips and short sentences that several views have.
import { h } from "./dom.js";
import { causeWords, family } from "./format.js";

export const causeChip = (cause) => h("span", { class: "cause", data: { family: family(cause) } }, h("span", null, causeWords(cause)));
export const stateChip = (state) => h("span", { class: "state", data: { state } }, state);

export function who(row) {
  const [first, second, ...others] = new Set(row.cause_names);
  if (!first) return "";
  return others.length ? `${first}, ${second} and ${others.length} more` : second ? `${first}, ${second}` : first;
}

export function nothing(title, ...text) {
  return h("div", null, h("strong", null, title), ...text);
}

export function trouble(place, error) {
  if (error.name === "AbortError") return;
  place.querySelector(":scope > .trouble")?.remove();
  place.prepend(h("p", { class: "trouble", role: "alert" }, error.message));
}

export const calm = (place) => place.querySelector(":scope > .trouble")?.remove();
