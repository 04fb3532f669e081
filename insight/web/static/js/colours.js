// Colours of owners: no two in one view look alike.
import { svg } from "./dom.js";

/** The number of colours that can be told from each other without a second look; each further dozen is hatched in a way of its own. */
const HUES = 12;
const HATCHES = [null, "M0 6L6 0", "M0 0L6 6", "M0 3H6"];
/** After all hatches the hues lie between those before: golden section, so that none comes again. */
const BETWEEN = (360 / HUES) * 0.618;

export class Colours {
  constructor() { this.given = new Map(); }

  /** Each keeps its colour as long as it is among the `owners`; the colours of those that are gone are free again. */
  give(owners) {
    const shown = new Set(owners);
    for (const owner of this.given.keys()) if (!shown.has(owner)) this.given.delete(owner);
    const taken = new Set(this.given.values());
    let next = 0;
    for (const owner of shown) {
      if (this.given.has(owner)) continue;
      while (taken.has(next)) next++;
      taken.add(next);
      this.given.set(owner, next);
    }
  }

  /** The blocks of one owner, and what they are hatched with. */
  paths(owner, d) {
    const index = this.given.get(owner);
    // Five twelfths of the circle on each time: those that come one after the other are far from each other.
    const place = (index * 5) % HUES;
    const hatch = Math.floor(index / HUES) % HATCHES.length;
    const block = svg("path", { class: `block ${place % 2 ? "deep" : "light"}`, d, data: { owner, hatch } });
    block.style.setProperty("--hue", String((place * 360) / HUES + Math.floor(index / (HUES * HATCHES.length)) * BETWEEN));
    return hatch ? [block, svg("path", { class: "hatch", fill: `url(#hatch-${hatch})`, d })] : [block];
  }
}

export const hatches = () => svg("defs", null, HATCHES.map((line, index) => line && svg("pattern", { id: `hatch-${index}`, width: 6, height: 6, patternUnits: "userSpaceOnUse" }, svg("path", { class: "hatch-line", d: line }))));
