// The page: reads the URL, asks the API, hands the answers to the views. Each view is a module of its own.
import { ask, useToken } from "./shared/api.js";
import * as curves from "./time/curves.js";
import { drawNodes } from "./cluster/cluster.js";
import { el } from "./shared/dom.js";
import { exported, exportNote } from "./shared/exported.js";
import { fail } from "./shared/failing.js";
import "./keys.js";
import * as lanes from "./time/lanes.js";
import { watch } from "./time/live.js";
import { drawMoving, look } from "./cluster/looking.js";
import { panelSoon } from "./panel/panel.js";
import { onTheme, readTheme } from "./shared/theme.js";
import { timeline } from "./time/tiles.js";
import { takeSoon, takeTimes } from "./time/times.js";
import { change, clamp, clockText, onView, readUrl, view } from "./shared/view.js";

const LONG = 20_000; // entries; what is shorter is read at once
const get = (id) => document.getElementById(id);

async function start() {
  readTheme();
  try {
    const record = await ask("record");
    get("record").textContent = record.record.split("/").at(-1);
    get("record").title = [record.record, `positions ${record.first} to ${record.last}`, ...(record.lacks.length ? [`Partial. It does not tell ${record.lacks.join("; ")}`] : [])].join("\n");
    document.title = `${get("record").textContent} · kerf`;
    Object.assign(view, { since: record.since, until: record.until, known: record.known, from: record.since, to: record.until, at: record.until });
    get("exported").textContent = exported ? exportNote() : "";
    get("exported").hidden = !exported;
    readUrl();
    onTheme(draw);
    tellTime();
    tellReading(get("record").textContent);
    draw();
    const looked = record.last - record.first > LONG ? lookFirst() : undefined;
    await takeTimes();
    if (timeline.fault) endAt(timeline.until - 1);
    onView(changed);
    const { at, ...others } = view;
    change(at === looked ? others : { at, ...others });
    watch(record.last);
  } catch (error) {
    if (error.status === 401) get("locked").showModal();
    else fail(error);
  }
}

// Of a damaged record what comes before the damage is shown: the ms in which it lies cannot be read.
function endAt(until) {
  Object.assign(view, { until, to: Math.min(view.to, until), at: Math.min(view.at, until) });
}

// Asks for the cluster before the times: the first look at a long record takes seconds.
function lookFirst() {
  view.at = clamp(view.at, view.since, view.until);
  look();
  return view.at;
}

function tellTime() {
  get("clock").textContent = clockText(view.at);
  get("zone").textContent = view.zone === "utc" ? "UTC" : "local";
  get("pin").textContent = view.pin ? `pin ${clockText(view.pin, false)}` : "pin";
  get("pin").setAttribute("aria-pressed", Boolean(view.pin));
  get("pin").title = view.pin ? `${clockText(view.pin)} is pinned: Compare tells what differs. Once more at that moment: unpin (p)` : "Pin this moment, to compare another one with it (p)";
}

// What the page waits for, until the first answers are there.
function tellReading(name) {
  const state = `Reading the cluster's state at ${clockText(view.at)}`;
  get("grounds").replaceChildren(el("span", "reading", `${state} from ${name} …`));
  get("totals").replaceChildren(el("span", "reading", `${state} …`));
  get("text").replaceChildren(el("p", "reading", `Reading lanes, costs and marks of ${name} …`));
}

function changed(changes) {
  tellTime();
  if ("from" in changes || "to" in changes) { lanes.layOut(); takeSoon(); }
  drawSoon();
  if ("at" in changes || "zone" in changes) look();
  if ("sel" in changes) { drawNodes(); lanes.reveal(); }
  if ("at" in changes) lanes.layOutSoon();
  if ("at" in changes || "sel" in changes || "tab" in changes || "pin" in changes || "zone" in changes) panelSoon();
}

let due = false;
function drawSoon() {
  if (!due) requestAnimationFrame(draw);
  due = true;
}

function draw() {
  due = false;
  curves.draw();
  lanes.draw();
  drawMoving();
}

get("locked").onclose = () => { useToken(get("token").value.trim()); start(); };
addEventListener("resize", () => { lanes.layOut(); curves.draw(); });
start();
