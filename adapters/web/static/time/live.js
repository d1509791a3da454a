// A record that grows: whoever looks at its end goes on with it.
import { ask, follow } from "../shared/api.js";
import { fail } from "../shared/failing.js";
import { readSoFar, takeTimes } from "./times.js";
import { change, view } from "../shared/view.js";

const AGAIN = 3000; // ms
let known = 0, behind = false, busy = false;

// Follows the record for as long as the page is open, and tries again where the server was away.
export async function watch(last) {
  known = last;
  for (;;) {
    try {
      await follow(happens);
    } catch (error) {
      fail(error);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN));
  }
}

function happens(event, value) {
  if (event === "read") Promise.resolve(readSoFar(value)).catch(fail);
  if (event !== "position" || value === known) return;
  known = value;
  behind = true;
  catchUp().catch(fail);
}

// One picture is taken at a time; what was written meanwhile comes with the next one.
async function catchUp() {
  if (busy) return;
  busy = true;
  try {
    while (behind) {
      behind = false;
      await goOn();
    }
  } finally {
    busy = false;
  }
}

async function goOn() {
  const record = await ask("record");
  const atEnd = view.at === view.until, whole = view.to === view.until;
  Object.assign(view, { until: record.until, ...(whole ? { to: record.until } : {}) });
  await takeTimes();
  change({ at: atEnd ? record.until : view.at, to: view.to });
}
