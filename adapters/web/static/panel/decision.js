// A decision: what was decided and asked, what ruled instance types out, moves and verdicts, causes and consequences as a
// graph, the entry itself; and the same decision again. All words are the API's.
import { ask } from "../shared/api.js";
import { el, dollars, folded, link, section, subjectLink, svg, table } from "../shared/dom.js";
import { change, clockText } from "../shared/view.js";
import { linked, paragraphs } from "./sentences.js";

const MOST_PODS = 12, MOST_PIECES = 30;

export async function decisionView(position) {
  const answer = await ask("decision", { position });
  const children = [
    el("p", "title", `${answer.decider} decision ${answer.position}`),
    el("p", "quiet", link(clockText(answer.at), () => change({ at: answer.at }), "link"), ` ${sameWords(answer.same)}`),
    el("ul", "decided", ...answer.decided.slice(0, 20).map((text) => el("li", "", linked(text)))),
    buttons(answer),
    graph(answer),
    ...[...answer.pieces].sort((a, b) => Boolean(a.place) - Boolean(b.place)).slice(0, MOST_PIECES).map((piece) => pieceView(piece)),
  ];
  if (answer.pieces.length > MOST_PIECES) children.push(el("p", "quiet", `… and ${answer.pieces.length - MOST_PIECES} more: the command prints all of them.`));
  if (answer.moves.length) children.push(moves(answer.moves));
  if (answer.budgets.length) children.push(section("Disruption budgets", ...answer.budgets.map((text) => el("p", "", text))));
  if (answer.verdicts.length) children.push(verdicts(answer.verdicts));
  children.push(folded("What the command says", ...paragraphs(answer.text)));
  children.push(folded("The entry as it was recorded", el("pre", "raw", answer.raw)));
  return { children, told: answer.command };
}

function sameWords(same) {
  return same === null ? "" : same ? "· today's engine decides the same" : "· today's engine decides otherwise";
}

function buttons(answer) {
  const said = el("div", "again");
  const again = link("Decide again", async () => {
    said.replaceChildren(el("p", "quiet", "Deciding …"));
    try {
      const found = await ask("again", { position: answer.position });
      said.replaceChildren(...paragraphs(found.text), el("p", "quiet", `$ ${found.command}`));
    } catch (error) {
      said.replaceChildren(el("p", "warning", error.message));
    }
  }, "action");
  const whatIf = link("What if …", () => change({ tab: "whatif", at: answer.at }), "action");
  return el("div", "actions", again, whatIf, said);
}

// ── what was planned ─────────────────────────────────────────────────────────────────────────────────────────────────

function pieceView(piece) {
  const title = piece.place ? `${piece.place}: ${count(piece.pods.length, "pod")}` : `No place: ${count(piece.pods.length, "pod")}`;
  const pods = el("p", "names", ...piece.pods.slice(0, MOST_PODS).flatMap((pod) => [subjectLink(`pod/${pod}`), " "]));
  if (piece.pods.length > MOST_PODS) pods.append(`and ${piece.pods.length - MOST_PODS} more`);
  const block = section(title, pods, ...piece.reasons.map((text) => el("p", "warning", linked(text))));
  if (piece.asked.length) block.append(el("p", "", el("b", "", "Asked: "), linked(piece.asked.join("\n"))));
  for (const text of piece.refused) block.append(el("p", "quiet", linked(text)));
  for (const funnel of piece.funnels) block.append(funnelView(funnel));
  if (piece.chosen.length) block.append(candidates(piece));
  if (!piece.place) block.classList.add("bad");
  return block;
}

// A bar for each step, as long as what is left after it: the narrowing is seen, the table says what did it.
export function funnelView(funnel) {
  const rows = [
    [bar(funnel.types, funnel.types), funnel.types, "considered", ""],
    ...funnel.steps.map((step) => [bar(step.left, funnel.types), step.left, step.text, `−${step.types.toLocaleString("en")}`]),
  ];
  const body = rows.map(([drawn, left, text, gone]) =>
    el("tr", left ? "" : "none", el("td", "bar", drawn), el("td", "number", left.toLocaleString("en")), el("td", "", text), el("td", "number gone", gone)));
  const head = `NodePool ${funnel.node_pool}${funnel.claim ? ` → ${funnel.claim}` : ""}`;
  const made = el("div", "funnel", el("h4", "", head), el("table", "", el("thead", "", el("tr", "", el("th", "", "left"), el("th", "number", "types"), el("th", "", "what ruled types out"), el("th", "number", "gone"))), el("tbody", "", ...body)));
  if (funnel.reason) made.append(el("p", "warning", funnel.reason));
  for (const near of funnel.near.slice(0, 3)) made.append(el("p", "near", el("b", "", "Nearest: "), near));
  return made;
}

function bar(part, whole) {
  const width = whole ? Math.max(part ? 1 : 0, 96 * (Math.log(part + 1) / Math.log(whole + 1))) : 0;
  return svg("svg", { viewBox: "0 0 96 12", width: 96, height: 12, "aria-hidden": "true" },
    svg("rect", { x: 0, y: 1, width: 96, height: 10, class: "track" }), svg("rect", { x: (96 - width) / 2, y: 1, width, height: 10, class: "part" }));
}

