// One group over time: rebalances, lanes of members or partitions, lag. Plain SVG; what changes with the window is
// drawn again, one path for each colour of a lane, so that its size hangs on what is seen and not on what happened.
import { h, svg } from "./dom.js";
import { causeWords, clock, dateTime, day, duration, family, FAMILY_WORDS, capital, minute, number, plural, short } from "./format.js";
import { Colours, hatches } from "./colours.js";
import { levels, Scale } from "./scale.js";
import { settings } from "./settings.js";

const LANE = 26, BAR = 18, MARKS = 30, LAG = 92, AXIS = 24;
const NARROWEST_MS = 5_000, WIDEST_MS = 90 * 86_400_000;
const NEAR_PX = 7;
const SINGLE_MARKS = 120;

export class Timeline {
  /** move(since, until): the window that was asked for; open(id): a rebalance. */
  constructor({ move, open, signal }) {
    Object.assign(this, { move, open });
    this.since = 0; this.until = 1; this.rebalances = []; this.events = []; this.lag = null; this.data = null; this.selected = null;
    this.colours = new Colours();
    this.marks = svg("svg", { height: MARKS, "aria-hidden": "true" });
    this.lagPicture = svg("svg", { height: LAG, "aria-hidden": "true" });
    this.axis = svg("svg", { height: AXIS, "aria-hidden": "true" });
    this.labels = h("div");
    this.lanePicture = svg("svg", { "aria-hidden": "true" });
    this.lanesBox = h("div", { class: "lanes", tabindex: "0", role: "group", "aria-label": "Lanes" }, h("div", { class: "row" }, this.labels, h("div", { class: "plot" }, this.lanePicture)));
    this.lagLabel = h("div", { class: "label" });
    this.overlay = h("div", { class: "overlay" });
    this.tip = h("div", { class: "tip", hidden: true });
    const row = (label, picture, name) => h("div", { class: `row ${name}` }, label, h("div", { class: "plot" }, picture));
    this.area = h("div", {
      class: "surface", tabindex: "0", role: "group", "aria-roledescription": "timeline",
      "aria-describedby": "timeline-keys",
      onkeydown: (event) => this.key(event), onpointerdown: (event) => this.down(event), onpointermove: (event) => this.hover(event),
      onpointerleave: () => this.leave(), ondblclick: (event) => this.zoom(0.4, this.timeOf(event)),
    },
    row(h("div", { class: "label muted" }, h("span", null, "Rebalances")), this.marks, "marks"), this.lanesBox,
    row(this.lagLabel, this.lagPicture, "lag"), row(h("div"), this.axis, "axis"), this.overlay, this.tip);
    this.area.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.legend = h("div", { class: "legend" });
    this.keys = h("p", { class: "visually-hidden", id: "timeline-keys" }, "Left and right arrow move through time, plus and minus zoom, N and P step through the rebalances, Enter opens one, End goes to now. All of it stands in the table below.");
    this.element = h("div", { class: "timeline" }, this.area, this.legend, this.keys);
    this.resized = new ResizeObserver(() => this.draw());
    this.resized.observe(this.marks);
    signal.addEventListener("abort", () => this.resized.disconnect());
  }

  show(since, until) { this.since = since; this.until = until; this.draw(); }
  set(values) { Object.assign(this, values); this.draw(); }

  // ---- drawing ----

  draw() {
    const width = this.marks.clientWidth;
    if (!width) return;
    this.scale = new Scale(this.since, this.until, width);
    this.area.setAttribute("aria-label", `Timeline from ${dateTime(this.since)} to ${dateTime(this.until)}: ${plural(this.inWindow().length, "rebalance")}`);
    this.ticks = this.scale.ticks(settings.utc);
    this.drawMarks();
    this.drawLanes();
    this.drawLag();
    this.drawAxis();
    this.drawBand();
    this.drawLegend();
  }

  inWindow() { return this.rebalances.filter((one) => one.at_ms >= this.since && (one.began_ms ?? one.at_ms) <= this.until); }

  grid(height) { return svg("path", { class: "grid-line", d: this.ticks.at.map((at) => `M${round(this.scale.x(at))} 0V${height}`).join("") }); }

