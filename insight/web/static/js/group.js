// One group: figures of a time, its timeline, advice, the list of its rebalances.
import { eventItem } from "./activity.js";
import { get, live } from "./api.js";
import { Drawer } from "./drawer.js";
import { h, throttled } from "./dom.js";
import { ago, capital, clock, dateTime, duration, number, plural, short, sure, unownedParts, when } from "./format.js";
import { rebalanceTable } from "./list.js";
import { amend, href } from "./router.js";
import { resetPart } from "./reset.js";
import { plainTable } from "./table.js";
import { Timeline } from "./timeline.js";
import { calm, causeChip, nothing, stateChip, trouble } from "./words.js";

const SPANS = [["15 min", 15], ["1 h", 60], ["6 h", 360], ["24 h", 1440], ["7 d", 10_080], ["30 d", 43_200]];
const MINUTE = 60_000;
const PAGE = 2000, PAGES_MAX = 10;
const ROWS_MAX = 500;
const REST_MS = 15_000;
const EVIDENCE_MAX = 12;

const lanesOf = (asked) => (asked.get("lanes") === "partition" ? "partition" : "member");
const minutesOf = (asked) => Number(asked.get("minutes")) || 360;

export function groupView(place, [name], query, signal) {
  if (!name) { location.replace(href([])); return {}; }
  let follow = true, span = 360 * MINUTE, from = 0, to = 0;
  let rows = [], cause = null, by = lanesOf(query);
  let lagOf = null, loaded = false, newest = null, began = null;

  // ---- the parts ----
  const figures = h("dl", { class: "card figures" });
  const title = h("h1", null, name);
  const about = h("p", { class: "muted" });
  const chips = h("div", { class: "chips", role: "group", "aria-label": "Show only one cause" });
  const findings = h("section", { hidden: true });
  const happened = h("section", { hidden: true });
  const clients = h("section", { hidden: true });
  const deployed = h("section", { hidden: true });
  const count = h("span", { class: "muted" });
  const timeline = new Timeline({ move: (since, until) => { fix(since, until); changed(); }, open: (id) => open(id, timeline.area), signal });
  timeline.chosen = (one) => document.getElementById("announce").append(h("p", null, `${capital(one.cause)}, ${dateTime(one.at_ms)}`));
  const drawer = new Drawer({
    signal,
    closed: () => { amend({ rebalance: null }); mark(null); },
    step: (by_) => { timeline.step(by_); if (timeline.selected) open(timeline.selected); },
  });
  const table = rebalanceTable({ signal, open, empty: () => emptyList() });
  const tableOfLanes = h("div");
  const tableOfLag = h("div");
  const asTable = h("details", { class: "under", ontoggle: () => fillLanes() }, h("summary", null, "The timeline as a table"), tableOfLanes);
  const lagTable = h("details", { class: "under", ontoggle: () => fillLag() }, h("summary", null, "Lag by partition"), tableOfLag);
  const spans = SPANS.map(([text, minutes]) => h("button", { type: "button", onclick: () => goTo(minutes * MINUTE) }, text));
  const lanesBy = ["member", "partition"].map((one) => h("button", { type: "button", onclick: () => { by = one; amend({ lanes: one === "member" ? null : one }); pressed(); load(); } }, one === "member" ? "Members" : "Partitions"));
  const now = h("button", { type: "button", title: "Follow what happens now", onclick: () => goTo(span) }, "Now");
  const range = h("p", { class: "muted number" });

  place.append(
    h("a", { class: "back", href: href([]) }, "‹ All groups"),
    h("div", { class: "head" }, title, about),
    figures,
    h("section", { "aria-labelledby": "timeline-title" },
      h("div", { class: "section-head" }, h("h2", { id: "timeline-title" }, "Timeline"), range,
        h("div", { class: "tools" },
          h("div", { class: "segmented", role: "group", "aria-label": "Lanes" }, lanesBy),
          h("div", { class: "segmented", role: "group", "aria-label": "Zoom" },
            h("button", { type: "button", "aria-label": "Zoom out", onclick: () => timeline.zoom(2) }, "−"),
            h("button", { type: "button", "aria-label": "Zoom in", onclick: () => timeline.zoom(0.5) }, "+")),
          h("div", { class: "segmented", role: "group", "aria-label": "Earlier or later" },
            h("button", { type: "button", "aria-label": "Earlier", onclick: () => timeline.pan(-0.5) }, "‹"),
            h("button", { type: "button", "aria-label": "Later", onclick: () => timeline.pan(0.5) }, "›")),
          h("div", { class: "segmented spans", role: "group", "aria-label": "How much time" }, spans), now)),
      h("div", { class: "card" }, timeline.element, asTable, lagTable)),
    findings, deployed, happened, clients,
    h("section", { "aria-labelledby": "list-title" }, h("div", { class: "section-head" }, h("h2", { id: "list-title" }, "Rebalances"), count, h("div", { class: "tools" }, chips)), table.element),
    resetPart(name, signal));

  // ---- the time that is shown ----
  function fix(since, until) {
    follow = until >= Date.now() - (until - since) * 0.02;
    span = until - since;
    from = since;
    to = until;
  }

  function goTo(length, end = null) {
    span = length;
    follow = end === null;
    to = end ?? Date.now();
    from = to - span;
    timeline.show(from, to);
    changed();
  }

  function readWindow(asked) {
    const [since, until] = [Number(asked.get("from")), Number(asked.get("to"))];
    if (since && until > since) fix(since, until);
    else { span = minutesOf(asked) * MINUTE; follow = true; to = Date.now(); from = to - span; }
    timeline.show(from, to);
    pressed();
  }

  function pressed() {
    spans.forEach((button, index) => button.setAttribute("aria-pressed", String(follow && Math.abs(span - SPANS[index][1] * MINUTE) < 1000)));
    lanesBy.forEach((button, index) => button.setAttribute("aria-pressed", String(by === ["member", "partition"][index])));
    now.setAttribute("aria-pressed", String(follow));
    range.textContent = follow ? `the last ${duration(span)}` : `${dateTime(from)} – ${when(to, from)}, ${duration(to - from)}`;
  }

  function changed() {
    pressed();
    addressed();
    soon();
  }
  const addressed = throttled(() => amend(follow ? { from: null, to: null, minutes: span === 360 * MINUTE ? null : Math.max(1, Math.round(span / MINUTE)) } : { from, to, minutes: null }), 300);
  const soon = throttled(() => load(), 250);
  signal.addEventListener("abort", () => { addressed.cancel(); soon.cancel(); });

  // ---- reading ----
  let reading = new AbortController();
  signal.addEventListener("abort", () => reading.abort());

  async function load() {
    reading.abort();
    reading = new AbortController();
    const mine = reading.signal;
    if (follow) { to = Date.now(); from = to - span; timeline.show(from, to); }
    // A bit more than is seen, so that moving a little shows no hole.
    const margin = Math.round((to - from) * 0.25);
    const window_ = { group: name, since: Math.max(0, Math.round(from - margin)), until: Math.round(to + margin) };
    const seen = { group: name, since: Math.max(0, Math.round(from)), until: Math.round(to) };
    try {
      const [lanes, report, lag, events, state, rolled] = await Promise.all([
        get("timeline", { ...window_, by, columns: 1500 }, mine), get("report", seen, mine), get("lag", { ...window_, points: 450 }, mine),
        get("events", { group: name, since: window_.since, until: window_.until }, mine), get("group", { group: name }, mine), get("deploys", seen, mine)]);
      calm(place);
      lagOf = lag;
      timeline.set({ data: lanes, lag, events: events.events });
      showState(state, report);
      showEvents(events.events);
      showTold(state.told);
      showDeploys(rolled.deploys);
      await readRows(window_, mine);
      fillLanes();
      fillLag();
    } catch (error) {
      if (error.status === 404) { place.replaceChildren(h("a", { class: "back", href: href([]) }, "‹ All groups"), h("div", { class: "card empty" }, nothing(`No group “${name}” was seen`, "It may be gone from the history, or its name is written differently."))); reading.abort(); clearInterval(timer); return; }
      trouble(place, error);
    }
  }

  async function readRows(window_, mine) {
    let found = [], until = window_.until;
    const known = new Set();
    for (let page = 0; page < PAGES_MAX; page++) {
      const answer = await get("rebalances", { ...window_, until, limit: PAGE }, mine);
      const fresh = answer.rebalances.filter((row) => !known.has(row.id));
      fresh.forEach((row) => known.add(row.id));
      found = found.concat(fresh);
      if (!answer.more || !fresh.length) break;
      until = found.at(-1).at_ms;
    }
    if (!found.length) {
      newest = (await get("rebalances", { group: name, limit: 1 }, mine)).rebalances[0] ?? null;
      began = (await get("cluster", {}, mine)).oldest_ms;
    }
    rows = found;
    loaded = true;
    if (rows.length) drawer.enable();
    timeline.set({ rebalances: rows });
    showRows();
  }

  // ---- showing ----
  function showState(state, report) {
    const at = Date.now();
    about.replaceChildren(stateChip(state.state), state.kind === "classic" ? "" : h("span", { class: "tag" }, `${state.kind} protocol`));
    const total = lagOf.partitions.reduce((sum, one) => sum + (one.lag ?? 0), 0);
    const measured = lagOf.partitions.some((one) => one.lag !== null);
    const idle = state.members.filter((member) => !member.assigned.length).length;
    const top = report.causes[0];
    const figure = (term, value, more) => h("div", null, h("dt", null, term), h("dd", null, value, h("small", { title: typeof more === "string" ? more : null }, more ?? " ")));
    figures.replaceChildren(
      figure("Members", number(state.members.length), idle ? `${idle} without a partition` : state.leader_name ? `led by ${state.leader_name}` : "nobody is there"),
      figure("Generation", number(state.generation), `since ${ago(state.since_ms, at)}${state.protocol ? ` · ${state.protocol}` : ""}`.replace("since just now", "just now")),
      figure("Lag", measured ? short(total) : "–", measured ? `records in ${plural(lagOf.partitions.length, "partition")}` : "not measured in this time"),
      figure("Rebalances", number(report.rebalances), top ? h("span", null, `${top.rebalances} × ${top.cause}`) : "none in this time"),
      figure("Without owner", ...unownedParts(report.unowned_ms)),
      figure("Longest", report.rebalances ? duration(report.longest_ms) : "–", `${plural(report.moved, "partition")} moved`));
  }

  function showDeploys(deploys) {
    deployed.hidden = !deploys.length;
    if (deploys.length) deployed.replaceChildren(h("div", { class: "section-head" }, h("h2", null, "Deploys")), h("ul", { class: "card happened" }, deploys.slice(-20).reverse().map((one) =>
      eventItem({ at_ms: one.since_ms, kind: one.marked ? "marked" : "recognised by replaced members", group: "", text: `${one.label ? `${one.label}: ` : ""}${one.text}${one.until_ms ? `, in ${duration(one.until_ms - one.since_ms)}` : ", going on"}` }))));
  }

  function showEvents(events) {
    happened.hidden = !events.length;
    if (events.length) happened.replaceChildren(h("div", { class: "section-head" }, h("h2", null, "Also happened")), h("ul", { class: "card happened" }, events.slice(0, 20).map((event) => eventItem({ ...event, group: "" }))));
  }

  function showTold(told) {
    clients.hidden = !told.length;
    const newest = [...told].sort((a, b) => b.at_ms - a.at_ms);
    clients.replaceChildren(h("div", { class: "section-head" }, h("h2", null, "What its clients told of themselves")), h("ul", { class: "card happened" }, newest.slice(0, 20).map((one) => eventItem({ ...one, kind: "told", group: "" }))));
  }

  function showRows() {
    const inside = rows.filter((row) => row.at_ms >= from && row.at_ms <= to + 1000);
    const causes = new Map();
    for (const row of inside) causes.set(row.cause, (causes.get(row.cause) ?? 0) + 1);
    if (cause && !causes.has(cause)) cause = null;
    chips.replaceChildren(...(causes.size > 1 ? [...causes].sort((a, b) => b[1] - a[1]).map(([one, times]) => h("button", {
      type: "button", "aria-pressed": String(cause === one), onclick: () => { cause = cause === one ? null : one; showRows(); },
    }, causeChip(one), ` ${times}`)) : []));
    const shown = cause ? inside.filter((row) => row.cause === cause) : inside;
    count.textContent = inside.length ? `${number(shown.length)}${cause ? ` of ${number(inside.length)}` : ""} in this time` : "";
    table.set(shown);
    mark(drawer.id);
  }

  function emptyList() {
    if (!loaded) return nothing("Reading …");
    if (!newest) return nothing(`This group has not rebalanced while it was watched${began ? `, since ${dateTime(began)}` : ""}`, "The next time a member joins, leaves or is lost, it is here with the cause.");
    return nothing("Nothing rebalanced in this time", `The last one was ${ago(newest.at_ms, Date.now())}: ${newest.cause}.`, h("br"), h("button", { type: "button", onclick: () => goTo(span, newest.at_ms + span / 2 > Date.now() ? null : newest.at_ms + span / 2) }, "Go there"));
  }

  function fillLanes() {
    if (!asTable.open) return;
    const all = timeline.rows();
    tableOfLanes.replaceChildren(plainTable("The timeline as a table", [by === "member" ? "Member" : "Partition", "From", "To", by === "member" ? "Had" : "Owner"],
      all.slice(0, ROWS_MAX).map(([since, until, lane, what]) => [lane, when(since, Date.now()), until === null ? "now" : clock(until), what])),
    all.length > ROWS_MAX ? h("p", { class: "empty" }, `The first ${ROWS_MAX} of ${number(all.length)}: zoom in for the others.`) : "");
  }

  function fillLag() {
    if (!lagTable.open || !lagOf) return;
    const sorted = [...lagOf.partitions].sort((a, b) => (b.lag ?? -1) - (a.lag ?? -1)).slice(0, ROWS_MAX);
    tableOfLag.replaceChildren(sorted.length ? plainTable("Lag by partition", ["Partition", "Lag", "Committed", "End", "Measured"], sorted.map((one) => [`${one.topic}:${one.partition}`, number(one.lag), number(one.committed), number(one.end_offset), when(one.at_ms, Date.now())])) : h("p", { class: "empty" }, "Lag was not measured in this time."));
  }

  // ---- one rebalance ----
  function mark(id) {
    if (timeline.selected !== id) timeline.set({ selected: id });
    for (const link of table.body.querySelectorAll("[data-rebalance]")) link.closest("tr").dataset.open = String(link.dataset.rebalance === id);
  }

  function open(id, source = null) {
    amend({ rebalance: id }, drawer.id === null);
    drawer.open(id, source);
    mark(id);
  }

  // ---- live ----
  live.on("rebalance", (row) => { if (row.group === name) again(); }, signal);
  live.on("group", (row) => { if (row.group === name) again(); }, signal);
  live.on("event", (row) => { if (row.group === name) again(); }, signal);
  const again = throttled(() => { if (follow) load(); }, 1000);
  const timer = setInterval(() => { if (follow && !document.hidden) load(); }, REST_MS);
  const drift = setInterval(() => { if (follow && !document.hidden) { to = Date.now(); from = to - span; timeline.show(from, to); } }, 1000);
  signal.addEventListener("abort", () => { again.cancel(); clearInterval(timer); clearInterval(drift); });

  async function advise() {
    let found;
    try { found = (await get("findings", { group: name }, signal)).findings; } catch { return; }
    findings.hidden = !found.length;
    if (!found.length) return;
    findings.replaceChildren(h("div", { class: "section-head" }, h("h2", null, "Advice")), h("div", { class: "findings" }, found.map(finding)));
  }

  readWindow(query);
  table.set([]);
  load();
  advise();
  if (query.get("rebalance")) open(query.get("rebalance"));

  return {
    title: name,
    moved: (asked) => {
      const id = asked.get("rebalance");
      if (!id && drawer.id) drawer.close();
      else if (id && id !== drawer.id) { drawer.open(id); mark(id); }
      const since = Number(asked.get("from"));
      const same = since ? since === from && Number(asked.get("to")) === to : follow && minutesOf(asked) === Math.max(1, Math.round(span / MINUTE));
      const lanes = lanesOf(asked);
      if (same && lanes === by) return;
      by = lanes;
      if (!same) readWindow(asked);
      pressed();
      load();
    },
  };
}

function finding(one) {
  const saving = one.saving?.claimed ? one.saving : null;
  const gains = saving && saving.avoided >= 0 && saving.saved_ms >= 0 && (saving.avoided > 0 || saving.saved_ms > 0);
  return h("article", { class: "card finding" },
    h("h3", null, capital(one.pattern)), h("p", null, one.text),
    one.changes.map((change) => [
      h("p", { class: "setting" }, change.setting),
      h("p", null, capital(change.value), change.now ? h("span", { class: "muted" }, ` (now: ${change.now})`) : null),
      change.why ? h("p", { class: "muted small" }, change.why) : null]),
    saving ? h("p", { class: gains ? "saved" : "second" }, saving.text) : null,
    h("p", { class: "muted small" }, sure(one.confidence)),
    one.evidence.length ? h("details", null, h("summary", null, "Evidence"), h("ul", null, one.evidence.slice(0, EVIDENCE_MAX).map((sentence) => h("li", null, sentence)))) : null);
}