function candidates(piece) {
  const least = piece.chosen[0].price || 0, most = Math.max(...piece.chosen.map((choice) => choice.price ?? 0), least) || 1;
  const rows = piece.chosen.map((choice, i) => el("tr", i ? "" : "chosen", el("td", "", choice.instance_type), el("td", "number", choice.price === null ? "none on offer" : dollars(choice.price)), el("td", "bar", priceBar(choice.price ?? 0, most)), el("td", "quiet", i ? more(choice.price, least) : "chosen first")));
  const rest = piece.chosen_types - piece.chosen.length;
  return el("div", "funnel", el("h4", "", `Candidates: ${count(piece.chosen_types, "type")}, cheapest first`), el("table", "", el("tbody", "", ...rows)), rest > 0 ? el("p", "quiet", `and ${rest} dearer`) : "");
}

function priceBar(price, most) {
  return svg("svg", { viewBox: "0 0 96 12", width: 96, height: 12, "aria-hidden": "true" }, svg("rect", { x: 0, y: 2, width: Math.max(1, 96 * (price / most)), height: 8, class: "price" }));
}

function more(price, least) {
  return price === null || !least ? "" : `+${Math.round((100 * (price - least)) / least)}%`;
}

// ── moves and verdicts ───────────────────────────────────────────────────────────────────────────────────────────────

function moves(list) {
  const rows = list.map((move) => [
    move.why, el("span", "", ...move.claims.slice(0, 6).flatMap((claim) => [subjectLink(`nodeclaim/${claim}`), " "]), move.claims.length > 6 ? `and ${move.claims.length - 6} more` : ""),
    move.replacements.map((choice) => `${choice.instance_type} ${dollars(choice.price)}`).join(", ") || "none", dollars(move.savings),
  ]);
  return section("Moves", table(["why", "goes", "launched first", "saves"], rows));
}

function verdicts(list) {
  const rows = list.slice(0, 100).map((verdict) => [subjectLink(`nodeclaim/${verdict.claim}`), el("span", "word", verdict.action), linked(verdict.text)]);
  return section("Considered, and why or why not", table(["NodeClaim", "", "because"], rows, "verdicts"));
}

// ── causes and consequences ──────────────────────────────────────────────────────────────────────────────────────────

const ROW = 34, STEP = 16, LEFT = 14;

// Top to bottom in time. Each event hangs below what it follows; the decision stands between its causes and what came of it.
function graph(answer) {
  if (!answer.causes.length && !answer.consequences.length) return "";
  const self = { position: answer.position, at: answer.at, text: answer.decided[0] ?? answer.decider, self: true, depth: 1 };
  const depths = new Map([[answer.position, 1]]), lanes = new Map();
  const rows = [
    ...answer.causes.map((event) => ({ ...event, depth: 0, to: answer.position })), self,
    ...answer.consequences.map((event) => {
      const depth = event.after === answer.position ? 2 : lanes.get(event.after) ?? 2;
      if (!depths.has(event.position)) depths.set(event.position, depth);
      lanes.set(event.position, depth);
      return { ...event, depth };
    }),
  ];
  const line = rows.findIndex((row) => row.self), where = new Map();
  rows.forEach((row, i) => { if (!where.has(row.position) || row.self) where.set(row.position, i); });
  const height = rows.length * ROW;
  const drawing = svg("svg", { viewBox: `0 0 64 ${height}`, width: 64, height, "aria-hidden": "true" });
  const x = (row) => LEFT + row.depth * STEP, y = (i) => i * ROW + ROW / 2;
  rows.forEach((row, i) => {
    const [from, to] = row.to !== undefined ? [i, line] : row.self ? [i, i] : [where.get(row.after) ?? line, i];
    if (from !== to) drawing.append(svg("path", { class: "edge", d: `M${x(rows[from])} ${y(from)} V${y(to) - 8} Q${x(rows[from])} ${y(to)} ${(x(rows[from]) + x(rows[to])) / 2 + 4} ${y(to)} H${x(rows[to])}` }));
  });
  rows.forEach((row, i) => drawing.append(svg("circle", { class: `dot ${row.self ? "self" : row.level ?? ""}`, cx: x(row), cy: y(i), r: row.self ? 6 : 4 })));
  const list = el("ol", "", ...rows.map(event));
  const made = section("What brought it about, and what came of it", el("div", "graph", drawing, list));
  if (answer.more) made.append(el("p", "quiet", "Not all of it is shown."));
  return made;
}

function event(row) {
  const said = el("span", "said", row.text);
  const item = el("li", row.self ? "self" : row.level ?? "", el("time", "quiet", clockText(row.at, false)), said);
  item.title = `${clockText(row.at)}, position ${row.position}\n${row.text}`;
  if (!row.self) {
    said.tabIndex = 0;
    said.setAttribute("role", "link");
    item.onclick = () => change({ at: row.at, sel: row.subject, tab: "why" });
    said.onkeydown = (pressed) => { if (pressed.key === "Enter") item.onclick(); };
  }
  return item;
}

function count(number, what) {
  return `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;
}
