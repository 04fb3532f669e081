// Time along a picture, and the moments that are marked under it.
const STEPS = [1, 2, 5, 10, 15, 30].map((s) => s * 1000).concat([1, 2, 5, 10, 15, 30].map((m) => m * 60_000), [1, 2, 3, 6, 12].map((hour) => hour * 3_600_000), [1, 2, 5, 10].map((d) => d * 86_400_000));

export class Scale {
  constructor(since, until, width) { Object.assign(this, { since, until, width }); }
  x(ms) { return ((ms - this.since) / (this.until - this.since)) * this.width; }
  at(x) { return this.since + (x / this.width) * (this.until - this.since); }

  /** Moments at round times, some 100 px apart, and their step. */
  ticks(utc) {
    const least = ((this.until - this.since) / this.width) * 100;
    const step = STEPS.find((one) => one >= least) ?? STEPS.at(-1);
    const offset = utc ? 0 : new Date(this.since).getTimezoneOffset() * 60_000;
    const found = [];
    for (let at = Math.ceil((this.since - offset) / step) * step + offset; at < this.until; at += step) found.push(at);
    return { step, at: found };
  }
}

/** Round figures up to `most` for the vertical axis: none is closer than a third of it. */
export function levels(most) {
  if (most <= 0) return [];
  const power = 10 ** Math.floor(Math.log10(most));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => most / one <= 3) ?? power;
  const found = [];
  for (let at = step; at <= most; at += step) found.push(at);
  return found;
}
