// What the canvases share: sharp pixels, the time axis, the cursor, colours out of the style sheet.
import { onTheme } from "./theme.js";
import { clamp, clockText, view } from "./view.js";

const GUTTER = 168, MARGIN = 8; // pixels of names, left of the time; and right of it, for a cursor at the end

export function begin(canvas, height) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  return { context, width, height };
}

export function gutter(width) {
  return width < 600 ? 84 : GUTTER;
}

export function xOf(time, width) {
  const left = gutter(width);
  return left + ((time - view.from) / (view.to - view.from)) * (width - left - MARGIN);
}

export function timeOf(x, width) {
  const left = gutter(width);
  return Math.round(view.from + clamp((x - left) / (width - left - MARGIN), 0, 1) * (view.to - view.from));
}

const colours = new Map(); // name → value in this theme
onTheme(() => colours.clear());

export function colour(name) {
  if (!colours.has(name)) colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return colours.get(name);
}

// The part of the time between two moments, while it is chosen.
export function shade({ context, width, height }, from, to) {
  context.globalAlpha = 0.18;
  context.fillStyle = colour("accent");
  context.fillRect(xOf(from, width), 0, xOf(to, width) - xOf(from, width), height);
  context.globalAlpha = 1;
}

const DAY = 86_400_000;
const STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 2_592_000, 7_776_000];

export function axis({ context, width, height }) {
  const step = (STEPS.find((seconds) => ((seconds * 1000) / (view.to - view.from)) * (width - gutter(width)) > 78) ?? STEPS.at(-1)) * 1000;
  context.strokeStyle = colour("line");
  context.fillStyle = colour("quiet");
  context.lineWidth = 1;
  context.textAlign = "left";
  for (let time = Math.ceil(view.from / step) * step; time <= view.to; time += step) {
    const x = Math.round(xOf(time, width)) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
    const text = step >= DAY ? clockText(time).slice(0, 10) : axisText(time, step);
    if (x + 30 < width) context.fillText(text, x + 3, 7);
  }
}

// Where several days are shown, midnight is told by its day.
export function axisText(time, step) {
  if (view.to - view.from > DAY && clockText(time).slice(11, 19) === "00:00:00") return clockText(time).slice(5, 10);
  if (step < 1000) return clockText(time).slice(17, 23);
  return clockText(time, false).slice(0, step < 60_000 ? 8 : 5);
}

export function cursor(drawing) {
  if (view.hover) upright(drawing, view.hover, [1, 3], 1);
  if (view.pin) upright(drawing, view.pin, [4, 3], 2, "accent");
  upright(drawing, view.at, []);
}

// A handle on the line of the cursor: it can be dragged.
export function handle({ context, width }) {
  if (view.at < view.from || view.at > view.to) return;
  const x = Math.round(xOf(view.at, width)) + 0.5;
  context.fillStyle = colour("cursor");
  context.beginPath();
  context.moveTo(x - 5, 0);
  context.lineTo(x + 5, 0);
  context.lineTo(x, 8);
  context.fill();
}

function upright({ context, width, height }, time, dashes, thick = 1.5, hue = "cursor") {
  if (time < view.from || time > view.to) return;
  const x = Math.round(xOf(time, width)) + 0.5;
  context.strokeStyle = colour(hue);
  context.lineWidth = thick;
  context.setLineDash(dashes);
  context.beginPath();
  context.moveTo(x, 0);
  context.lineTo(x, height);
  context.stroke();
  context.setLineDash([]);
}

// The tip stays in the section of what it tells of, and so covers no text of the panel.
const tip = document.getElementById("tip");
export function showTip(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { right, bottom } = event.target.closest("section").getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${Math.max(8, Math.min(event.clientX + 12, right - width - 8))}px`;
  tip.style.top = `${event.clientY + 16 + height > Math.min(bottom, innerHeight) ? Math.max(0, event.clientY - height - 10) : event.clientY + 16}px`;
}

// What it told of is no longer below the pointer.
for (const kind of ["scroll", "wheel"]) addEventListener(kind, () => { tip.hidden = true; }, { capture: true, passive: true });

const MANY = 12, LARGEST = 192, BETWEEN = 8, NARROW = 600;
// The side of a node's box, for its cores as a share of the largest node's. Boxes of many nodes are small, and `few` is
// whether there is room for more than a line below them. Where there is little width, those of few are so much smaller
// that one more of the largest stands in a row; smaller ones of many would cut off what they say.
export function boxOf(share, count, width) {
  const few = count <= MANY, side = (few ? 1 : 0.7) * (104 + 88 * Math.sqrt(share));
  if (!few || width >= NARROW) return { few, side: Math.round(side) };
  const columns = Math.ceil((width + BETWEEN) / (LARGEST + BETWEEN));
  return { few, side: Math.floor((side * ((width + BETWEEN) / columns - BETWEEN)) / LARGEST) };
}

// Muted hues: the same workload or NodePool has the same colour everywhere.
const HUES = ["#7aa6c2", "#c2a37a", "#9a86c4", "#7fb59b", "#c48aa0", "#a9b36b", "#8f9bb3", "#c9906b"];
const given = new Map();
export function hueOf(name) {
  if (!given.has(name)) given.set(name, HUES[given.size % HUES.length]);
  return given.get(name);
}
