// The cluster at the cursor: keyframes while it moves, the exact state when it rests.
import { ask } from "../shared/api.js";
import { setCluster } from "./cluster.js";
import { fail, succeed } from "../shared/failing.js";
import { canFrame, drawFrame, hideFrame } from "./keyframes.js";
import { iso, view } from "../shared/view.js";

const QUICK = 250, REST = 160; // ms between two steps of a cursor that moves; without a step until it rests
let last = -QUICK, moving = false, resting = 0, looking = false, wanted = null;

export function look() {
  const now = performance.now(), quick = now - last < QUICK;
  last = now;
  clearTimeout(resting);
  moving = (moving || quick) && canFrame(view.at);
  if (moving) resting = setTimeout(rest, REST);
  else exact();
}

// Called with each frame that is drawn.
export function drawMoving() {
  if (moving) drawFrame();
}

function rest() {
  moving = false;
  exact();
}

// One question is under way, and the latest moment is asked next.
async function exact() {
  wanted = view.at;
  if (looking) return;
  looking = true;
  while (wanted !== null) {
    const at = wanted;
    wanted = null;
    try {
      const answer = await ask("status", { at: iso(at) });
      if (moving) continue;
      setCluster(answer);
      if (wanted === null) hideFrame();
      succeed();
    } catch (error) {
      hideFrame();
      fail(error);
    }
  }
  looking = false;
}
