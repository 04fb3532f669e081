// Rebalances as a table: of one group, or of all.
import { h } from "./dom.js";
import { dateTime, duration, number, plural, sure, unowned, when } from "./format.js";
import { href } from "./router.js";
import { Table } from "./table.js";
import { causeChip, who } from "./words.js";

const change = (row) => [row.joined && `+${row.joined}`, row.left && `−${row.left}`].filter(Boolean).join(" ");

export function rebalanceTable({ withGroup = false, open, empty, end, signal }) {
  const link = (row) => (withGroup ? href(["rebalance", row.id]) : href(["group", row.group], { ...Object.fromEntries(new URLSearchParams(location.hash.split("?")[1] ?? "")), rebalance: row.id }));
  const time = (row) => h("a", {
    href: link(row), class: "number", title: dateTime(row.at_ms), data: { rebalance: row.id },
    onclick: open && ((event) => { if (!event.ctrlKey && !event.metaKey) { event.preventDefault(); open(row.id, event.currentTarget); } }),
  }, when(row.at_ms, Date.now()));
  return new Table({
    label: "Rebalances",
    signal,
    key: (row) => row.id,
    end,
    empty,
    columns: [
      { id: "at", title: "Ended", class: "short", cell: (row) => [time(row), h("span", { class: "second only-narrow" }, withGroup ? row.group : duration(row.duration_ms))] },
      withGroup && { id: "group", title: "Group", class: "hide-narrow", cell: (row) => h("a", { href: href(["group", row.group]) }, row.group) },
      { id: "cause", title: "Cause", cell: (row) => [causeChip(row.cause), h("span", { class: "second", title: sure(row.confidence) }, [row.confidence !== "unknown" && row.confidence, who(row)].filter(Boolean).join(" · "))] },
      { id: "members", title: "Members", class: "right hide-narrow", cell: (row) => [number(row.members), change(row) && h("span", { class: "second" }, change(row))] },
      { id: "took", title: "Took", class: "right hide-narrow", cell: (row) => (row.duration_ms === null ? h("span", { class: "muted", title: "Nothing showed when it began" }, "not known") : duration(row.duration_ms)) },
      { id: "moved", title: "Moved", class: "right hide-medium", cell: (row) => (row.moved ? plural(row.moved, "partition") : h("span", { class: "muted" }, "none")) },
      { id: "unowned", title: "Without owner", class: "right hide-narrow", cell: (row) => (row.unowned_ms === 0 ? h("span", { class: "muted" }, "none") : unowned(row.unowned_ms)) },
      { id: "generation", title: "Generation", class: "right hide-medium", cell: (row) => number(row.generation) },
    ].filter(Boolean),
  });
}
