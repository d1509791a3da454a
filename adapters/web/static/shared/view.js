// What is looked at: one moment, one part of the record, one selection. It stands in the URL, so that links lead back.
export const view = { at: 0, from: 0, to: 0, sel: "", tab: "first", zone: "utc", pin: 0, hover: 0, since: 0, until: 0, known: 0 };
const SHORTEST = 20; // ms that are shown at least
const FROM_DISK = location.protocol === "file:"; // there only what follows "#" may change
const listeners = [];
let writing = 0;

export function onView(listener) {
  listeners.push(listener);
}

export function readUrl() {
  const told = new URLSearchParams(FROM_DISK ? location.hash.slice(1) : location.search);
  for (const name of ["at", "from", "to", "pin"]) {
    const time = Date.parse(told.get(name) ?? "");
    if (!Number.isNaN(time)) view[name] = time;
  }
  for (const name of ["sel", "tab", "zone"]) if (told.has(name)) view[name] = told.get(name);
  if (told.has("sel") && !told.has("tab")) view.tab = "why";
}

// Another selection or tab is a step that the browser's Back undoes; all else, like the cursor, only rewrites the URL.
export function change(changes) {
  const stepped = ["sel", "tab"].some((name) => name in changes && changes[name] !== view[name]);
  if (stepped && writing) writeUrl("replaceState");
  Object.assign(view, changes);
  keepInside();
  clearTimeout(writing);
  if (stepped) writeUrl("pushState");
  else writing = setTimeout(writeUrl, 150, "replaceState");
  for (const listener of listeners) listener(changes);
}

function keepInside() {
  view.at = clamp(view.at, view.since, view.until);
  if (view.to - view.from < SHORTEST) view.to = view.from + SHORTEST;
}

// Back and Forward: what the URL says is shown again.
addEventListener("popstate", () => {
  clearTimeout(writing);
  writing = 0;
  const before = { ...view };
  Object.assign(view, { from: view.since, to: view.until, sel: "", tab: "first", zone: "utc", pin: 0 });
  readUrl();
  keepInside();
  const changes = Object.fromEntries(Object.entries(view).filter(([name, value]) => value !== before[name]));
  for (const listener of listeners) listener(changes);
});

function writeUrl(how) {
  clearTimeout(writing);
  writing = 0;
  const told = new URLSearchParams();
  told.set("at", iso(view.at));
  if (view.from !== view.since || view.to !== view.until) {
    told.set("from", iso(view.from));
    told.set("to", iso(view.to));
  }
  if (view.pin) told.set("pin", iso(view.pin));
  for (const [name, usual] of [["sel", ""], ["tab", view.sel ? "why" : "first"], ["zone", "utc"]]) if (view[name] !== usual) told.set(name, view[name]);
  history[how](null, "", FROM_DISK ? `#${told}` : `${location.pathname}?${told}`);
}

export function zoom(factor, around = view.at) {
  const length = clamp((view.to - view.from) * factor, SHORTEST, view.until - view.since || 1000);
  const share = clamp((around - view.from) / (view.to - view.from), 0, 1);
  const from = clamp(around - share * length, view.since, Math.max(view.since, view.until - length));
  change({ from: Math.round(from), to: Math.round(from + length) });
}

export function clamp(value, least, most) {
  return Math.min(most, Math.max(least, value));
}

export function iso(ms) {
  return new Date(ms).toISOString();
}

export function clockText(ms, precise = true) {
  const text = view.zone === "utc" ? iso(ms).replace("T", " ").replace("Z", "") : local(ms);
  return precise ? text : text.slice(11, 19);
}

function local(ms) {
  const moment = new Date(ms);
  return iso(ms - moment.getTimezoneOffset() * 60_000).replace("T", " ").replace("Z", "");
}

// In whole seconds and the two largest units, rounded down as in the texts of the commands beside it.
export function duration(ms) {
  const seconds = Math.floor(ms / 1000);
  for (const [unit, size, lower, part] of [["d", 86_400, "h", 3600], ["h", 3600, "m", 60], ["m", 60, "s", 1]]) {
    if (seconds < size) continue;
    const rest = Math.floor((seconds % size) / part);
    return `${Math.floor(seconds / size)}${unit}${rest ? rest + lower : ""}`;
  }
  return `${seconds}s`;
}
