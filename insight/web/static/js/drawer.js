// One rebalance: cause and evidence, phases, what moved from whom to whom, who was there.
import { get } from "./api.js";
import { h } from "./dom.js";
import { capital, dateTime, duration, number, plural, runs, sure, unownedWords } from "./format.js";
import { href } from "./router.js";
import { plainTable } from "./table.js";
import { causeChip } from "./words.js";

const MOVES_SHOWN = 30;
const HOW = { join_ms: ["join", "Waiting for all members to join"], leader_ms: ["leader", "The leader computes the assignment"], sync_ms: ["sync", "Until every member has its share"] };

/** Show it beside the view; `closed` when it is left. */
export class Drawer {
  constructor({ closed, step, signal }) {
    Object.assign(this, { closed, step, signal });
    this.element = null;
    this.id = null;
    this.ready = false;
    addEventListener("keydown", (event) => { if (event.key === "Escape" && this.element) this.close(); }, { signal });
    signal.addEventListener("abort", () => this.element?.remove());
  }

  async open(id, from = null) {
    if (from) this.from = from;
    this.id = id;
    if (!this.element) {
      this.element = h("aside", { class: "drawer", role: "dialog", "aria-labelledby": "drawer-title", tabindex: "-1" });
      document.body.append(this.element);
    }
    try {
      const one = await get("rebalance", { id }, this.signal);
      if (this.id !== id || !this.element) return;
      this.fill(one);
    } catch (error) {
      if (error.name === "AbortError") return;
      this.element?.replaceChildren(this.shut(), h("h2", { id: "drawer-title" }, "Not there"), h("p", null, error.message));
    }
    this.element?.scrollTo(0, 0);
    this.element?.focus({ preventScroll: true });
  }

  /** The list is there that one can step through. */
  enable() {
    this.ready = true;
    for (const button of this.element?.querySelectorAll(".nav button") ?? []) button.disabled = false;
  }

  close() {
    this.element?.remove();
    this.element = null;
    this.id = null;
    this.closed();
    if (this.from?.isConnected) this.from.focus({ preventScroll: true });
    this.from = null;
  }

  shut() { return h("button", { type: "button", class: "quiet close", "aria-label": "Close", onclick: () => this.close() }, "×"); }

  fill(one) {
    const name = (id) => one.names[id] ?? id;
    this.element.replaceChildren(...[
      this.shut(),
      h("h2", { id: "drawer-title" }, causeChip(one.cause)),
      h("p", { class: "muted" }, `${dateTime(one.at_ms)} · generation ${number(one.generation)}${one.outcome === "stable" ? "" : ` · ended ${one.outcome}`}`),
      why(one, name), phases(one, name), cost(one), moves(one, name), gone(one, name), members(one),
      h("div", { class: "nav" },
        h("button", { type: "button", disabled: !this.ready, onclick: () => this.step(-1) }, "‹ Before"),
        h("button", { type: "button", disabled: !this.ready, onclick: () => this.step(1) }, "Next ›"),
        h("a", { class: "small", href: href(["rebalance", one.id]) }, "Link to this one")),
    ].filter(Boolean));
  }
}

function why(one, name) {
  const who = [...new Set(one.cause_members.map(name))];
  return h("section", null, h("h3", null, "Why"),
    who.length ? h("p", null, `By ${who.slice(0, 5).join(", ")}${who.length > 5 ? ` and ${who.length - 5} more` : ""}.`) : null,
    h("p", { class: "sure" }, sure(one.confidence)),
    one.evidence.length ? h("ul", { class: "evidence" }, one.evidence.map((sentence) => h("li", null, sentence))) : null,
    one.reason ? h("p", null, "The client's reason: ", h("q", null, one.reason)) : null);
}

