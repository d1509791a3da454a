// The cluster at one moment: nodes as boxes of their size, filled by their pods; outside of them the pods that wait.
import { dollars, el } from "../shared/dom.js";
import { boxOf, hueOf, showTip } from "../shared/draw.js";
import { change, clockText, duration, view } from "../shared/view.js";

const nodes = document.getElementById("nodes");
const waiting = document.getElementById("waiting");
// A box gets its pods when it comes near what is in view: a large cluster has thousands of them.
const filling = new WeakMap();
const near = new IntersectionObserver((seen) => {
  for (const { isIntersecting, target } of seen) {
    if (!isIntersecting) continue;
    near.unobserve(target);
    filling.get(target)?.();
  }
}, { root: null, rootMargin: "300px" });
const MOST_PLACES = 3; // names of planned nodes on the card of pods that wait
const NARROW = 900; // pixels of a page whose parts stand below each other: it does not jump
let shown = null, names = null;

export function setCluster(answer) {
  shown = answer;
  names = null;
  const { status } = answer;
  const pods = Object.entries(status.totals.pods).map(([what, number]) => `${number} ${what}`).join(", ");
  const totals = document.getElementById("totals");
  totals.textContent = `nodes: ${status.totals.nodes}${coming(status.nodes)}, ${dollars(status.totals.price)}; pods: ${pods || "none"}`;
  totals.dataset.command = answer.command;
  document.getElementById("exactness").hidden = false;
  totals.onclick = () => change({ sel: "", tab: "why" });
  lead(answer);
  drawWaiting(status.waiting);
  drawNodes();
}

// Pods and workloads that are there at this moment: the name → what is selected by it.
export function namesHere() {
  if (names || !shown) return names ?? new Map();
  names = new Map();
  for (const pod of Object.values(shown.boxes).flat()) names.set(pod.pod, `pod/${pod.pod}`).set(pod.workload, `workload/${pod.workload}`);
  for (const pod of shown.status.waiting.flatMap((workload) => workload.pods)) names.set(pod, `pod/${pod}`);
  return names;
}

// The verdict of this moment, with its grounds: one line that is always there.
function lead({ status, grounds, command }) {
  const verdict = document.getElementById("verdict"), { level } = status.verdict;
  verdict.textContent = level;
  document.getElementById("lead").dataset.level = level;
  document.getElementById("lead").dataset.command = command;
  document.getElementById("grounds").textContent = grounds.join("; ") || "nothing waits, nothing is under way";
}

function drawWaiting(workloads) {
  waiting.replaceChildren(...workloads.map((workload) => {
    const card = el("button", "waits");
    const many = workload.pods.length;
    card.append(el("b", "", `${many} ${many === 1 ? "pod waits" : "pods wait"}`), ` ${workload.workload}, ${duration(workload.waited)}`);
    const said = workload.why || workload.outlook.replaceAll("-", " ");
    if (workload.outlook === "no-place" || workload.outlook === "ignored") card.classList.add("bad");
    card.append(el("div", "quiet", workload.places.length ? `${said}: ${first(workload.places)}` : said));
    card.onclick = () => change({ sel: `pod/${workload.pods[0]}`, tab: "why" });
    return card;
  }));
}

// The first names of a list, and how many more there are.
function first(names) {
  return names.slice(0, MOST_PLACES).join(", ") + (names.length > MOST_PLACES ? ` and ${names.length - MOST_PLACES} more` : "");
}

export function drawNodes() {
  if (!shown) return;
  const by = document.getElementById("group").value;
  const groups = grouped(shown.status.nodes, by);
  const most = Math.max(1, ...shown.status.nodes.map(cores)), width = nodes.clientWidth;
  near.disconnect();
  nodes.replaceChildren(...[...groups].map(([name, members]) => {
    const pool = el("div", "pool"), title = el("h3");
    const price = members.reduce((sum, node) => sum + Math.round(node.price * 1e6), 0) / 1e6; // sums of cents err
    const there = members.length - members.filter(isComing).length;
    const label = name || `no ${by === "zone" ? "zone" : "NodePool"}`;
    if (by === "node_pool" && name) {
      const why = el("button", "named", label);
      why.onclick = () => change({ sel: `nodepool/${name}`, tab: "why" });
      title.append(why);
    } else title.append(label);
    title.append(el("span", "quiet", ` ${there} ${there === 1 ? "node" : "nodes"}${coming(members)}, ${dollars(price)}`));
    pool.append(title);
    const row = el("div");
    row.append(...members.map((node) => nodeBox(node, most, width)));
    pool.append(row);
    return pool;
  }));
  if (innerWidth > NARROW) nodes.querySelector(".node [aria-pressed=true]")?.closest(".node").scrollIntoView({ block: "nearest" });
  if (!shown.status.nodes.length) nodes.replaceChildren(el("p", "quiet", "There is no node at this moment. Drag the line in the curves above to another one, or press → for the next decision."));
}

// A NodeClaim whose Node has not joined.
function isComing(node) {
  return node.claim && node.name === node.claim;
}

function coming(nodes) {
  const number = nodes.filter(isComing).length;
  return number ? ` and ${number} coming` : "";
}

function grouped(list, key) {
  const groups = new Map();
  for (const each of list) {
    if (!groups.has(each[key])) groups.set(each[key], []);
    groups.get(each[key]).push(each);
  }
  return groups;
}

function cores(node) {
  return (node.usage.cpu?.allocatable ?? 0) / 1000;
}

