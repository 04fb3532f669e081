// A table of any length: only the rows that can be seen are there, the page scrolls, arrow keys walk.
import { h } from "./dom.js";

const MORE_ROWS = 12;

/**
 * columns: [{ id, title, sort: (row) => value, class, cell: (row) => node }]; the first one is the row's header.
 * empty: () => node, when there are no rows.
 */
export class Table {
  constructor({ label, columns, key, empty, sort = null, onsort = null, end = null, signal }) {
    Object.assign(this, { columns, key, empty, sort, onsort, end });
    this.rows = [];
    this.sorted = [];
    this.live = new Map();
    this.rowHeight = 44;
    this.heads = new Map();
    this.above = h("tr", { class: "space", "aria-hidden": "true" }, h("td"));
    this.below = h("tr", { class: "space", "aria-hidden": "true" }, h("td"));
    this.body = h("tbody", { onkeydown: (event) => this.walk(event) });
    this.table = h("table", { "aria-label": label }, h("thead", null, h("tr", null, columns.map((column) => this.head(column)))), this.body);
    this.nothing = h("div", { class: "empty", hidden: true });
    this.element = h("div", { class: "card table virtual" }, this.table, this.nothing);
    let frame = 0;
    const look = () => { frame ||= requestAnimationFrame(() => { frame = 0; this.draw(); }); };
    addEventListener("scroll", look, { passive: true, signal });
    addEventListener("resize", () => { this.measured = false; this.range = null; look(); }, { signal });
  }

  head(column) {
    const cell = h("th", { scope: "col", class: column.class });
    if (column.sort) cell.append(h("button", { type: "button", onclick: () => this.sortBy(column) }, column.title));
    else if (column.title) cell.append(column.title);
    else cell.append(h("span", { class: "visually-hidden" }, column.name));
    this.heads.set(column.id, cell);
    return cell;
  }

  sortBy(column) {
    const [id, descending] = this.sort ?? [];
    this.sort = [column.id, id === column.id ? !descending : column.descending ?? false];
    this.onsort?.(...this.sort);
    this.set(this.rows);
  }

  set(rows) {
    this.rows = rows;
    const column = this.sort && this.columns.find(({ id }) => id === this.sort[0]);
    this.sorted = column ? [...rows].sort(by(column.sort, this.sort[1])) : rows;
    for (const [id, cell] of this.heads) {
      if (id === column?.id) cell.setAttribute("aria-sort", this.sort[1] ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.table.hidden = !rows.length;
    this.nothing.hidden = Boolean(rows.length);
    if (!rows.length) this.nothing.replaceChildren(this.empty());
    this.draw(true);
  }

  /** Draw again what changed in a row, in its place. */
  refresh(key) {
    this.live.get(key)?.remove();
    this.live.delete(key);
    this.draw(true);
  }

  draw(always = false) {
    if (!this.table.isConnected || !this.sorted.length) { this.live.forEach((row) => row.remove()); this.live.clear(); return; }
    const top = this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / this.rowHeight) - MORE_ROWS);
    const last = Math.min(this.sorted.length, Math.ceil((innerHeight - top) / this.rowHeight) + MORE_ROWS);
    const range = `${first} ${last}`;
    if (always || range !== this.range) {
      this.range = range;
      this.place(first, Math.max(last, Math.min(first + 1, this.sorted.length)), always);
    }
    if (last >= this.sorted.length && !always) this.end?.();
  }

  place(first, last, always) {
    const wanted = this.sorted.slice(first, last);
    const keep = new Set(wanted.map(this.key));
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    for (const [key, row] of this.live) {
      // The focus would be lost with its row: that one stays until it is left.
      if (!keep.has(key) && row !== focused) { row.remove(); this.live.delete(key); }
    }
    this.above.firstChild.style.height = `${first * this.rowHeight}px`;
    this.below.firstChild.style.height = `${Math.max(0, this.sorted.length - last) * this.rowHeight}px`;
    this.above.hidden = first === 0;
    this.below.hidden = last >= this.sorted.length;
    if (!this.above.isConnected) this.body.append(this.above, this.below);
    let before = this.above;
    wanted.forEach((value, index) => {
      const key = this.key(value);
      let row = this.live.get(key);
      if (!row || (always && row.value !== value)) {
        const made = this.row(value);
        if (row) {
          if (row === focused) { row.replaceWith(made); made.querySelector("a, button")?.focus({ preventScroll: true }); } else row.remove();
        }
        row = made;
        this.live.set(key, row);
      }
      row.setAttribute("aria-rowindex", String(first + index + 2));
      if (before.nextSibling !== row) before.after(row);
      before = row;
    });
    if (!this.measured && wanted.length) {
      this.measured = true;
      const height = before.getBoundingClientRect().height;
      if (height && Math.abs(height - this.rowHeight) > 0.1) { this.rowHeight = height; this.draw(true); }
    }
  }

  row(value) {
    const [header, ...rest] = this.columns;
    const row = h("tr", null, h("th", { scope: "row", class: header.class }, header.cell(value)), rest.map((column) => h("td", { class: column.class }, column.cell(value))));
    row.value = value;
    return row;
  }

  walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const row = event.target.closest("tr");
    if (!step || !row?.value) return;
    const target = this.sorted[this.sorted.findIndex((one) => this.key(one) === this.key(row.value)) + step];
    if (!target) return;
    event.preventDefault();
    scrollBy(0, step * this.rowHeight);
    this.draw(true);
    this.live.get(this.key(target))?.querySelector("a, button")?.focus({ preventScroll: true });
  }
}

function by(value, descending) {
  const sign = descending ? -1 : 1;
  return (one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === b) return 0;
    // What is not known stands at the end either way.
    if (a === null || a === undefined) return 1;
    if (b === null || b === undefined) return -1;
    return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  };
}

/** A small table as it is, for what stands behind a picture. */
export function plainTable(label, titles, rows) {
  return h("div", { class: "scroll-x", tabindex: "0", role: "region", "aria-label": label },
    h("table", { class: "plain" }, h("caption", { class: "visually-hidden" }, label),
      h("thead", null, h("tr", null, titles.map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", null, rows.map(([first, ...rest]) => h("tr", null, h("th", { scope: "row" }, first), rest.map((cell) => h("td", null, cell)))))));
}
