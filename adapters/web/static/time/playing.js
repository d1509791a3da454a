// Moves the cursor: from decision to decision, or on and on at a speed.
import { ask } from "../shared/api.js";
import { change, view } from "../shared/view.js";

const button = document.getElementById("play"), speed = document.getElementById("speed");
let playing = 0;

// To the next decision for 1, to the one before for -1.
export async function step(by) {
  const { at: time } = await ask("step", { at: Math.round(view.at), by: by > 0 ? "next" : "previous" });
  if (time) change({ at: time, ...(time < view.from || time > view.to ? { from: view.since, to: view.until } : {}) });
}

export function play() {
  if (playing) {
    clearInterval(playing);
    playing = 0;
    button.textContent = "▶";
    return;
  }
  button.textContent = "▮▮";
  let last = performance.now();
  playing = setInterval(() => {
    const now = performance.now(), next = view.at + (now - last) * Number(speed.value);
    last = now;
    change({ at: Math.round(next) });
    if (view.at >= view.until) play();
  }, 50);
}
