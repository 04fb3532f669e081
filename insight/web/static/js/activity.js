// What happened last, in all groups.
import { get, live } from "./api.js";
import { h, throttled } from "./dom.js";
import { capital, dateTime, plural, when } from "./format.js";
import { rebalanceTable } from "./list.js";
import { href } from "./router.js";
import { calm, nothing, trouble } from "./words.js";

const PAGE = 1000;
const KEPT_MAX = 20_000;

export function activityView(place, _parts, _query, signal) {
  let rows = [];
  let more = true;
  let loading = false;
  const known = new Set();
  const count = h("p", { class: "muted", role: "status" });
  const happened = h("ul", { class: "card happened", hidden: true });
  const table = rebalanceTable({
    withGroup: true, signal, end: () => load(),
    empty: () => (loading ? nothing("Reading …") : nothing("Nothing rebalanced yet", "As soon as a member of any group joins, leaves or is lost, it is here with the cause.")),
  });

  async function load() {
    if (loading || !more || rows.length >= KEPT_MAX) return;
    loading = true;
    try {
      const answer = await get("rebalances", { limit: PAGE, until: rows.at(-1)?.at_ms }, signal);
      calm(place);
      const fresh = answer.rebalances.filter((row) => !known.has(row.id));
      more = answer.more && fresh.length > 0;
      add(rows.concat(fresh), fresh);
    } catch (error) { trouble(place, error); } finally { loading = false; }
    show();
  }

  function add(all, fresh) {
    fresh.forEach((row) => known.add(row.id));
    rows = all;
  }

  const show = () => { table.set(rows); count.textContent = rows.length ? `${plural(rows.length, "rebalance")}${more ? ", older ones when you scroll" : ""}` : ""; };
  const soon = throttled(show, 300);
  signal.addEventListener("abort", soon.cancel);

  live.on("rebalance", (row) => {
    if (known.has(row.id)) rows = rows.map((one) => (one.id === row.id ? row : one));
    else { add([row, ...rows].sort((a, b) => b.at_ms - a.at_ms), [row]); }
    soon();
  }, signal);

  async function events() {
    try {
      const found = (await get("events", { since: Date.now() - 24 * 3_600_000 }, signal)).events.slice(0, 8);
      happened.hidden = !found.length;
      happened.replaceChildren(...found.map(eventItem));
    } catch (error) { trouble(place, error); }
  }
  live.on("event", throttled(events, 1000), signal);

  place.append(h("div", { class: "head" }, h("h1", null, "Activity"), count), happened, table.element);
  show();
  load();
  events();
  return { title: "Activity" };
}

export function eventItem(event) {
  return h("li", null, h("time", { class: "muted number", datetime: new Date(event.at_ms).toISOString(), title: dateTime(event.at_ms) }, when(event.at_ms, Date.now())),
    h("span", null, h("strong", null, capital(event.kind)), event.group ? [" · ", h("a", { href: href(["group", event.group]) }, event.group)] : null, h("span", { class: "second" }, event.text)));
}
