// All clusters of the page, where it has several: which answers, and what its groups do.
import { get } from "./api.js";
import { h } from "./dom.js";
import { dateTime, duration, number, plural, short } from "./format.js";
import { href } from "./router.js";
import { Table } from "./table.js";
import { calm, nothing, trouble } from "./words.js";

const AGAIN_MS = 5_000;

export const readClusters = (signal = undefined) => get("clusters", { cluster: null }, signal);
/** One that does not answer before those whose groups move, then those that are behind. */
const urgency = (row) => (row.why ? 4e15 : 0) + (row.moving ? 2e15 : 0) + (row.lag_ms ?? 0);

export function clustersView(place, _parts, _query, signal) {
  const count = h("p", { class: "muted", role: "status" });
  const table = new Table({
    label: "Clusters",
    signal,
    key: (row) => row.name,
    sort: ["state", true],
    columns: [
      { id: "name", title: "Cluster", sort: (row) => row.name, cell: (row) => [h("a", { href: href([], { cluster: row.name }) }, row.name), row.cluster === row.name ? null : h("span", { class: "second hide-narrow" }, row.cluster)] },
      { id: "state", title: "State", descending: true, sort: urgency, cell: stateCell },
      { id: "groups", title: "Groups", descending: true, class: "right hide-narrow", sort: (row) => row.groups, cell: (row) => [number(row.groups), row.moving ? h("span", { class: "second" }, `${number(row.moving)} rebalancing`) : null] },
      { id: "members", title: "Members", descending: true, class: "right hide-narrow", sort: (row) => row.members, cell: (row) => number(row.members) },
      { id: "lag", title: "Lag", descending: true, class: "right short", sort: (row) => row.lag, cell: (row) => (row.lag === null ? h("span", { class: "muted" }, "–", h("span", { class: "visually-hidden" }, "not measured")) : [short(row.lag), row.lag ? h("span", { class: "second" }, duration(row.lag_ms), h("span", { class: "hide-narrow-inline" }, " behind at most")) : null]) },
      { id: "rebalances", title: "Rebalances, 24 h", descending: true, class: "right hide-narrow", sort: (row) => row.rebalances, cell: (row) => number(row.rebalances) },
    ],
    empty: () => nothing("Reading the clusters …"),
  });

  async function load() {
    try {
      const { clusters } = await readClusters(signal);
      calm(place);
      count.textContent = plural(clusters.length, "cluster");
      table.set(clusters);
    } catch (error) { trouble(place, error); }
  }

  const timer = setInterval(load, AGAIN_MS);
  signal.addEventListener("abort", () => clearInterval(timer));
  place.append(h("div", { class: "head" }, h("h1", null, "Clusters"), count), table.element);
  table.set([]);
  load();
  return { title: "Clusters" };
}

function stateCell(row) {
  const state = row.away ? "Away" : row.why ? "Not read" : "Answers";
  const since = row.away ? `since ${dateTime(row.away.since_ms)}` : row.why;
  return [h("span", { class: "state", data: { state: row.why ? "away" : "Stable" }, title: row.why }, state), since && h("span", { class: "second" }, since)];
}
