// Numbers, times and causes as people read them.
import { settings } from "./settings.js";

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;

export const number = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US"));

/** 950, 12 k, 3.4 M */
export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value < 10_000) return number(value);
  const [size, unit] = value < 1e6 ? [1e3, "k"] : value < 1e9 ? [1e6, "M"] : [1e9, "bn"];
  return `${(value / size).toFixed(value / size < 10 ? 1 : 0)} ${unit}`;
}

/** 840 ms, 1.2 s, 3 min 20 s, 5 h 12 min, 3 days */
export function duration(ms) {
  if (ms === null || ms === undefined) return "not known";
  if (ms < SECOND) return `${Math.round(ms)} ms`;
  if (ms < MINUTE) return `${(ms / SECOND).toFixed(ms < 10 * SECOND ? 1 : 0)} s`;
  if (ms < HOUR) return pair(ms, MINUTE, "min", SECOND, "s");
  if (ms < 2 * DAY) return pair(ms, HOUR, "h", MINUTE, "min");
  return `${Math.round(ms / DAY)} days`;
}

function pair(ms, large, largeName, small, smallName) {
  const first = Math.floor(ms / large);
  const rest = Math.floor((ms % large) / small);
  return rest ? `${first} ${largeName} ${rest} ${smallName}` : `${first} ${largeName}`;
}

export function ago(ms, now) {
  const past = now - ms;
  if (past < 5 * SECOND) return "just now";
  if (past < MINUTE) return `${Math.floor(past / SECOND)} s ago`;
  if (past < HOUR) return `${Math.floor(past / MINUTE)} min ago`;
  if (past < 2 * DAY) return `${Math.floor(past / HOUR)} h ago`;
  return `${Math.floor(past / DAY)} days ago`;
}

/** How long partitions had no owner, summed, for narrow columns: 41 partition-s, 812 partition-min */
export function unowned(ms) {
  if (ms === null || ms === undefined) return "not known";
  if (!ms) return "none";
  const [figure, unit] = unownedParts(ms);
  return `${figure} ${{ "partition-seconds": "partition-s", "partition-minutes": "partition-min", "partition-hours": "partition-h" }[unit]}`;
}

/** The figure and its unit: ["3.1", "partition-minutes"] */
export function unownedParts(ms) {
  if (ms < 2 * MINUTE) return [(ms / SECOND).toFixed(ms && ms < 10 * SECOND ? 1 : 0), "partition-seconds"];
  if (ms < 100 * HOUR) return [ms < 10 * MINUTE ? (ms / MINUTE).toFixed(1) : number(ms / MINUTE), "partition-minutes"];
  return [number(ms / HOUR), "partition-hours"];
}

export const unownedWords = (ms) => unownedParts(ms).join(" ");

const formats = new Map();
function formatted(ms, options) {
  const zone = settings.utc ? "UTC" : undefined;
  const key = JSON.stringify([options, zone]);
  if (!formats.has(key)) formats.set(key, new Intl.DateTimeFormat("en-GB", { hourCycle: "h23", timeZone: zone, ...options }));
  return formats.get(key).format(ms);
}

export const clock = (ms) => formatted(ms, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const minute = (ms) => formatted(ms, { hour: "2-digit", minute: "2-digit" });
export const day = (ms) => formatted(ms, { day: "numeric", month: "short" });
export const dateTime = (ms) => `${formatted(ms, { day: "numeric", month: "short", year: "numeric" })}, ${clock(ms)}${settings.utc ? " UTC" : ""}`;
/** The time of today, with the day when it is another one. */
export const when = (ms, now) => (day(ms) === day(now) && Math.abs(now - ms) < DAY ? clock(ms) : `${day(ms)}, ${clock(ms)}`);

export const capital = (text) => (text ? text[0].toUpperCase() + text.slice(1) : text);
export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

const FAMILIES = {
  "member joined": "members", "member left": "members", "member restarted": "members",
  "static member restarted": "members", "member id given back": "members", "downgraded to the classic protocol": "members",
  "session expired": "failed", "sync missing": "failed", "assignment not stored": "failed", "coordinator changed": "failed",
  "poll interval exceeded": "slow", "partitions not given up": "slow", "did not rejoin in time": "slow",
  "topics changed": "topics", "member changed its protocols": "topics", "leader rejoined": "topics",
  "cooperative rebalance went on": "topics",
  "instance id used twice": "conflict", "member removed by an operator": "conflict", "group above its maximum size": "conflict",
};
/** The cause as a title. */
export const causeWords = (cause) => (cause === "unknown" ? "Cause not known" : capital(cause));
export const family = (cause) => FAMILIES[cause] ?? "unknown";
export const FAMILY_WORDS = {
  members: "Came, went, restarted", failed: "Failed or lost", slow: "Too slow", topics: "Topics or subscription",
  conflict: "Conflict or removed", unknown: "Not known",
};

const SURE = {
  exact: "Exact: the coordinator itself says so.",
  certain: "Certain: what was seen has no other explanation.",
  likely: "Likely: what was seen fits, and other explanations fit worse.",
  possible: "Possible: one of several explanations that fit about as well.",
  unknown: "Not known: nothing that was seen tells.",
};
export const sure = (confidence) => SURE[confidence] ?? confidence;

/** [3, 4, 5, 9] as "3–5, 9" */
export function runs(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const found = [];
  for (const one of sorted) {
    const last = found.at(-1);
    if (last && one === last[1] + 1) last[1] = one;
    else found.push([one, one]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}
