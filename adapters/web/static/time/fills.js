// How full each node was at any time of the tiles that are shown: from the latest change before a moment.
import { ask } from "../shared/api.js";
import { tilesOf, timeline } from "./tiles.js";
import { view } from "../shared/view.js";

let tiles = [], key = "";

// Takes what belongs to the part that is shown; small, and needed only while the cursor moves.
export async function takeFills() {
  const { level, first, last } = tilesOf(view), wanted = `${timeline.position}/${timeline.read}/${level}/${first}/${last}`;
  if (wanted === key || timeline.read < 1) return;
  key = wanted;
  const numbers = Array.from({ length: Math.max(0, last - first) + 1 }, (_, index) => first + index);
  const found = await Promise.all(numbers.map((number) => ask("fill", { level, number })));
  if (key === wanted) tiles = found.map((tile) => ({ ...tile, begin: tile.number * 2 ** tile.level, end: (tile.number + 1) * 2 ** tile.level }));
}

// The percentage that pods ask for; undefined where it is not known.
export function fillAt(node, time) {
  const tile = tiles.find((known) => time >= known.begin && time < known.end), changes = tile?.nodes[node];
  if (!changes) return undefined;
  let low = 0, high = changes.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (changes[2 * middle] <= time - tile.begin) low = middle + 1;
    else high = middle;
  }
  return low ? changes[2 * low - 1] : undefined;
}
