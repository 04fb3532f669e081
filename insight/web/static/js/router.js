// Every view has a link: #/group/NAME?from=...&to=...
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  let parts;
  try { parts = path.split("/").filter(Boolean).map(decodeURIComponent); } catch { parts = ["?"]; }
  return { parts, query: new URLSearchParams(query) };
}

export function href(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const asked = kept.length ? `?${new URLSearchParams(kept)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${asked}`;
}

/** Change what stands behind the question mark; `push`: as a step that one can go back from. */
export function amend(changes, push = false) {
  const { parts, query } = here();
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const target = href(parts, Object.fromEntries(query));
  if (target === location.hash) return;
  history[push ? "pushState" : "replaceState"](null, "", target);
}
