// Curves over time: cost per hour by NodePool as areas, nodes and waiting pods as lines, evictions as bars.
import { dollars, legendEntry } from "../shared/dom.js";
import { axis, begin, colour, cursor, gutter, handle, hueOf, showTip, timeOf, xOf } from "../shared/draw.js";
import { drawEvents, eventsNear, goTo, markText } from "./lanes.js";
import { change, clockText, view } from "../shared/view.js";

const HEIGHT = 120, COST = 74, EVENTS = 22, TOP = 32; // the cost has the upper part, the rest the lower one
const canvas = document.getElementById("curves");
let curves = null;

export function setCurves(found) {
  curves = found;
  const legend = document.getElementById("legend");
  legend.replaceChildren(
    ...Object.keys(found.cost).map((pool) => legendEntry(`${pool || "no NodePool"} $/h`, hueOf(pool), { action: pool && (() => change({ sel: `nodepool/${pool}`, tab: "why" })) })),
    legendEntry("nodes", "var(--text)"), legendEntry("waiting pods", "var(--tainted)"), legendEntry("evictions", "var(--draining)"),
  );
  draw();
}

export function draw() {
  const drawing = begin(canvas, HEIGHT);
  axis(drawing);
  if (curves) {
    areas(drawing);
    rule(drawing);
    line(drawing, curves.nodes, colour("text"));
    line(drawing, curves.pending, colour("tainted"));
    bars(drawing, curves.evictions);
    scale(drawing);
  }
  cursor(drawing);
  drawEvents(drawing, EVENTS);
  handle(drawing);
}

function areas({ context, width }) {
  const below = new Array(curves.times.length).fill(0);
  const most = highestCost();
  for (const [pool, costs] of Object.entries(curves.cost)) {
    context.beginPath();
    curves.times.forEach((time, i) => context[i ? "lineTo" : "moveTo"](xOf(time, width), y(below[i], most, TOP, COST)));
    for (let i = costs.length - 1; i >= 0; i--) {
      below[i] += costs[i];
      context.lineTo(xOf(curves.times[i], width), y(below[i], most, TOP, COST));
    }
    context.globalAlpha = 0.55;
    context.fillStyle = hueOf(pool);
    context.fill();
    context.globalAlpha = 1;
  }
}

function highestCost() {
  return Math.max(1e-9, ...curves.times.map((_, i) => sum(i)));
}

function sum(i) {
  return Object.values(curves.cost).reduce((total, costs) => total + costs[i], 0);
}

function y(value, most, top, bottom) {
  return bottom - (value / most) * (bottom - top);
}

function rule({ context, width }) {
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(gutter(width), COST + 0.5);
  context.lineTo(width, COST + 0.5);
  context.stroke();
}

function line({ context, width, height }, values, hue) {
  const most = Math.max(1, ...values);
  if (!values.some(Boolean)) return;
  context.beginPath();
  values.forEach((value, i) => {
    const x = xOf(curves.times[i], width);
    if (i) context.lineTo(x, y(values[i - 1], most, COST + 6, height - 2));
    context[i ? "lineTo" : "moveTo"](x, y(value, most, COST + 6, height - 2));
  });
  context.strokeStyle = hue;
  context.lineWidth = 1.5;
  context.stroke();
}

function bars({ context, width, height }, values) {
  const most = Math.max(1, ...values);
  context.fillStyle = colour("draining");
  values.forEach((value, i) => {
    if (value) context.fillRect(xOf(curves.times[i], width) - 1, height - (value / most) * 18, 2, (value / most) * 18);
  });
}

function scale({ context, width }) {
  const right = gutter(width) - 8;
  context.textAlign = "right";
  context.fillStyle = colour("quiet");
  const atMost = width < 600 ? "" : " at most"; // there is no room for it beside narrow curves
  const rows = [`$${highestCost().toFixed(2)}/h${atMost}`, `${Math.max(...curves.nodes)} nodes${atMost}`, `${Math.max(...curves.pending)} waiting${atMost}`, `${curves.evictions.reduce((a, b) => a + b, 0)} evictions`];
  const lines = [TOP + 6, COST + 10, COST + 24, COST + 38];
  rows.forEach((text, row) => context.fillText(text, right, lines[row]));
  context.textAlign = "left";
}

function indexAt(time) {
  const share = (time - curves.times[0]) / (curves.times.at(-1) - curves.times[0] || 1);
  return Math.max(0, Math.min(curves.times.length - 1, Math.round(share * (curves.times.length - 1))));
}

function move(event) {
  if (!curves) return;
  const time = timeOf(event.offsetX, canvas.clientWidth);
  change(event.buttons & 1 ? { at: time, hover: 0 } : { hover: time });
  const near = event.offsetY < TOP ? eventsNear(event.offsetX, canvas.clientWidth) : [];
  if (near.length) return showTip(event, near.slice(0, 6).map(markText).join("\n"));
  const i = indexAt(time);
  const pools = Object.entries(curves.cost).filter(([, costs]) => costs[i]).map(([pool, costs]) => `\n  ${pool || "no NodePool"} ${dollars(costs[i])}`);
  showTip(event, `${clockText(curves.times[i])}\n${dollars(sum(i))}${pools.join("")}\n${curves.nodes[i]} nodes, ${curves.pending[i]} pods waiting, ${curves.evictions[i]} evictions`);
}

canvas.addEventListener("pointerdown", (event) => {
  const [mark] = event.offsetY < TOP && event.offsetY > EVENTS - 8 ? eventsNear(event.offsetX, canvas.clientWidth) : [];
  if (mark) return goTo(mark);
  canvas.setPointerCapture(event.pointerId);
  change({ at: timeOf(event.offsetX, canvas.clientWidth) });
});
canvas.addEventListener("pointermove", move);
canvas.addEventListener("pointerleave", (event) => { showTip(event, ""); change({ hover: 0 }); });
