// The keyboard, and the buttons of the header that do the same.
import { drawNodes } from "./cluster/cluster.js";
import { nextFinding } from "./panel/findings.js";
import { neighbour } from "./time/lanes.js";
import { play, step } from "./time/playing.js";
import { focusSearch } from "./searching.js";
import { switchTheme } from "./shared/theme.js";
import { change, view, zoom } from "./shared/view.js";

const get = (id) => document.getElementById(id);
const pin = () => change({ pin: view.pin === view.at ? 0 : view.at, tab: view.pin === view.at ? "first" : "diff" });
const whole = () => change({ from: view.since, to: view.until });
const help = () => get("help").showModal();
const selectNext = (by) => {
  const sel = neighbour(by);
  if (sel) change({ sel, tab: view.tab === "story" ? "story" : "why" });
};
const KEYS = {
  ArrowLeft: () => step(-1), ArrowRight: () => step(1), j: () => selectNext(1), k: () => selectNext(-1),
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: whole, " ": play, p: pin, t: switchTheme,
  n: () => nextFinding(1), N: () => nextFinding(-1),
  "/": focusSearch, "?": help, Escape: () => change({ sel: "" }),
};

addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea, dialog *") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " " && event.target.matches("button")) return;
  const tab = get("tabs").children[Number(event.key) - 1];
  const action = tab ? () => tab.click() : KEYS[event.key];
  if (action) { event.preventDefault(); action(); }
});

get("previous").onclick = () => step(-1);
get("next").onclick = () => step(1);
get("play").onclick = play;
get("pin").onclick = pin;
get("whole").onclick = whole;
get("theme").onclick = switchTheme;
get("keys").onclick = help;
get("close").onclick = () => change({ sel: "" });
get("group").onchange = drawNodes;
get("zone").onclick = () => change({ zone: view.zone === "utc" ? "local" : "utc" });
get("lead").onclick = () => change({ sel: "", tab: "first" });