function phases(one, name) {
  const known = Object.entries(HOW).filter(([field]) => one[field] !== null);
  if (!known.length) {
    return h("section", null, h("h3", null, "How long"), h("p", null, one.duration_ms === null
      ? "Nothing showed when it began: the cluster writes down only the end. Watched while it happens (ringleader watch), its phases can be seen."
      : `${duration(one.duration_ms)} in all; how it was spent was not seen.`));
  }
  const all = known.reduce((sum, [field]) => sum + one[field], 0) || 1;
  const bar = h("div", { class: "phases", "aria-hidden": "true" }, known.map(([field]) => {
    const part = h("i", { class: HOW[field][0] });
    part.style.flexGrow = String(Math.max(one[field], all / 200));
    return part;
  }));
  return h("section", null, h("h3", null, `How long: ${duration(one.duration_ms ?? all)}`), bar,
    h("dl", { class: "keys" }, known.map(([field]) => h("div", { class: HOW[field][0] }, h("dt", null, h("span", null, HOW[field][1],
      field === "join_ms" && one.join_last_member ? h("span", { class: "second" }, `longest for ${name(one.join_last_member)}`) : field === "leader_ms" && one.leader ? h("span", { class: "second" }, name(one.leader)) : null)), h("dd", null, duration(one[field]))))));
}

function cost(one) {
  const silent = one.first_commit_ms !== null && one.last_commit_ms !== null ? one.first_commit_ms - one.last_commit_ms : null;
  return h("section", null, h("h3", null, "What it cost"),
    h("p", null, one.unowned_ms === null ? "How long partitions had no owner is not known." : one.unowned_ms ? `Partitions were without owner for ${unownedWords(one.unowned_ms)} in all.` : "No partition was without owner."),
    silent === null ? null : h("p", null, `Between the last commit before it and the first after it: ${duration(silent)}.`));
}

function moves(one, name) {
  const changed = one.moves.filter((move) => move.giver !== move.heir || move.unowned_ms);
  if (!changed.length) return h("section", null, h("h3", null, "What moved"), h("p", null, "No partition changed hands."));
  const ways = new Map();
  for (const move of changed) {
    const key = JSON.stringify([move.giver, move.heir, move.topic]);
    const way = ways.get(key) ?? { ...move, partitions: [], longest: null };
    way.partitions.push(move.partition);
    if (move.unowned_ms !== null) way.longest = Math.max(way.longest ?? 0, move.unowned_ms);
    ways.set(key, way);
  }
  const item = (way) => h("li", null, h("strong", null, `${way.topic}:${runs(way.partitions)}`), h("span", { class: "second" },
    way.giver === way.heir ? ["stays with ", name(way.heir)] : [way.giver === null ? "nobody" : name(way.giver), h("span", { class: "arrow" }, " to "), way.heir === null ? "nobody" : name(way.heir)],
    way.longest === null ? null : ` · without owner ${way.partitions.length > 1 ? "up to " : ""}${duration(way.longest)}`));
  const [first, rest] = [[...ways.values()].slice(0, MOVES_SHOWN), [...ways.values()].slice(MOVES_SHOWN)];
  return h("section", null, h("h3", null, `What moved: ${plural(changed.length, "partition")}`), h("ul", { class: "moves" }, first.map(item)),
    rest.length ? h("details", null, h("summary", null, `${rest.length} more`), h("ul", { class: "moves" }, rest.map(item))) : null);
}

function gone(one, name) {
  const left = Object.entries(one.left);
  if (!left.length) return null;
  return h("section", null, h("h3", null, `Who went: ${left.length}`), h("ul", { class: "moves" }, left.map(([id, how]) => h("li", null,
    h("strong", null, name(id)), one.principals[id] ? h("span", { class: "second" }, one.principals[id]) : null, h("span", { class: "second" }, `${capital(how.why)} (${how.confidence})${how.silent_ms === null ? "" : ` · silent for ${duration(how.silent_ms)}`}`),
    how.evidence.map((sentence) => h("span", { class: "second" }, sentence))))));
}

function members(one) {
  if (!one.members.length) return h("section", null, h("h3", null, "Members after it"), h("p", null, "None: the group is empty."));
  const joined = new Set(one.joined);
  return h("section", null, h("h3", null, `Members after it: ${number(one.members.length)}`), plainTable("Members after it", ["Member", "Partitions", "Session"],
    one.members.map((member) => [[member.name, h("span", { class: "second" }, [joined.has(member.member_id) && "joined", member.member_id === one.leader && "leader", member.name.includes(member.host.replace(/^\//, "")) ? null : member.host, one.principals[member.member_id]].filter(Boolean).join(" · "))], number(member.assigned.length), member.session_timeout_ms === null ? "–" : duration(member.session_timeout_ms)])));
}
