// What to look at first: the verdict, loops, and what went wrong over the whole record, the worst first.
import { ask } from "../shared/api.js";
import { el, section } from "../shared/dom.js";
import { change, clockText, duration, view } from "../shared/view.js";

const SIGNS = { error: "✕", warning: "!", info: "i" };
const TITLES = { verdict: "Not in order at the end", loop: "Going round in circles", trouble: "Went wrong on the way", idle: "Costs more than it serves", usual: "Comes and goes on most days" };
let found = [], chosen = -1;

export async function findingsView() {
  const answer = await ask("findings");
  found = answer.findings;
  const children = [el("p", "title", found.length ? "What to look at first" : answer.read < 1 ? "Reading on" : "Nothing stands out")];
  if (answer.read < 1) children.push(el("p", "quiet", "A long record: what went wrong on the way is told once all of it is read."));
  else if (!found.length) children.push(...nothing());
  for (const kind of Object.keys(TITLES)) {
    const own = found.filter((finding) => finding.kind === kind);
    if (own.length) children.push(section(TITLES[kind], el("div", "cards", ...own.map((finding) => card(finding)))));
  }
  if (answer.hidden) children.push(el("p", "quiet", `and ${answer.hidden} lesser ones: kerf log prints them all.`));
  children.push(hints());
  return { children, told: found.length ? [...new Set(found.map((finding) => finding.command))][0] : "" };
}

function card(finding) {
  const made = el("button", `card ${finding.level}`, el("span", "sign", SIGNS[finding.level] ?? ""), el("span", "what", finding.text), el("span", "quiet when", when(finding)));
  made.type = "button";
  made.dataset.command = finding.command;
  made.title = `${finding.text}\n$ ${finding.command}`;
  made.onclick = () => show(finding);
  return made;
}

function when({ since, until, more }) {
  return `${until - since > 1000 ? `${clockText(since).slice(5, 19)}, for ${duration(until - since)}` : clockText(since).slice(5, 19)} · ${more}`;
}

// Goes where it happened: the moment and the reason; and the part of the record, where the moment is outside of what is shown.
function show(finding) {
  chosen = found.indexOf(finding);
  const there = { at: finding.at, sel: finding.subject, tab: "why" };
  if (finding.at >= view.from && finding.at <= view.to) return change(there);
  const room = Math.max((finding.until - finding.since) * 0.2, (view.until - view.since) * 0.04, 30_000);
  change({ ...there, from: Math.max(view.since, Math.round(finding.since - room)), to: Math.min(view.until, Math.round(finding.until + room)) });
}

// The next finding, for the keyboard.
export async function nextFinding(step) {
  if (!found.length) ({ findings: found } = await ask("findings"));
  if (found.length) show(found[(chosen + step + found.length) % found.length]);
}

function nothing() {
  return [el("p", "", "No node goes round in circles, nothing was refused, and nothing waits in vain.")];
}

// What a newcomer can do here.
function hints() {
  return section("How to go on",
    el("ul", "hints", el("li", "", "→ steps to the next decision; Why says how it was made."), el("li", "", "Click a lane, a box or a mark to see the reason for it."), el("li", "", "/ finds pods, nodes, NodeClaims and NodePools by name, and what was said of them."), el("li", "", "? lists all keys.")));
}
