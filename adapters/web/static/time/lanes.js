// A lane per NodeClaim, coloured by its state, grouped by NodePool, with marks of what happened. Only the lanes that are
// in view are drawn.
import { dollars, el, legendEntry } from "../shared/dom.js";
import { axis, begin, colour, cursor, gutter, shade, showTip, timeOf, xOf } from "../shared/draw.js";
import { TOP, indexAt, isThere, layRows, rowAt } from "./rows.js";
import { change, clockText, duration, view, zoom } from "../shared/view.js";

export const STATES = ["requested", "launched", "registered", "initialized", "tainted", "draining"];
const MARKS = {
  decision: ["▲", "text"], change: ["◆", "accent"], drift: ["●", "tainted"], capacity: ["✕", "draining"],
  interruption: ["▼", "error"], trouble: ["!", "error"],
};
const GRAVITY = Object.keys(MARKS); // the gravest last
const REST = 400; // ms for which the cursor rests before lanes change places
const NEAR = 6, APART = 5, LEAST_BRUSH = 4; // pixels
const scroll = document.getElementById("lanes-scroll"), room = document.getElementById("lanes-room");
const canvas = document.getElementById("lanes"), legend = document.getElementById("states");
const more = document.getElementById("more-lanes");
let lanes = [], rows = [], byClaim = new Map(), names = null, loaded = false, happened = [], laidAt = 0, resting = 0;

legend.replaceChildren(
  ...STATES.map((state) => legendEntry(state, `var(--${state})`)), el("hr"),
  ...Object.entries(MARKS).map(([kind, [sign, hue]]) => legendEntry(kind, `var(--${hue})`, { sign })),
);

export function setLanes(found) {
  lanes = found.lanes;
  names = null;
  loaded = true;
  byClaim = new Map();
  happened = found.marks.filter((mark) => mark.kind !== "decision");
  for (const mark of found.marks) {
    for (const claim of mark.claims.length ? mark.claims : [""]) {
      if (!byClaim.has(claim)) byClaim.set(claim, []);
      byClaim.get(claim).push(mark);
    }
  }
  layOut();
}

// What happened at all, for the curves: all but decisions, of which there are too many.
export function drawEvents({ context, width }, y) {
  signs(context, happened, width, y);
}

// The lanes of what is shown, as they were taken last.
export function shownLanes() {
  return lanes;
}

export function layOut() {
  const seen = lanes.filter((lane) => lane.spans[0].at <= view.to && (!lane.end || lane.end >= view.from));
  const lay = () => layRows(seen, scroll.clientHeight, view.to, view.at);
  more.hidden = true;
  let laid = lay();
  more.hidden = laid.height <= scroll.clientHeight;
  if (!more.hidden) laid = lay(); // the button takes room, too
  rows = laid.rows;
  laidAt = view.at;
  room.style.height = `${Math.max(laid.height, scroll.clientHeight)}px`;
  draw();
}

// Those that are there at the cursor come first once it rests, where not all lanes are in sight.
export function layOutSoon() {
  clearTimeout(resting);
  if (!more.hidden) resting = setTimeout(() => { if (!dragged && lanes.some((lane) => isThere(lane, laidAt) !== isThere(lane, view.at))) { layOut(); reveal(); } }, REST);
}

export function draw() {
  const drawing = begin(canvas, scroll.clientHeight || 100);
  const { context, width, height } = drawing;
  axis(drawing);
  const top = scroll.scrollTop;
  context.save();
  below(context, width, height);
  const seen = rows.slice(indexAt(rows, top + TOP), indexAt(rows, top + height) + 1);
  for (const row of seen) {
    if (row.lane) drawLane(context, width, row, row.top - top);
    else poolName(context, row, row.top - top);
  }
  context.restore();
  if (!rows.length) {
    context.fillStyle = colour(loaded ? "quiet" : "text");
    context.fillText(loaded ? "No NodeClaim in this part of the record." : `Reading the NodeClaims of ${document.getElementById("record").textContent} …`, gutter(width) + 12, TOP + 12);
  }
  if (brushed) shade(drawing, ...brushed);
  cursor(drawing);
  context.save();
  below(context, width, height);
  for (const row of seen) if (row.lane) signs(context, byClaim.get(row.lane.claim) ?? [], width, row.top - top + row.height / 2);
  context.restore();
  signs(context, byClaim.get("") ?? [], width, 24);
  tellMore(top + height);
}

// How many lanes are out of sight below.
function tellMore(bottom) {
  const hidden = rows.slice(indexAt(rows, bottom)).filter(({ lane }) => lane).length;
  more.style.visibility = hidden ? "" : "hidden"; // its room stays: nothing moves
  more.textContent = `▾ ${hidden} more`;
}

