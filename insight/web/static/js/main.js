// Which view is shown; the frame around it.
import { activityView } from "./activity.js";
import { get, live } from "./api.js";
import { announce, h } from "./dom.js";
import { causeWords } from "./format.js";
import { groupView } from "./group.js";
import { groupsView } from "./groups.js";
import { ownersView } from "./owners.js";
import { here, href } from "./router.js";
import { setUp } from "./settings.js";

const main = document.getElementById("main");
let leave = new AbortController();
let shown = null;

function show(afresh = false) {
  const { parts, query } = here();
  const key = JSON.stringify(parts);
  if (!afresh && shown?.key === key && shown.view.moved) { shown.view.moved(query); return; }
  leave.abort();
  leave = new AbortController();
  main.replaceChildren();
  document.querySelectorAll(".drawer").forEach((drawer) => drawer.remove());
  const [name = "groups", ...rest] = parts;
  const makes = { groups: groupsView, group: groupView, activity: activityView, owners: ownersView, rebalance: rebalanceView };
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
  place.append(h("p", { class: "card empty" }, h("strong", null, "There is no such page"), h("a", { href: "#/" }, "All groups")));
  return { title: "Not there" };
}

async function cluster() {
  try {
    const found = await get("cluster");
    document.getElementById("cluster").textContent = [found.address, found.cluster_id].filter(Boolean).join(" · ");
  } catch { /* the view says why */ }
}

live.addEventListener("status", ({ detail }) => {
  document.getElementById("live").dataset.state = detail;
  document.getElementById("live-text").textContent = detail === "live" ? "Live" : "Reconnecting";
});
live.addEventListener("reload", () => show(true));
live.addEventListener("rebalance", ({ detail }) => announce(`${detail.group}: ${causeWords(detail.cause)}`));
document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", () => show());
addEventListener("popstate", () => show());
setUp(() => show(true));
show();
cluster().then(() => live.start());
