// The whole time of the record: its tiles and its curves, taken for what is shown, and how much of it is read.
import { ask } from "../shared/api.js";
import { setCurves } from "./curves.js";
import { fail } from "../shared/failing.js";
import { takeFills } from "./fills.js";
import { setLanes } from "./lanes.js";
import { panelSoon } from "../panel/panel.js";
import { takeTiles, takeTimeline, timeline } from "./tiles.js";
import { view } from "../shared/view.js";

const POINTS = 600, PAUSE = 90; // ms that the view rests before finer tiles are asked for
const progress = document.getElementById("reading");
let timer = 0;

export async function takeTimes() {
  await takeTimeline();
  tellProgress();
  await takeShown();
}

// Takes what is shown once the view rests; until then what is known is drawn.
export function takeSoon() {
  clearTimeout(timer);
  timer = setTimeout(() => takeShown().catch(fail), PAUSE);
}

async function takeShown() {
  const { from, to } = view;
  const [found, curves] = await Promise.all([takeTiles(), ask("curves", { since: from, until: to, points: POINTS })]);
  if (found) setLanes(found);
  if (from === view.from && to === view.to) setCurves(curves);
  setTimeout(() => takeFills().catch(fail), PAUSE); // after what is seen at once
}

function tellProgress() {
  progress.hidden = timeline.read >= 1 && !timeline.fault;
  progress.textContent = timeline.fault || `Reading pods: ${Math.floor(timeline.read * 100)} %`;
  progress.dataset.fault = Boolean(timeline.fault);
  progress.style.setProperty("--read", timeline.read);
}

// What `api/v1/live` says of the reading. Curves and lanes are taken anew at the end.
export function readSoFar(share) {
  const done = share >= 1 && timeline.read < 1;
  timeline.read = done ? timeline.read : share;
  tellProgress();
  return done ? takeTimes().then(panelSoon) : undefined;
}
