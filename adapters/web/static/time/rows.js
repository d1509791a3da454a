// Which lane stands where: lanes by NodePool, those that last to the end of what is shown before those that are gone, and
// each in the order in which their claims came. Where not all are in sight, those that are there at the cursor come first.
export const TOP = 34; // pixels of the time axis and of marks that are on no lane
const HEADER = 18, TALLEST = 18, LOWEST = 12;

// Lays out the lanes in `room` pixels, or in more: { rows, height }. `until` is the end of what is shown, `at` the cursor.
export function layRows(lanes, room, until, at) {
  const pools = new Map();
  for (const lane of lanes) {
    if (!pools.has(lane.node_pool)) pools.set(lane.node_pool, []);
    pools.get(lane.node_pool).push(lane);
  }
  const free = room - TOP - pools.size * HEADER;
  const height = Math.max(LOWEST, Math.min(TALLEST, Math.floor(free / Math.max(1, lanes.length))));
  const rows = [], fit = lanes.length * height <= free;
  const gone = ({ end }) => Boolean(end && end <= until), away = (lane) => !fit && !isThere(lane, at);
  let top = TOP;
  for (const pool of [...pools.keys()].sort()) {
    rows.push({ pool, count: pools.get(pool).length, top, height: HEADER });
    top += HEADER;
    for (const lane of pools.get(pool).sort((a, b) => away(a) - away(b) || gone(a) - gone(b))) {
      rows.push({ lane, top, height });
      top += height;
    }
  }
  return { rows, height: top + 4 };
}

// Whether a NodeClaim is there at a time.
export function isThere({ spans, end }, at) {
  return spans[0].at <= at && (!end || end > at);
}

// The number of the row at a height, of the next one if there is none.
export function indexAt(rows, y) {
  let low = 0, high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle].top + rows[middle].height <= y) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function rowAt(rows, y) {
  const row = rows[indexAt(rows, y)];
  return row && y >= row.top ? row : undefined;
}
