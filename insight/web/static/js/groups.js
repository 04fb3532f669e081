// All groups: state, members, lag, how often they rebalanced.
import { get, live } from "./api.js";
import { h, svg, throttled } from "./dom.js";
import { ago, dateTime, duration, number, plural, short, unowned } from "./format.js";
import { amend, href } from "./router.js";
import { Table } from "./table.js";
import { calm, causeChip, nothing, stateChip, trouble } from "./words.js";

const AGAIN_MS = 15_000;
const BEHIND_MS = 60_000;
const SPARK = 32, SPARK_STEP = 6;
const MOVING = ["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"];
/** Trouble first: groups that move, then those that are behind, then those whose partitions had no owner for longest. */
const urgency = (row) => (MOVING.includes(row.state) ? 4e15 : 0) + ((row.lag_ms ?? 0) >= BEHIND_MS ? 2e15 : 0) + (row.unowned_ms ?? 0);

export function groupsView(place, _parts, query, signal) {
  let rows = [];
  let now = Date.now();
  let read = false;
  let since = null;
  const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter groups by name", value: query.get("q") ?? "", oninput: () => { amend({ q: filter.value }); show(); } });
  const count = h("p", { class: "muted", role: "status" });
  const open = (row) => href(["group", row.group]);
  const table = new Table({
    label: "Groups",
    signal,
    key: (row) => row.group,
    sort: query.get("sort") ? query.get("sort").split(" ").map((word, index) => (index ? word === "down" : word)) : ["state", true],
    onsort: (id, descending) => amend({ sort: `${id} ${descending ? "down" : "up"}` }),
    columns: [
      { id: "group", title: "Group", sort: (row) => row.group, cell: (row) => [
        h("a", { href: open(row) }, row.group),
        h("span", { class: "second only-narrow" }, row.state === "Stable" ? plural(row.members, "member") : row.state),
        row.kind === "classic" ? null : h("span", { class: "second hide-narrow" }, `${row.kind} protocol`)] },
      { id: "state", title: "State", descending: true, sort: urgency, class: "hide-narrow", cell: (row) => stateChip(row.state) },
      { id: "members", title: "Members", descending: true, class: "right hide-narrow", sort: (row) => row.members, cell: (row) => [number(row.members), row.idle ? h("span", { class: "second" }, `${row.idle} idle`) : null] },
      { id: "lag", title: "Lag", descending: true, class: "right short", sort: (row) => row.lag, cell: lagCell },
      { id: "rebalances", title: "Rebalances, 24 h", descending: true, class: "hide-narrow", sort: (row) => sum(row.hours), cell: spark },
      { id: "unowned", title: "Without owner, 24 h", descending: true, class: "right hide-medium", sort: (row) => row.unowned_ms, cell: (row) => (row.unowned_ms ? unowned(row.unowned_ms) : h("span", { class: "muted" }, "none")) },
      { id: "last", title: "Last rebalance", descending: true, class: "", sort: (row) => row.last?.at_ms ?? null, cell: lastCell },
    ],
    empty: () => (rows.length
      ? nothing(`No group matches “${filter.value}”`, h("button", { type: "button", onclick: () => { filter.value = ""; amend({ q: null }); show(); filter.focus(); } }, "Show all groups"))
      : read
        ? nothing("No group has been seen yet", "A group shows up as soon as a consumer of it joins or commits. To read what the cluster still knows: ", h("br"), h("code", null, "ringleader watch --from-start"))
        : nothing("Reading the groups …")),
  });

  function lagCell(row) {
    if (row.lag === null) return h("span", { class: "muted" }, "–", h("span", { class: "visually-hidden" }, "not measured"));
    return [short(row.lag), row.lag ? h("span", { class: "second" }, `${row.lag_at_least ? "over " : ""}${duration(row.lag_ms)}`, h("span", { class: "hide-narrow-inline" }, " behind")) : null];
  }

  function spark(row) {
    const total = sum(row.hours);
    const most = Math.max(...row.hours, 4);
    const causes = Object.entries(row.causes).map(([cause, times]) => `${times} × ${cause}`).join(", ");
    const text = total ? `${total} in 24 h, ${row.hours.at(-1)} in the last hour: ${causes}` : "None in 24 h";
    return svg("svg", { class: "spark", viewBox: `0 0 ${row.hours.length * SPARK_STEP} ${SPARK}`, role: "img", "aria-label": text }, svg("title", null, text),
      row.hours.map((times, index) => {
        const height = times ? Math.max(4, (times / most) * SPARK) : 2;
        return svg("rect", { x: index * SPARK_STEP, y: SPARK - height, width: SPARK_STEP - 1, height, class: times ? "some" : null });
      }));
  }

  function lastCell(row) {
    if (!row.last) return (since === null ? h("span", { class: "muted" }, "none known") : h("span", { class: "muted", title: `Since ${dateTime(since)}, when this history begins` }, `none in ${duration(now - since)}`));
    return [causeChip(row.last.cause), h("span", { class: "second", title: dateTime(row.last.at_ms) }, ago(row.last.at_ms, now))];
  }

  function show() {
    const wanted = filter.value.trim().toLowerCase();
    const found = rows.filter((row) => row.group.toLowerCase().includes(wanted));
    count.textContent = read ? (wanted ? `${number(found.length)} of ${plural(rows.length, "group")}` : plural(rows.length, "group")) : "";
    table.set(found);
  }

  async function load() {
    try {
      const answer = await get("groups", {}, signal);
      calm(place);
      rows = answer.groups;
      now = answer.now_ms;
      since = answer.oldest_ms;
      read = true;
      show();
    } catch (error) { trouble(place, error); }
  }

  const again = throttled(load, 2000);
  signal.addEventListener("abort", again.cancel);
  live.on("rebalance", again, signal);
  live.on("group", (row) => {
    const index = rows.findIndex((one) => one.group === row.group);
    if (row.state === "Dead") { if (index >= 0) rows.splice(index, 1); } else if (index >= 0) rows[index] = row; else rows.push(row);
    rows = [...rows];
    soon();
  }, signal);
  const soon = throttled(show, 500);
  signal.addEventListener("abort", soon.cancel);
  const timer = setInterval(load, AGAIN_MS);
  signal.addEventListener("abort", () => clearInterval(timer));

  place.append(h("div", { class: "head" }, h("h1", null, "Groups"), count, h("div", { class: "tools" }, filter)), table.element);
  show();
  load();
  return { title: "Groups" };
}

const sum = (numbers) => numbers.reduce((one, other) => one + other, 0);
