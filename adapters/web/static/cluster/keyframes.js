// The nodes at a moment as the tiles tell them, drawn while the cursor moves: state, type, price and how full each is.
// The exact state, with its pods, is asked for once the cursor rests.
import { dollars } from "../shared/dom.js";
import { begin, boxOf, colour } from "../shared/draw.js";
import { fillAt } from "../time/fills.js";
import { shownLanes } from "../time/lanes.js";
import { view } from "../shared/view.js";

const GAP = 8, HEADING = 26, HEAD = 54, FOOT = 22, GAUGES = 30, PADDING = 12;
const section = document.getElementById("cluster"), nodes = document.getElementById("nodes"), canvas = document.getElementById("frame");
const totals = document.getElementById("totals"), told = document.getElementById("exactness");

// Whether the tiles that are there tell of a moment.
export function canFrame(time) {
  return time >= view.from && time <= view.to && shownLanes().length > 0;
}

export function hideFrame() {
  section.classList.remove("moving");
  told.textContent = "exact";
}

export function drawFrame() {
  const there = nodesAt(view.at);
  section.classList.add("moving");
  told.textContent = "while moving: nodes without their pods";
  const price = there.reduce((sum, { lane }) => sum + lane.price, 0);
  totals.textContent = `nodes: ${there.length}, ${dollars(price)}`;
  const { top, height } = visible();
  canvas.style.top = `${top}px`;
  const drawing = begin(canvas, height), shift = nodes.offsetTop - top;
  for (const item of lay(there, drawing.width)) {
    const placed = { ...item, y: item.y + shift };
    if (item.heading) heading(drawing, placed);
    else box(drawing, placed);
  }
}

// The part of the section, below its head, that is in view.
function visible() {
  const { top, bottom } = section.getBoundingClientRect(), head = section.querySelector(".head");
  const begin = Math.max(head.offsetTop + head.offsetHeight, section.scrollTop + Math.max(0, -top));
  const end = section.scrollTop + Math.min(bottom, innerHeight) - top;
  return { top: begin, height: Math.max(1, Math.min(end - begin, innerHeight)) };
}

function nodesAt(time) {
  const there = [];
  for (const lane of shownLanes()) {
    if (lane.spans[0].at > time || (lane.end && lane.end <= time)) continue;
    let i = lane.spans.length - 1;
    while (i > 0 && lane.spans[i].at > time) i--;
    if (lane.node && !["terminated", "requested"].includes(lane.spans[i].state)) there.push({ lane, state: lane.spans[i].state });
  }
  return there;
}

// Where each box stands: as the exact boxes do, in rows, by NodePool or zone.
function lay(there, width) {
  const by = document.getElementById("group").value, groups = new Map();
  for (const node of there) {
    const name = node.lane[by];
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(node);
  }
  const most = Math.max(1000, ...there.map(({ lane }) => lane.cpu)), items = [];
  let y = -4;
  for (const name of [...groups.keys()].sort()) {
    items.push({ heading: `${name || "none"}  ${groups.get(name).length}`, y });
    y += HEADING;
    let x = 0, row = 0;
    for (const node of groups.get(name).sort((a, b) => (a.lane.node < b.lane.node ? -1 : 1))) {
      const { side, few } = boxOf(node.lane.cpu / most, there.length, width), height = side + HEAD + FOOT + (few ? GAUGES : 0);
      if (x && x + side > width) { x = 0; y += row + GAP; row = 0; }
      items.push({ ...node, x, y, side, few, height });
      x += side + GAP;
      row = Math.max(row, height);
    }
    y += row + PADDING;
  }
  return items;
}

function heading({ context }, { heading: text, y }) {
  context.fillStyle = colour("text");
  context.font = "600 12px system-ui, sans-serif";
  context.fillText(text, 0, y + HEADING / 2);
}

function box({ context, height: bottom }, { lane, state, x, y, side, few, height }) {
  if (y > bottom || y + height < 0) return;
  context.fillStyle = colour("panel");
  context.fillRect(x, y, side, height);
  context.fillStyle = colour("free");
  context.fillRect(x, y + HEAD, side, side);
  const share = fillAt(lane.node, view.at);
  if (share !== undefined) {
    const tall = side * Math.min(1, share / 100);
    context.fillStyle = colour("quiet");
    context.globalAlpha = 0.28;
    context.fillRect(x, y + HEAD + side - tall, side, tall);
    context.globalAlpha = 1;
  }
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.strokeRect(x + 0.5, y + 0.5, side - 1, height - 1);
  context.fillStyle = colour(state);
  context.fillRect(x, y, side, 4);
  context.save();
  context.beginPath();
  context.rect(x, y, side - 4, height);
  context.clip();
  context.fillStyle = colour("text");
  context.font = "600 11px system-ui, sans-serif";
  context.fillText(lane.node, x + 7, y + 14);
  context.font = "11px system-ui, sans-serif";
  context.fillText(`${lane.instance_type} $${lane.price.toFixed(4)}${few ? "/h" : ""}`, x + 7, y + 28);
  context.fillStyle = colour("quiet");
  context.fillText(state, x + 7, y + 42);
  if (share !== undefined) context.fillText(`${share} % asked for`, x + 7, y + HEAD + side + 11);
  context.restore();
}