function nodeBox(node, most, width) {
  const { side, few } = boxOf(cores(node) / most, shown.status.nodes.length, width);
  const subject = node.claim ? `nodeclaim/${node.claim}` : `node/${node.name}`;
  const box = el("div", "node");
  box.style.setProperty("--side", `${side}px`);
  box.style.setProperty("--state", `var(--${node.claim ? node.state : "requested"})`);
  const head = el("button", "what");
  head.append(el("strong", "", node.name), node.drifted_since ? el("span", "drifted", " ●") : "", el("br"), node.instance_type ? `${node.instance_type} $${node.price.toFixed(4)}${few ? "/h" : ""}` : "no type yet", el("br"), el("span", "quiet", `${node.state} · ${duration(node.age)}`));
  head.onclick = () => change({ sel: subject, tab: "why" });
  head.setAttribute("aria-pressed", view.sel === subject || view.sel === `node/${node.name}`);
  const inside = el("div", "box");
  filling.set(box, () => inside.append(...podRectangles(shown.boxes[node.name] ?? [], side)));
  near.observe(box);
  const foot = el("div", "what quiet");
  const gauges = few ? ["cpu", "memory"].filter((name) => node.usage[name]?.allocatable) : [];
  foot.append(...gauges.map((name) => gauge(name, node.usage[name])), el("span", few ? "stays" : "", ...broken(stays(node))));
  box.append(head, inside, foot);
  box.onpointermove = (event) => { if (!event.target.closest(".pod")) showTip(event, nodeText(node)); };
  box.onpointerleave = (event) => showTip(event, "");
  return box;
}

// Why it goes or stays, in few words.
function stays(node) {
  return node.reason && !node.few_words.startsWith("goes") ? `stays: ${node.few_words}` : node.few_words || node.state;
}

// A text that may go on in the next line within a word like PodDisruptionBudget.
function broken(said) {
  return said.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
}

// How much of what a node has its pods ask for.
function gauge(name, { requested, allocatable }) {
  const line = el("span", "gauge"), track = el("i"), part = el("b");
  part.style.width = `${Math.min(100, (100 * requested) / allocatable)}%`;
  track.append(part);
  line.append(el("span", "", name === "memory" ? "mem" : name), track, el("span", "", `${Math.round((100 * requested) / allocatable)}%`));
  return line;
}

function nodeText(node) {
  const usage = Object.entries(node.usage).map(([name, { requested, allocatable }]) => `  ${name} ${allocatable ? Math.round((100 * requested) / allocatable) : 0}%`);
  const drift = node.drifted_since && `drifted since ${clockText(node.drifted_since)}: it is not as its NodePool or NodeClass asks for`;
  return [`${node.name}  ${node.claim}`, `${node.instance_type} ${node.capacity_type} ${node.zone}, ${node.state} ${duration(node.age)}`, `${node.pods} pods ask for`, ...usage, node.few_words, drift].filter(Boolean).join("\n");
}

// A squarified treemap: the pods' areas are their shares of the node, from the bottom up.
function podRectangles(pods, side) {
  const sized = pods.map((pod) => ({ pod, area: Math.max(pod.share, 0.004) }));
  const total = sized.reduce((sum, each) => sum + each.area, 0);
  const height = Math.min(1, total);
  const rectangles = [];
  let rest = sized.map((each) => ({ ...each, area: each.area * (height / (total || 1)) })), x = 0, y = 1 - height, w = 1, h = height;
  while (rest.length) {
    const along = Math.min(w, h);
    let row = [rest[0]], taken = 1;
    while (taken < rest.length && worst([...row, rest[taken]], along) <= worst(row, along)) row.push(rest[taken++]);
    const sum = row.reduce((all, each) => all + each.area, 0), thick = along ? sum / along : 0;
    let at = 0;
    for (const each of row) {
      const long = thick ? each.area / thick : 0;
      rectangles.push({ pod: each.pod, ...(w >= h ? { x, y: y + at, w: thick, h: long } : { x: x + at, y, w: long, h: thick }) });
      at += long;
    }
    if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
    rest = rest.slice(taken);
  }
  return rectangles.map((each) => podButton(each, side));
}

function worst(row, along) {
  const sum = row.reduce((all, each) => all + each.area, 0), thick = sum / along;
  return Math.max(...row.map((each) => { const long = each.area / thick; return Math.max(long / thick, thick / long); }));
}

function podButton({ pod, x, y, w, h }, side) {
  const button = el("button", `pod${pod.daemon ? " daemon" : ""}${pod.leaving ? " leaving" : ""}`);
  button.style.cssText = `left:${x * side}px;top:${y * side}px;width:${w * side}px;height:${h * side}px`;
  button.style.setProperty("--hue", hueOf(pod.workload));
  button.tabIndex = -1;
  const said = `${pod.pod}\n${Math.round(pod.share * 100)}% of the node${pod.daemon ? ", of a DaemonSet" : ""}${pod.leaving ? ", is being deleted" : ""}`;
  button.setAttribute("aria-label", said);
  button.setAttribute("aria-pressed", view.sel === `pod/${pod.pod}`);
  if (!pod.leaving && w * side > 40 && h * side > 15) button.append(el("span", "said", pod.workload.slice(pod.workload.indexOf("/") + 1)));
  button.onclick = () => change({ sel: `pod/${pod.pod}`, tab: "why" });
  button.onpointermove = (event) => showTip(event, said);
  button.onpointerleave = (event) => showTip(event, "");
  return button;
}