  drawMarks() {
    const found = this.inWindow();
    const shapes = [this.grid(MARKS)];
    if (found.length <= SINGLE_MARKS) {
      for (const one of found) {
        const x = this.scale.x(one.at_ms);
        const size = one.id === this.selected ? 7 : 5;
        shapes.push(svg("path", { class: `mark ${family(one.cause)}`, d: `M${x} ${15 - size}l${size} ${size}l${-size} ${size}l${-size} ${-size}z` }));
      }
    } else {
      const columns = new Map();
      for (const one of found) {
        const column = Math.floor(this.scale.x(one.at_ms) / 4);
        const kinds = columns.get(column) ?? new Map();
        kinds.set(family(one.cause), (kinds.get(family(one.cause)) ?? 0) + 1);
        columns.set(column, kinds);
      }
      const most = Math.max(...[...columns.values()].map((kinds) => total(kinds)));
      const paths = new Map();
      for (const [column, kinds] of columns) {
        let y = MARKS - 2;
        const all = total(kinds);
        const height = 5 + (Math.log(1 + all) / Math.log(1 + most)) * (MARKS - 9);
        for (const [kind, times] of kinds) {
          const part = (times / all) * height;
          paths.set(kind, `${paths.get(kind) ?? ""}M${column * 4} ${round(y - part)}h3v${round(part)}h-3z`);
          y -= part;
        }
      }
      for (const [kind, d] of paths) shapes.push(svg("path", { class: `mark ${kind}`, d }));
    }
    for (const one of this.events) {
      const x = this.scale.x(one.at_ms);
      if (x >= 0 && x <= this.scale.width) shapes.push(svg("path", { class: "event-mark", d: `M${x} 27l-4.5 -7h9z` }));
    }
    this.marks.replaceChildren(...shapes);
  }

  lanes() { return this.data?.lanes ?? []; }

  drawLanes() {
    const lanes = this.lanes();
    const height = Math.max(lanes.length, 1) * LANE;
    this.lanePicture.setAttribute("height", height);
    const shapes = [hatches(), this.grid(height)];
    const names = this.data?.names ?? {};
    if (this.data?.by === "partition") this.colours.give(lanes.flatMap((lane) => lane.blocks).filter(([, , what]) => what !== null).map(([, , what]) => names[what] ?? what));
    lanes.forEach((lane, index) => this.drawLane(shapes, lane, index * LANE + (LANE - BAR) / 2, names));
    if (!lanes.length && this.data) shapes.push(svg("text", { class: "tick", x: 8, y: 17 }, this.data.by === "member" ? "No member was in the group in this time." : "Nobody owned a partition in this time."));
    this.lanePicture.replaceChildren(...shapes);
    const key = JSON.stringify(lanes.map((lane) => [laneName(lane), lane.here]));
    if (key !== this.labelKey) {
      this.labelKey = key;
      this.labels.replaceChildren(...lanes.map((lane) => {
        const label = h("div", { class: `label${lane.here === false ? " gone" : ""}`, title: laneName(lane) }, h("span", null, ...labelOf(lane)));
        label.style.height = `${LANE}px`;
        return label;
      }));
    }
  }

  drawLane(shapes, lane, y, names) {
    const paths = new Map();
    const add = (kind, from, to, least = 0, inset = 0) => {
      const [x1, x2] = this.extent(from, to, least);
      if (x2 < 0 || x1 > this.scale.width) return null;
      const a = Math.max(x1, -2), b = Math.min(x2, this.scale.width + 2);
      paths.set(kind, `${paths.get(kind) ?? ""}M${round(a)} ${y + inset}H${round(b)}V${y + BAR - inset}H${round(a)}z`);
      return [Math.max(a, 0), Math.min(b, this.scale.width)];
    };
    for (const span of lane.spans ?? []) add("idle", span.since_ms, span.until_ms, 0, 6);
    const texts = [];
    for (const [from, to, what] of lane.blocks) {
      const owner = lane.topic === undefined || what === null ? null : names[what] ?? what;
      const drawn = add(owner === null ? "block" : `owner ${owner}`, from, to, 0.5);
      const text = what === null ? "" : lane.topic === undefined ? plural(what, "partition") : names[what] ?? what;
      if (drawn && text && drawn[1] - drawn[0] > 34) texts.push([drawn, text]);
    }
    for (const gap of lane.gaps) add(`gap ${family(gap.cause)}`, gap.since_ms, gap.until_ms, 2.5);
    for (const [kind, d] of paths) shapes.push(...(kind.startsWith("owner ") ? this.colours.paths(kind.slice(6), d) : [svg("path", { class: kind, d })]));
    for (const [[from, to], text] of texts) {
      const room = Math.floor((to - from - 10) / 6.3);
      const brief = lane.topic === undefined ? text.split(" ")[0] : text.split("@")[0];
      const cut = text.length <= room ? text : brief.length <= room ? brief : room > 4 ? `…${brief.slice(1 - room)}` : "";
      if (cut && cut.length <= room) shapes.push(svg("text", { class: "block-text", x: round(from + 5), y: y + 13 }, cut));
    }
  }

