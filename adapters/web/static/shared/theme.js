// Light or dark: as the machine says, until somebody chooses.
const KEY = "kerf-theme";
const listeners = [];

export function onTheme(listener) {
  listeners.push(listener);
}

export function readTheme() {
  setTheme(localStorage.getItem(KEY) ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
}

export function switchTheme() {
  const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, theme);
  setTheme(theme);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
}
