// Where a group is to read on: the plan is shown first, and nothing else is carried out.
import { get, post, signIn } from "./api.js";
import { announce, h } from "./dom.js";
import { number, plural } from "./format.js";
import { asInput, asTime } from "./owners.js";
import { settings } from "./settings.js";
import { plainTable } from "./table.js";

const ROWS_MAX = 500;
const WAYS = [
  ["to-earliest", "The first record"], ["to-latest", "The end"], ["to-datetime", "A time"],
  ["by-duration", "A time ago"], ["to-offset", "An offset"], ["shift-by", "A number of records on or back"],
];
/** Of the ways that take a value: what it is called, and its field. */
const VALUES = {
  "to-datetime": () => [settings.utc ? "Time (UTC)" : "Time (here)", { type: "datetime-local", step: "1", value: asInput(Date.now() - 3_600_000) }],
  "by-duration": () => ["How long: 1h, 30m, 7d", { type: "text", value: "1h", autocomplete: "off" }],
  "to-offset": () => ["Offset", { type: "number", min: "0", step: "1", value: "0" }],
  "shift-by": () => ["How many; back with a minus", { type: "number", step: "1", value: "-100" }],
};

/** The part of a group's view, closed at first; hidden until the page says that offsets can be reset on it. */
export function resetPart(group, signal) {
  const body = h("div", { class: "reset" });
  const part = h("details", { ontoggle: () => { if (part.open) look(); } }, h("summary", null, "Reset offsets"), body);
  const wrong = (error) => { if (error.name !== "AbortError") body.replaceChildren(h("p", { role: "alert" }, error.message)); };

  async function look() {
    body.replaceChildren(h("p", { class: "muted" }, "Asking the cluster …"));
    try {
      const { may_reset: may } = await get("session", {}, signal);
      if (may) show(await get("reset", { group }, signal)); else locked();
    } catch (error) { wrong(error); }
  }

  function locked() {
    const ask = async () => { if (await signIn("Resets of offsets have a token of their own (--reset-token-file).", true)) look(); };
    body.replaceChildren(h("p", null, "Offsets are reset with a token of its own."), h("button", { type: "button", onclick: ask }, "Sign in to reset offsets"));
  }

  function show({ refused, topics }) {
    const topic = h("input", { required: true, autocomplete: "off", spellcheck: "false", list: "reset-topics", value: topics[0] ?? "" });
    const to = h("select", { "aria-label": "Where to", onchange: () => fill() }, WAYS.map(([value, text]) => new Option(text, value)));
    const place = h("span", { class: "reset-value" });
    const answer = h("div", { "aria-live": "polite" });
    let value = null;
    const fill = () => {
      const [text, props] = VALUES[to.value]?.() ?? [];
      value = text ? h("input", { required: true, ...props }) : null;
      place.replaceChildren(...(value ? [h("label", null, text, value)] : []));
      answer.replaceChildren();
    };
    const form = h("form", { class: "ask", oninput: () => answer.replaceChildren(), onsubmit: (event) => {
      event.preventDefault();
      const given = value && (to.value === "to-datetime" ? new Date(asTime(value.value)).toISOString() : value.value.trim());
      plan({ group, topic: topic.value.trim(), to: to.value, value: given }, answer);
    } },
    h("label", null, "Topic", topic, h("datalist", { id: "reset-topics" }, topics.map((one) => h("option", { value: one })))),
    h("label", null, "Where to", to), place, h("button", { type: "submit" }, "Show the plan"));
    body.replaceChildren(...[refused && h("p", { role: "alert" }, refused), form, answer].filter(Boolean));
    fill();
  }

  async function plan(asked, answer) {
    const said = (error) => { if (error.name !== "AbortError") answer.replaceChildren(h("p", { role: "alert" }, error.message)); };
    try {
      const made = await get("reset", asked, signal);
      const set = h("button", { class: "primary", type: "button", disabled: Boolean(made.refused) }, `Set ${plural(made.offsets.length, "offset")}`);
      set.addEventListener("click", async () => {
        set.disabled = true;
        try {
          const done = await post("reset", { plan: made.plan });
          const text = `${plural(done.offsets.length, "offset")} of ${group} ${done.offsets.length === 1 ? "is" : "are"} set.`;
          answer.replaceChildren(h("p", null, text), changes(done.offsets));
          announce(text);
        } catch (error) { said(error); }
      });
      answer.replaceChildren(...[changes(made.offsets), h("p", null, sum(made.offsets)), made.refused && h("p", { role: "alert" }, made.refused), set].filter(Boolean));
    } catch (error) { said(error); }
  }
  const section = h("section", { hidden: true }, h("div", { class: "card" }, part));
  get("session", {}, signal).then(({ resets }) => { section.hidden = !resets; }, () => { /* the view says why */ });
  return section;
}

function sum(offsets) {
  const of = (name) => offsets.reduce((all, one) => all + (one[name] ?? 0), 0);
  return `${plural(of("skipped"), "record")} would be skipped, ${plural(of("repeated"), "record")} read again. Nothing has changed yet.`;
}

function changes(offsets) {
  const shown = offsets.slice(0, ROWS_MAX);
  return h("div", null, plainTable("Offsets", ["Partition", "From", "To", "Skipped", "Read again", "Note"],
    shown.map((one) => [`${one.topic}:${one.partition}`, number(one.committed), number(one.offset), number(one.skipped), number(one.repeated), one.note])),
  offsets.length > ROWS_MAX ? h("p", { class: "muted" }, `The first ${ROWS_MAX} of ${number(offsets.length)} partitions; all are set.`) : null);
}