// Draws on only below the time axis.
function below(context, width, height) {
  context.beginPath();
  context.rect(0, TOP - 2, width, height);
  context.clip();
}

function poolName(context, row, top) {
  context.fillStyle = colour("quiet");
  context.textAlign = "left";
  context.font = "600 11px system-ui, sans-serif";
  context.fillText(`${row.pool || "no NodePool"}  ${row.count}`, 0, top + row.height / 2);
  context.font = "11px system-ui, sans-serif";
}

function drawLane(context, width, { lane, height }, top) {
  const left = gutter(width), chosen = isChosen(lane);
  if (chosen) { context.fillStyle = colour("hover"); context.fillRect(0, top, width, height); }
  for (const span of lane.spans) {
    if (span.state === "terminated" || span.to < view.from || span.at > view.to) continue;
    const x = Math.max(left, xOf(span.at, width));
    context.fillStyle = colour(span.state);
    context.fillRect(x, top + 1, Math.max(1, xOf(Math.min(span.to, view.to), width) - x), height - 2);
  }
  context.fillStyle = colour(chosen ? "accent" : "text");
  context.textAlign = "left";
  context.fillText(fitted(context, laneName(context, lane, left), left - 16), 8, top + height / 2);
}

function isChosen({ claim, node }) {
  return view.sel === `nodeclaim/${claim}` || (node && view.sel === `node/${node}`);
}

// Scrolls to the lane of what is selected.
export function reveal() {
  const row = rows.find(({ lane }) => lane && isChosen(lane));
  if (!row) return;
  if (row.top < scroll.scrollTop + TOP) scroll.scrollTop = row.top - TOP;
  else if (row.top + row.height > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = row.top + row.height - scroll.clientHeight;
}

// Where there is no room for a name, it goes without that of its NodePool, which stands above it: of long names the end
// tells them apart.
export function laneName(context, { claim, node_pool: pool, instance_type: type }, room) {
  const own = pool && claim.startsWith(`${pool}-`) ? claim.slice(pool.length + 1) : claim;
  if (room < 100) return own;
  return fitted(context, claim, room - 16) === claim ? `${claim}  ${type}` : `${own}  ${type}`;
}

const fits = new Map(); // text and width → as much of it as fits
function fitted(context, text, width) {
  const key = `${width} ${text}`;
  let cut = fits.get(key);
  if (cut === undefined) {
    cut = text;
    while (cut.length > 1 && context.measureText(cut).width > width) cut = `${cut.slice(0, -2)}…`;
    if (fits.size > 10_000) fits.clear();
    fits.set(key, cut);
  }
  return cut;
}

// Of signs that would cover one another the gravest is drawn.
function signs(context, marks, width, y) {
  const places = new Map();
  for (const mark of marks) {
    if (mark.at < view.from || mark.at > view.to) continue;
    const x = xOf(mark.at, width), place = Math.round(x / APART), there = places.get(place);
    if (!there || GRAVITY.indexOf(mark.kind) > GRAVITY.indexOf(there.mark.kind)) places.set(place, { mark, x });
  }
  let last = null;
  for (const [place, found] of [...places].sort(([a], [b]) => a - b)) {
    const close = last && place - last.place < 2;
    if (close && GRAVITY.indexOf(last.mark.kind) >= GRAVITY.indexOf(found.mark.kind)) continue;
    if (last && !close) sign(context, last.mark, last.x, y);
    last = { place, ...found };
  }
  if (last) sign(context, last.mark, last.x, y);
}

function sign(context, mark, x, y) {
  const [text, hue] = MARKS[mark.kind] ?? MARKS.decision;
  context.textAlign = "center";
  context.lineWidth = 3;
  context.strokeStyle = colour("panel");
  context.strokeText(text, x, y);
  context.fillStyle = colour(hue);
  context.fillText(text, x, y);
  context.textAlign = "left";
}

function under(event) {
  return event.offsetY < TOP ? undefined : rowAt(rows, event.offsetY + scroll.scrollTop);
}

function nearMarks(x, row, width) {
  const distance = (mark) => Math.abs(xOf(mark.at, width) - x);
  if (row && !row.lane) return [];
  return nearest(byClaim.get(row?.lane.claim ?? "") ?? [], distance);
}

function nearest(marks, distance) {
  return marks.filter((mark) => distance(mark) < NEAR).sort((a, b) => distance(a) - distance(b));
}

// The events that `drawEvents` draws at a place.
export function eventsNear(x, width) {
  return nearest(happened, (mark) => Math.abs(xOf(mark.at, width) - x));
}

let dragged = null, brushed = null;
canvas.addEventListener("pointerdown", (event) => {
  const width = canvas.clientWidth, row = under(event), [mark] = nearMarks(event.offsetX, row, width);
  const time = timeOf(event.offsetX, width), named = event.offsetX < gutter(width);
  dragged = { time, x: event.offsetX, brush: event.shiftKey };
  canvas.setPointerCapture(event.pointerId);
  if (named && row && !row.lane) return change({ sel: `nodepool/${row.pool}`, tab: "why" });
  if (mark && !event.shiftKey && !named) return goTo(mark);
  const changes = named || event.shiftKey ? {} : { at: time };
  if (row?.lane && !event.shiftKey) changes.sel = `nodeclaim/${row.lane.claim}`;
  change(changes);
});
canvas.addEventListener("pointermove", (event) => {
  const width = canvas.clientWidth, time = timeOf(event.offsetX, width);
  change({ hover: time });
  if (dragged?.brush && event.buttons & 1) {
    brushed = [dragged.time, time].sort((a, b) => a - b);
    showTip(event, `${clockText(brushed[0])}\n${clockText(brushed[1])}\n${duration(brushed[1] - brushed[0])}`);
    return draw();
  }
  if (dragged && event.buttons & 1) return event.offsetX >= gutter(width) ? change({ at: time }) : undefined;
  const row = under(event), near = nearMarks(event.offsetX, row, width).sort((a, b) => a.position - b.position);
  if (near.length) return showTip(event, near.slice(0, 6).map(markText).join("\n"));
  showTip(event, row?.lane ? laneText(row.lane, time) : "");
});
canvas.addEventListener("pointerup", (event) => {
  if (dragged?.brush && Math.abs(event.offsetX - dragged.x) >= LEAST_BRUSH) change({ from: brushed[0], to: brushed[1] });
  dragged = brushed = null;
  showTip(event, "");
});
canvas.addEventListener("pointerleave", (event) => { showTip(event, ""); change({ hover: 0 }); });
canvas.addEventListener("wheel", (event) => {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeOf(event.offsetX, canvas.clientWidth));
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    const shift = ((view.to - view.from) * (event.deltaX || event.deltaY)) / canvas.clientWidth;
    const from = Math.max(view.since, Math.min(view.until - (view.to - view.from), view.from + shift));
    change({ from: Math.round(from), to: Math.round(from + view.to - view.from) });
  } else if (scroll.scrollHeight <= scroll.clientHeight) {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, timeOf(event.offsetX, canvas.clientWidth));
  }
}, { passive: false });
scroll.addEventListener("scroll", () => requestAnimationFrame(draw));
more.onclick = () => scroll.scrollBy({ top: scroll.clientHeight - 2 * TOP });

