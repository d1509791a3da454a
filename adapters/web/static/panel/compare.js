// Compare: two moments of the record, or the recorded run with a modelled one.
import { ask } from "../shared/api.js";
import { el, folded, link, section, svg } from "../shared/dom.js";
import { change, clockText, iso, view } from "../shared/view.js";
import { paragraphs } from "./sentences.js";
import { changeAsked } from "./whatif.js";

const WIDTH = 400, HEIGHT = 74;
let model = null, asked = false;

export async function compareView() {
  const other = view.pin || Math.max(view.from, view.known), ends = [other, view.at].sort((a, b) => a - b);
  const moments = el("p", "pair", link(clockText(ends[0]), () => change({ at: ends[0] })), " → ", link(clockText(ends[1]), () => change({ at: ends[1] })));
  const hint = view.pin ? "" : el("div", "quiet note", "No moment is pinned: this is since the beginning of what is shown. Press p to pin a moment, then go to another one.");
  if (asked && !model) model = await modelled();
  const switched = el("div", "actions", link(model ? "Model it again" : "Compare the record with a model of it", () => { asked = true; model = null; change({ tab: "diff" }); }, "action"));
  const children = [];
  if (model) children.push(modelView(model));
  let told = model?.command ?? "";
  if (ends[0] === ends[1]) children.push(el("p", "debug", "Both moments are the same: go to another one."));
  else {
    const answer = await ask("diff", { before: iso(ends[0]), after: iso(ends[1]) });
    children.push(section("Two moments", moments, hint, ...paragraphs(answer.text)));
    told = answer.command;
  }
  return { children: [switched, ...children], told };
}

async function modelled() {
  asked = false;
  const supposed = changeAsked();
  const part = view.from > view.since || view.to < view.until ? { begin: iso(view.from), end: iso(view.to) } : {};
  const answer = await ask("modelled", { ...part, ...(supposed.change ? supposed : {}) });
  const recorded = await ask("curves", { since: answer.since, until: answer.until, points: answer.curves.times.length });
  return { ...answer, recorded };
}

function modelView(answer) {
  const rows = (table) => el("table", "", el("thead", "", el("tr", "", ...table.head.map((text, i) => el("th", i ? "number" : "", text.toLowerCase())))), el("tbody", "", ...table.rows.map((cells) => el("tr", "", ...cells.map((cell, i) => el("td", i ? "number" : "", cell))))));
  return section("The record, and a model of it",
    el("div", answer.holds ? "good" : "warning", answer.horizon),
    el("div", "legend left", swatch("recorded"), "recorded", swatch("modelled"), answer.compared ? "modelled, with the change" : "modelled"),
    curve("cost per hour", answer, (curves, i) => Object.values(curves.cost).reduce((sum, costs) => sum + costs[i], 0), (value) => `$${value.toFixed(2)}`),
    curve("nodes", answer, (curves, i) => curves.nodes[i], String),
    curve("pods waiting", answer, (curves, i) => curves.pending[i], String),
    answer.compared ? rows(answer.compared) : "", rows(answer.checked),
    el("div", "quiet", `$ ${answer.command}`), folded("What the command says", ...paragraphs(answer.text)));
}

function swatch(kind) {
  return el("i", `swatch ${kind}`);
}

function curve(title, { recorded, curves }, valueOf, show) {
  const lines = [["recorded", recorded], ["modelled", curves]].map(([kind, of]) => [kind, of.times.map((_, i) => valueOf(of, i))]);
  const most = Math.max(1e-9, ...lines.flatMap(([, values]) => values));
  const path = (values) => values.map((value, i) => `${i ? "L" : "M"}${((i / Math.max(1, values.length - 1)) * WIDTH).toFixed(1)} ${(HEIGHT - 4 - (value / most) * (HEIGHT - 10)).toFixed(1)}`).join("");
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", class: "plot", role: "img", "aria-label": `${title}: recorded and modelled` },
    ...lines.map(([kind, values]) => svg("path", { d: path(values), class: `curve ${kind}` })));
  return el("div", "compared", el("div", "quiet", `${title}, at most ${show(most === 1e-9 ? 0 : most)}`), drawing);
}