  extent(from, to, least) {
    const x1 = this.scale.x(from), x2 = this.scale.x(to ?? Math.max(Date.now(), from));
    if (x2 - x1 >= least) return [x1, x2];
    const middle = (x1 + x2) / 2;
    return [middle - least / 2, middle + least / 2];
  }

  drawLag() {
    const points = (this.lag?.points ?? []).filter(([at]) => at >= this.since - (this.until - this.since) && at <= this.until + (this.until - this.since));
    const shown = points.filter(([at]) => at >= this.since && at <= this.until);
    const most = Math.max(1, ...shown.map(([, records]) => records));
    const y = (records) => 8 + (1 - records / most) * (LAG - 10);
    const shapes = [this.grid(LAG)];
    for (const level of levels(most)) {
      shapes.push(svg("path", { class: "grid-line", d: `M0 ${round(y(level))}H${this.scale.width}` }));
    }
    if (points.length) {
      const line = points.map(([at, records], index) => `${index ? "L" : "M"}${round(this.scale.x(at))} ${round(y(records))}`).join("");
      shapes.push(svg("path", { class: "lag-area", d: `${line}L${round(this.scale.x(points.at(-1)[0]))} ${LAG}L${round(this.scale.x(points[0][0]))} ${LAG}z` }), svg("path", { class: "lag-line", d: line }));
    }
    for (const level of levels(most)) shapes.push(svg("text", { class: "tick", x: 4, y: round(y(level)) + 12 }, short(level)));
    if (!shown.length && this.lag) shapes.push(svg("text", { class: "tick", x: 8, y: 52 }, "Lag was not measured in this time."));
    this.lagPicture.replaceChildren(...shapes);
    this.lagLabel.replaceChildren(h("span", null, h("span", { class: "muted" }, "Lag, records"), shown.length ? h("span", { class: "second number" }, `at most ${short(most)}`) : null));
  }

  drawAxis() {
    const { at, step } = this.ticks;
    let before = null;
    this.axis.replaceChildren(...at.map((one) => {
      const midnight = day(one) !== before && (before !== null || step >= 86_400_000);
      const text = step >= 86_400_000 || midnight ? day(one) : step >= 60_000 ? minute(one) : clock(one);
      before = day(one);
      const x = this.scale.x(one);
      return svg("text", { class: "tick", x: round(x), y: 16, "text-anchor": x < 20 ? "start" : x > this.scale.width - 20 ? "end" : "middle" }, text);
    }));
  }

  drawBand() {
    const one = this.rebalances.find(({ id }) => id === this.selected);
    this.band?.remove();
    if (!one) return;
    const [from, to] = this.extent(one.began_ms ?? one.at_ms, one.at_ms, 4);
    this.band = h("div", { class: "band" });
    Object.assign(this.band.style, { left: `${from}px`, width: `${to - from}px` });
    this.overlay.append(this.band);
  }

  drawLegend() {
    const kinds = new Set(this.inWindow().map((one) => family(one.cause)));
    for (const lane of this.lanes()) for (const gap of lane.gaps) kinds.add(family(gap.cause));
    const key = [...kinds].sort().join();
    if (key === this.legendKey) return;
    this.legendKey = key;
    const shown = Object.keys(FAMILY_WORDS).filter((kind) => kinds.has(kind));
    this.legend.replaceChildren(
      ...(shown.length ? [h("span", null, "Gaps, by cause:")] : []),
      ...shown.map((kind) => h("span", { class: "cause", data: { family: kind } }, FAMILY_WORDS[kind])),
      h("span", { class: "hint" }, "Drag moves, Ctrl + wheel zooms, Shift + drag selects"));
  }

  // ---- moving ----

  ask(since, until) {
    const length = Math.min(Math.max(until - since, NARROWEST_MS), WIDEST_MS);
    const middle = (since + until) / 2;
    const end = Math.min(middle + length / 2, Date.now() + length * 0.05);
    this.show(Math.round(end - length), Math.round(end));
    this.move(this.since, this.until);
  }

  zoom(factor, around = (this.since + this.until) / 2) {
    this.ask(around - (around - this.since) * factor, around + (this.until - around) * factor);
  }