// Why: the decision; what happened to a NodeClaim; or what happened at all.
export function goTo({ kind, at, position, claims: [claim] }) {
  if (kind === "decision") change({ at, sel: `decision/${position}`, tab: "why" });
  else change(claim ? { at, sel: `nodeclaim/${claim}`, tab: "why" } : { at, sel: "", tab: "log" });
}

export function markText(mark) {
  const more = mark.more ? `\n  and ${mark.more} more of these at this place: zoom in` : "";
  return `${clockText(mark.at)}  position ${mark.position}\n${mark.text}${more}`;
}

function laneText(lane, time) {
  const span = lane.spans.findLast((known) => known.at <= time);
  const what = [lane.instance_type, lane.capacity_type, lane.zone].filter(Boolean).join(" ");
  return `${lane.claim}${lane.node ? "  " + lane.node : ""}\n${what}  ${dollars(lane.price)}\n${span ? `${span.state} since ${clockText(span.at)} (${duration(time - span.at)})` : `requested at ${clockText(lane.spans[0].at)}`}${lane.why ? "\n" + lane.why : ""}`;
}

export function neighbour(step) {
  const order = rows.filter((row) => row.lane);
  const now = order.findIndex((row) => isChosen(row.lane));
  const next = order[now < 0 ? (step > 0 ? 0 : order.length - 1) : Math.max(0, Math.min(order.length - 1, now + step))];
  return next && `nodeclaim/${next.lane.claim}`;
}

export function knownNames() {
  if (names) return names;
  names = new Map();
  for (const lane of lanes) {
    names.set(lane.claim, `nodeclaim/${lane.claim}`);
    if (lane.node) names.set(lane.node, `node/${lane.node}`);
    if (lane.node_pool) names.set(lane.node_pool, `nodepool/${lane.node_pool}`);
  }
  return names;
}
