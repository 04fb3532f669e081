// Every view has a link: #/group/NAME?from=...&to=...
export function here() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  let parts;
  try { parts = path.split("/").filter(Boolean).map(decodeURIComponent); } catch { parts = ["?"]; }
  return { parts, query: new URLSearchParams(query) };
}

/** The cluster that is shown; "" where there is only one, or none is chosen. */
export const chosen = () => here().query.get("cluster") ?? "";

/** A link within the cluster that is shown, unless `query` names another. */
export function href(parts, query = {}) {
  const kept = Object.entries({ cluster: chosen(), ...query }).filter(([, value]) => value !== null && value !== undefined && value !== "");
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
