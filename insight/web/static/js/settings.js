// What this browser remembers: the theme, and whether times are in UTC.
const read = (name) => { try { return localStorage.getItem(`ringleader.${name}`); } catch { return null; } };
const write = (name, value) => { try { localStorage.setItem(`ringleader.${name}`, value); } catch { /* as good without */ } };

const dark = matchMedia("(prefers-color-scheme: dark)");

export const settings = { utc: read("utc") === "yes" };

function theme() {
  return read("theme") ?? (dark.matches ? "dark" : "light");
}

function show() {
  const now = theme();
  document.documentElement.dataset.theme = now;
  const button = document.getElementById("theme");
  button.textContent = now === "dark" ? "Light" : "Dark";
}

export function setUp(changed) {
  const utc = document.getElementById("clock");
  utc.setAttribute("aria-pressed", String(settings.utc));
  utc.addEventListener("click", () => {
    settings.utc = !settings.utc;
    write("utc", settings.utc ? "yes" : "no");
    utc.setAttribute("aria-pressed", String(settings.utc));
    changed();
  });
  document.getElementById("theme").addEventListener("click", () => {
    write("theme", theme() === "dark" ? "light" : "dark");
    show();
  });
  dark.addEventListener("change", show);
  show();
}