  pan(share) {
    const by = (this.until - this.since) * share;
    this.ask(this.since + by, this.until + by);
  }

  wheel(event) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey;
    if (sideways) { event.preventDefault(); this.pan((event.deltaX || event.deltaY) / this.scale.width); } else if (event.ctrlKey || event.metaKey) { event.preventDefault(); this.zoom(1.0015 ** event.deltaY, this.timeOf(event)); }
  }

  xOf(event) { return event.clientX - this.marks.getBoundingClientRect().left; }
  timeOf(event) { return this.scale.at(this.xOf(event)); }

  down(event) {
    if (event.button || !this.scale || this.xOf(event) < 0) return;
    const started = { x: this.xOf(event), since: this.since, until: this.until, y: event.clientY };
    const choosing = event.shiftKey;
    let moved = false;
    let selection = null;
    const gone = new AbortController();
    const on = (name, call) => addEventListener(name, call, { signal: gone.signal });
    on("pointermove", (now) => {
      const x = this.xOf(now);
      moved ||= Math.abs(x - started.x) > 3;
      if (!moved) return;
      this.leave();
      if (choosing) {
        selection ??= this.overlay.appendChild(h("div", { class: "selection" }));
        Object.assign(selection.style, { left: `${Math.min(x, started.x)}px`, width: `${Math.abs(x - started.x)}px` });
      } else {
        const by = ((started.x - x) / this.scale.width) * (started.until - started.since);
        this.ask(started.since + by, started.until + by);
      }
    });
    const end = (now) => {
      gone.abort();
      selection?.remove();
      if (!moved) this.click(now);
      else if (choosing) {
        const ends = [this.scale.at(started.x), this.timeOf(now)].sort((a, b) => a - b);
        this.ask(...ends);
      }
    };
    on("pointerup", end);
    on("pointercancel", () => { gone.abort(); selection?.remove(); });
  }

  click(event) {
    const found = this.under(event);
    if (found?.rebalance) this.open(found.rebalance);
  }

  key(event) {
    if (![this.area, this.lanesBox].includes(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const does = {
      ArrowLeft: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), PageUp: () => this.pan(-0.9), PageDown: () => this.pan(0.9),
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), "-": () => this.zoom(1.6), End: () => this.ask(Date.now() - (this.until - this.since), Date.now()),
      n: () => this.step(1), p: () => this.step(-1), Enter: () => this.selected && this.open(this.selected),
      ArrowDown: () => this.lanesBox.scrollBy(0, LANE), ArrowUp: () => this.lanesBox.scrollBy(0, -LANE),
    }[event.key];
    if (does) { event.preventDefault(); does(); }
  }

  /** Choose the next rebalance, or the one before: into the middle if it is outside. */
  step(direction) {
    const ordered = [...this.rebalances].sort((a, b) => a.at_ms - b.at_ms);
    if (!ordered.length) return;
    const index = ordered.findIndex(({ id }) => id === this.selected);
    const next = index < 0 ? (direction > 0 ? 0 : ordered.length - 1) : Math.min(Math.max(index + direction, 0), ordered.length - 1);
    const one = ordered[next];
    this.selected = one.id;
    if (one.at_ms < this.since || one.at_ms > this.until) {
      const half = (this.until - this.since) / 2;
      this.ask(one.at_ms - half, one.at_ms + half);
    } else this.draw();
    this.chosen?.(one);
  }

  // ---- looking ----

  hover(event) {
    if (event.buttons || !this.scale) return;
    const x = this.xOf(event);
    if (x < 0 || x > this.scale.width) { this.leave(); return; }
    this.hair ??= h("div", { class: "hair" });
    if (!this.hair.isConnected) this.overlay.append(this.hair);
    this.hair.style.left = `${x}px`;
    const found = this.under(event);
    this.area.style.cursor = found?.rebalance ? "pointer" : "";
    this.tip.hidden = false;
    this.tip.replaceChildren(h("span", { class: "number" }, clock(this.scale.at(x))), ...(found ? found.says : []));
    const box = this.area.getBoundingClientRect();
    const left = event.clientX - box.left, size = this.tip.getBoundingClientRect();
    this.tip.style.left = `${left + 14 + size.width > box.width ? left - 14 - size.width : left + 14}px`;
    this.tip.style.top = `${Math.min(event.clientY - box.top + 14, box.height - size.height)}px`;
  }

  leave() { this.hair?.remove(); this.tip.hidden = true; }

  /** What is under the pointer: text, and the rebalance that a click opens. */
  under(event) {
    const at = this.timeOf(event);
    const near = (NEAR_PX / this.scale.width) * (this.until - this.since);
    const box = this.lanePicture.getBoundingClientRect();
    const lanesBox = this.lanesBox.getBoundingClientRect();
    if (event.clientY < lanesBox.top) {
      const one = nearest(this.inWindow(), (each) => each.at_ms, at, near);
      const other = nearest(this.events, (each) => each.at_ms, at, near);
      if (other && (!one || event.clientY > lanesBox.top - 12)) return { says: [h("b", null, capital(other.kind)), h("span", null, other.text)] };
      return one && { rebalance: one.id, says: [h("b", null, causeWords(one.cause)), h("span", null, [one.cause_names.slice(0, 3).join(", "), one.duration_ms !== null && `took ${duration(one.duration_ms)}`].filter(Boolean).join(" · "))] };
    }
    if (event.clientY > lanesBox.bottom) return this.underLag(at);
    const lane = this.lanes()[Math.floor((event.clientY - box.top) / LANE)];
    if (!lane) return null;
    const name = laneName(lane);
    const gap = lane.gaps.find((one) => at >= one.since_ms - near / 3 && at <= (one.until_ms ?? Date.now()) + near / 3);
    if (gap) {
      const length = gap.until_ms === null ? `since ${clock(gap.since_ms)}` : `for ${duration(gap.until_ms - gap.since_ms)}`;
      return { rebalance: gap.rebalance, says: [h("b", null, `${name}: ${lane.topic === undefined ? "no partitions" : "no owner"} ${length}`), h("span", null, causeWords(gap.cause ?? "unknown"))] };
    }
    const block = lane.blocks.find(([from, to]) => at >= from && at <= (to ?? Date.now()));
    if (block) {
      const what = block[2] === null ? "several, one after the other" : lane.topic === undefined ? plural(block[2], "partition") : this.data.names[block[2]] ?? block[2];
      return { says: [h("b", null, name), h("span", null, `${what}, from ${clock(block[0])}${block[1] === null ? "" : ` to ${clock(block[1])}`}`)] };
    }
    const idle = (lane.spans ?? []).some((span) => at >= span.since_ms && at <= (span.until_ms ?? Date.now()));
    return { says: [h("b", null, name), h("span", null, lane.topic !== undefined ? "Nothing known then" : idle ? "In the group, without a partition" : "Not in the group")] };
  }

  underLag(at) {
    const point = nearest(this.lag?.points ?? [], ([time]) => time, at, (this.until - this.since) / 40);
    if (!point) return null;
    const [, records, worst, most] = point;
    return { says: [h("b", null, `${number(records)} records behind`), worst && most ? h("span", null, `most of them in ${worst[0]}:${worst[1]}, ${number(most)}`) : ""] };
  }

  /** The lanes as rows of a table: lane, from, to, what. */
  rows() {
    const found = [];
    for (const lane of this.lanes()) {
      const name = laneName(lane);
      for (const [from, to, what] of lane.blocks) found.push([from, to, name, what === null ? "several, one after the other" : lane.topic === undefined ? plural(what, "partition") : this.data.names[what] ?? what]);
      for (const gap of lane.gaps) found.push([gap.since_ms, gap.until_ms, name, `${lane.topic === undefined ? "no partitions" : "no owner"}: ${gap.cause ?? "not known why"}`]);
    }
    return found.filter(([from, to]) => from <= this.until && (to ?? Infinity) >= this.since).sort((a, b) => a[0] - b[0]);
  }
}

const laneName = (lane) => lane.name ?? `${lane.topic}:${lane.partition}`;

/** What tells lanes apart first, the rest of the name quietly behind it. */
function labelOf(lane) {
  if (lane.name === undefined) return [`${lane.topic}:${lane.partition}`];
  const at = lane.name.indexOf("@");
  return at < 1 ? [lane.name] : [lane.name.slice(0, at), h("span", { class: "muted hide-narrow-inline" }, lane.name.slice(at))];
}

const round = (value) => Math.round(value * 10) / 10;
const total = (kinds) => [...kinds.values()].reduce((a, b) => a + b, 0);

function nearest(values, time, at, within) {
  let best = null;
  for (const one of values) {
    const distance = Math.abs(time(one) - at);
    if (distance <= within && (best === null || distance < best[0])) best = [distance, one];
  }
  return best && best[1];
}
