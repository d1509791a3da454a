// The picture of the record's whole time comes in tiles: those of the part that is shown, no finer than it is shown.
import { ask } from "../shared/api.js";
import { view } from "../shared/view.js";

export const timeline = { since: 0, until: 0, finest: 0, coarsest: 0, read: 0, fault: "", position: 0 };
const kept = new Map(); // "level/number" → the promise of a tile
const MOST_KEPT = 24;
let asked = 0;

// Asks how much there is by now. Tiles that may have changed are asked anew.
export async function takeTimeline() {
  const before = { ...timeline };
  Object.assign(timeline, await ask("timeline"));
  for (const key of [...kept.keys()]) {
    const [level, number] = key.split("/").map(Number);
    if (timeline.read !== before.read || timeline.finest !== before.finest || (number + 1) * 2 ** level > before.until) kept.delete(key);
  }
  return timeline;
}

// The tiles of what is shown: their level, and the first and the last number.
export function tilesOf({ from, to }) {
  const level = Math.min(timeline.coarsest, Math.max(timeline.finest, Math.floor(Math.log2(Math.max(1, to - from)))));
  const length = 2 ** level;
  return { level, first: Math.floor(Math.max(from, timeline.since) / length), last: Math.floor(Math.min(to, timeline.until) / length) };
}

// Returns { lanes, marks } of what is shown; nothing if something else was asked for meanwhile.
export async function takeTiles() {
  const mine = ++asked, { level, first, last } = tilesOf(view);
  const numbers = Array.from({ length: Math.max(0, last - first) + 1 }, (_, index) => first + index);
  const tiles = await Promise.all(numbers.map((number) => tile(level, number)));
  return mine === asked ? together(tiles) : null;
}

function tile(level, number) {
  const key = `${level}/${number}`;
  if (!kept.has(key)) {
    if (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
    const found = ask("tile", { level, number });
    found.catch(() => kept.delete(key));
    kept.set(key, found);
  }
  return kept.get(key);
}

// A lane that goes on from tile to tile is one lane. Each span gets its end, `to`.
function together(tiles) {
  const lanes = new Map(), marks = [];
  for (const { level, number, lanes: found, marks: more } of tiles) {
    const end = Math.min((number + 1) * 2 ** level, timeline.until);
    for (const lane of found) {
      const known = lanes.get(lane.claim);
      const spans = known ? known.spans : [];
      lane.spans.forEach((span, i) => {
        const to = lane.spans[i + 1]?.at ?? (lane.end ? Math.min(lane.end, end) : end);
        const last = spans.at(-1);
        if (last && last.position === span.position) last.to = to;
        else spans.push({ ...span, to });
      });
      lanes.set(lane.claim, { ...lane, spans });
    }
    marks.push(...more);
  }
  return { lanes: [...lanes.values()], marks };
}
