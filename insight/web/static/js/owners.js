// Who owned a partition at a moment, and what was committed then.
import { get } from "./api.js";
import { h } from "./dom.js";
import { dateTime, duration, number } from "./format.js";
import { amend, href } from "./router.js";
import { settings } from "./settings.js";
import { calm, nothing, trouble } from "./words.js";

const pad = (value) => String(value).padStart(2, "0");

export function asInput(ms) {
  const at = new Date(ms);
  return settings.utc
    ? at.toISOString().slice(0, 19)
    : `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
}

export const asTime = (text) => new Date(settings.utc ? `${text}Z` : text).getTime();

export function ownersView(place, _parts, query, signal) {
  const topic = h("input", { required: true, autocomplete: "off", spellcheck: "false", value: query.get("topic") ?? "" });
  const partition = h("input", { required: true, type: "number", min: "0", step: "1", value: query.get("partition") ?? "0" });
  const at = h("input", { required: true, type: "datetime-local", step: "1", value: asInput(Number(query.get("at")) || Date.now()) });
  const answer = h("div", { "aria-live": "polite" });

  async function ask() {
    const asked = { topic: topic.value.trim(), partition: partition.value, at: asTime(at.value) };
    amend(asked);
    try {
      const found = await get("owners", asked, signal);
      calm(place);
      answer.replaceChildren(...(found.owners.length ? found.owners.map((one) => owner(one, found)) : [nobody(found)]));
    } catch (error) { trouble(place, error); }
  }

  const form = h("form", { class: "card ask", onsubmit: (event) => { event.preventDefault(); ask(); } },
    h("label", null, "Topic", topic), h("label", null, "Partition", partition), h("label", null, settings.utc ? "Time (UTC)" : "Time (here)", at),
    h("button", { class: "primary", type: "submit" }, "Who owned it?"));
  place.append(h("div", { class: "head" }, h("h1", null, "Who owned it?")), form, answer);
  if (query.get("topic")) ask();
  else answer.append(h("div", { class: "empty" }, nothing("Ask for a partition and a time", "The answer names its owner in every group, and the offset that was committed then: to know whose record it was, or to undo a reset.")));
  return { title: "Who owned it?" };
}

function owner(one, asked) {
  const until = one.until_ms === null ? "until now" : `until ${dateTime(one.until_ms)} (${duration(one.until_ms - one.since_ms)})`;
  const margin = 30 * 60_000;
  return h("div", { class: "card answer" },
    h("h2", null, one.member?.name ?? one.member_id),
    h("p", null, "of ", h("a", { href: href(["group", one.group], { from: asked.at_ms - margin, to: asked.at_ms + margin, lanes: "partition" }) }, one.group), " had ", h("strong", null, `${asked.topic}:${asked.partition}`), ` from ${dateTime(one.since_ms)} ${until}.`),
    h("p", null, one.offset === null ? "Nothing had been committed there." : ["Committed then: offset ", h("strong", { class: "number" }, number(one.offset)), `, at ${dateTime(one.committed_ms)}.`]),
    h("p", { class: "muted small mono" }, one.member_id),
    h("p", null, h("a", { href: href(["rebalance", one.rebalance_id]) }, "The rebalance that gave it")));
}

function nobody(asked) {
  return h("div", { class: "card empty" }, nothing(`Nobody owned ${asked.topic}:${asked.partition} at ${dateTime(asked.at_ms)}`, "No group that was watched had it then. Check the topic's name, or choose a time that the history covers."));
}
