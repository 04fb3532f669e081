// Which view is shown; the frame around it.
import { activityView } from "./activity.js";
import { get, live } from "./api.js";
import { clustersView, readClusters } from "./clusters.js";
import { announce, h } from "./dom.js";
import { capital, causeWords, dateTime } from "./format.js";
import { groupView } from "./group.js";
import { groupsView } from "./groups.js";
import { ownersView } from "./owners.js";
import { chosen, here, href } from "./router.js";
import { setUp } from "./settings.js";

const main = document.getElementById("main");
let leave = new AbortController();
let shown = null;
let several = null;
/** The cluster whose changes are listened to; undefined: not yet. */
let listening;
const AGAIN_MS = 5_000;

function show(afresh = false) {
  const { parts, query } = here();
  const key = JSON.stringify([several ? chosen() : "", parts]);
  if (!afresh && shown?.key === key && shown.view.moved) { shown.view.moved(query); return; }
  leave.abort();
  leave = new AbortController();
  main.replaceChildren();
  document.querySelectorAll(".drawer").forEach((drawer) => drawer.remove());
  const all = several && !chosen();
  const [name = "groups", ...rest] = all ? ["clusters"] : parts;
  frame(all);
  const makes = { clusters: clustersView, groups: groupsView, group: groupView, activity: activityView, owners: ownersView, rebalance: rebalanceView };
  const view = (makes[name] ?? nothingView)(main, rest, query, leave.signal) ?? {};
  document.title = view.title ? `${view.title} – Ringleader` : "Ringleader";
  for (const link of document.querySelectorAll("[data-view]")) {
    const current = link.dataset.view === (name === "group" ? "groups" : name);
    if (current) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const first = shown === null;
  shown = { key, view };
  if (!first && !afresh) { scrollTo(0, 0); main.focus({ preventScroll: true }); announce(view.title ?? "Groups"); }
}

/** The link of a rebalance alone leads to it in its group. */
function rebalanceView(place, [id], _query, signal) {
  get("rebalance", { id }, signal).then((one) => {
    const margin = 10 * 60_000;
    const from = (one.began_ms ?? one.at_ms) - margin;
    location.replace(href(["group", one.group], { from, to: one.at_ms + margin, rebalance: id }));
  }, (error) => {
    if (error.name !== "AbortError") place.append(h("p", { class: "card empty" }, h("strong", null, "Not there"), error.message));
  });
  return { title: "Rebalance" };
}

function nothingView(place) {
  place.append(h("p", { class: "card empty" }, h("strong", null, "There is no such page"), h("a", { href: href([]) }, "All groups")));
  return { title: "Not there" };
}

/** What stands around the view: links and the cluster; and the listening to its changes. */
function frame(all) {
  for (const link of document.querySelectorAll("[data-view]")) {
    link.href = href(link.dataset.view === "groups" ? [] : [link.dataset.view]);
    link.hidden = all;
  }
  document.querySelector(".brand").href = href([], { cluster: "" });
  document.getElementById("choice").value = chosen();
  const wanted = all ? null : several ? chosen() : "";
  if (several === null || wanted === listening) return;
  listening = wanted;
  document.getElementById("live").hidden = all;
  showStatus({ server: "", cluster: { away: null } });
  cluster();
  live.start(wanted);
}

async function cluster() {
  const place = document.getElementById("cluster");
  place.textContent = "";
  if (listening === null) return;
  try {
    const found = await get("cluster");
    place.textContent = [found.address, found.cluster_id].filter(Boolean).join(" · ");
  } catch { /* the view says why */ }
}

/** The clusters that one can choose from, where the page has several. */
async function choices() {
  const first = several === null;
  try {
    const { clusters } = await readClusters();
    several = clusters.some((one) => one.name);
    const choice = document.getElementById("choice");
    choice.hidden = !several;
    const options = [["", "All clusters"], ...clusters.map((one) => [one.name, one.why ? `${one.name} (away)` : one.name])];
    if (options.some(([, text], index) => choice.options[index]?.textContent !== text)) choice.replaceChildren(...options.map(([value, text]) => new Option(text, value)));
    choice.value = chosen();
  } catch { /* the view says why */ }
  if (first && (several !== null || shown === null)) show(true);
  if (several !== false) setTimeout(choices, AGAIN_MS);
}

const status = { server: "", cluster: { away: null } };
function showStatus(change) {
  Object.assign(status, change);
  const { server, cluster: { cluster: name, away } } = status;
  const gone = server === "live" && away !== null;
  document.getElementById("live").dataset.state = gone ? "away" : server;
  document.getElementById("live-text").textContent = gone ? "Cluster away" : server === "live" ? "Live" : "Reconnecting";
  const banner = document.getElementById("away");
  banner.hidden = away === null;
  // A live region says it again when its text is set again.
  const text = away === null ? "" : `${name} has not answered since ${dateTime(away.since_ms)}: this page shows what was known before. ${capital(away.why)}`;
  if (banner.textContent !== text) banner.textContent = text;
}
live.addEventListener("status", ({ detail }) => showStatus({ server: detail }));
live.addEventListener("cluster", ({ detail }) => showStatus({ cluster: detail }));
live.addEventListener("reload", () => show(true));
live.addEventListener("rebalance", ({ detail }) => announce(`${detail.group}: ${causeWords(detail.cause)}`));
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => show());
addEventListener("popstate", () => show());
document.getElementById("choice").addEventListener("change", ({ target }) => { location.hash = href([], { cluster: target.value }); });
setUp(() => show(true));
choices();
