// The panel beside the picture: one view at a time, of what is selected at this moment.
import { ask } from "../shared/api.js";
import { compareView } from "./compare.js";
import { decisionView, funnelView } from "./decision.js";
import { el } from "../shared/dom.js";
import { findingsView } from "./findings.js";
import { paragraph, paragraphs } from "./sentences.js";
import { change, clockText, iso, view } from "../shared/view.js";
import { storyView } from "./story.js";
import { form, whatIfView } from "./whatif.js";

const text = document.getElementById("text");
const command = document.getElementById("command");
const AROUND = 300_000; // ms of log on either side of the cursor
const TITLES = { why: "The cluster", diff: "Compare", whatif: "What if", log: "What happened" };
let asked = 0, timer = 0, headed = "";

// Shows the panel anew once the view rests for a moment. What is there until then grows dim (panel.css), and goes at once
// if it is of something else.
export function panelSoon() {
  clearTimeout(timer);
  asked++;
  const tab = tabNow(), subject = ofSelection(tab) ? view.sel : "";
  if (headed !== `${tab} ${subject}`) {
    headed = `${tab} ${subject}`;
    head(tab);
    text.style.minHeight = `${text.offsetHeight}px`; // what stands below it on a narrow page does not jump
    text.replaceChildren(el("p", "reading", `Reading ${whatIsRead(tab)} …`));
    command.textContent = "";
  }
  text.setAttribute("aria-busy", "true");
  timer = setTimeout(showPanel, 80);
}

function whatIsRead(tab) {
  const named = view.sel.replace("/", " "), here = `at ${clockText(view.at)}`;
  if (tab === "first") return `what stands out in ${document.getElementById("record").textContent}`;
  if (tab === "why") return !view.sel ? `the cluster's state ${here}` : view.sel.startsWith("decision/") ? named : `why ${named} is as it is ${here}`;
  if (tab === "story") return `the story of ${named}`;
  return { log: `what happened around ${clockText(view.at)}`, diff: "both moments", whatif: `the next decision after ${clockText(view.at)}` }[tab];
}

function ofSelection(tab) {
  return ["why", "story", "log"].includes(tab);
}

function tabNow() {
  if (!view.sel && view.tab === "story") return "first";
  return view.tab === "story" && view.sel.startsWith("decision/") ? "why" : view.tab;
}

function head(tab) {
  form.hidden = tab !== "whatif";
  document.getElementById("subject").textContent = (view.sel && ["why", "story"].includes(tab) ? view.sel.replace("/", " ") : TITLES[tab]);
  document.getElementById("subject").parentElement.hidden = tab === "first";
  document.getElementById("close").hidden = !view.sel;
  for (const button of document.querySelectorAll("#tabs button")) {
    button.setAttribute("aria-selected", button.dataset.tab === tab);
    if (button.dataset.tab === "story") offerStory(button);
  }
}

// Not all that is selected has a story: the tab says why not.
function offerStory(button) {
  const decision = view.sel.startsWith("decision/");
  button.disabled = !view.sel || decision;
  button.title = decision ? "Why shows what brought a decision about, and what came of it. Select a node or a pod for its story" : view.sel ? "What happened to it (3)" : "Select a pod, node, NodeClaim or NodePool first: click its lane or box";
}

async function showPanel() {
  const number = ++asked;
  const tab = tabNow();
  head(tab);
  let children, told;
  try {
    if (tab === "first") ({ children, told } = await findingsView());
    else if (tab === "log") ({ children, told } = await logged());
    else if (tab === "whatif") ({ children, told } = await whatIfView());
    else if (tab === "diff") ({ children, told } = await compareView());
    else if (tab === "why" && !view.sel) ({ children, told } = await clusterStatus());
    else if (tab === "story") ({ children, told } = await storyView(view.sel));
    else if (tab === "why" && view.sel.startsWith("decision/")) {
      ({ children, told } = await decided(view.sel.slice("decision/".length)));
    } else {
      ({ children, told } = await explained());
    }
  } catch (error) {
    [children, told] = [[paragraph(error.message, "warning")], ""];
  }
  if (number !== asked) return; // overtaken
  text.replaceChildren(...children);
  text.style.minHeight = "";
  text.setAttribute("aria-busy", "false");
  command.textContent = told && `$ ${told}`;
  text.querySelector(".now")?.scrollIntoView({ block: "center" });
}

// Why, with nothing selected: the whole cluster at this moment.
async function clusterStatus() {
  const answer = await ask("status", { at: iso(view.at) });
  return { children: paragraphs(answer.text), told: answer.command };
}

// What cannot be explained (a NodeClass, the record) or was not there yet is told by its log.
async function explained() {
  try {
    const answer = await ask("explain", { name: view.sel, at: iso(view.at) });
    return { children: [...paragraphs(answer.text), ...funnels(answer.funnels)], told: answer.command };
  } catch (error) {
    if (error.code !== "KERF203") throw error;
    const { children, told } = await logged();
    return { children: [paragraph(error.message, "debug"), ...children], told };
  }
}

// The types that were ruled out for a pod or a node, drawn.
function funnels(list) {
  return list.length ? [el("section", "block", el("h3", "", "What ruled instance types out"), ...list.map(funnelView))] : [];
}

// What stands at a position that holds no decision is told by the log around it.
async function decided(position) {
  try {
    return await decisionView(position);
  } catch (error) {
    if (error.code !== "KERF203") throw error;
    const { children, told } = await logged();
    return { children: [paragraph(`Position ${position} holds no decision. This is what happened around it:`, "debug"), ...children], told };
  }
}

async function logged() {
  const answer = await ask("log", { since: Math.max(0, view.at - AROUND), until: Math.min(view.at + AROUND, view.until), subject: view.sel.startsWith("decision/") ? "" : view.sel });
  const last = answer.events.filter((event) => event.at <= view.at).at(-1);
  const children = answer.events.map((event) => {
    const time = el("time", "", clockText(event.at, false));
    time.title = `${clockText(event.at)}, position ${event.position}: go there`;
    time.onclick = () => change({ at: event.at });
    return el("div", `event${event === last ? " now" : ""}`, time, paragraph(event.text, event.level));
  });
  if (!children.length) children.push(paragraph("Nothing happened within five minutes of this moment.", "debug"));
  if (answer.more) children.push(paragraph("There is more: the command prints all of it.", "debug"));
  return { children, told: answer.command };
}

for (const button of document.querySelectorAll("#tabs button")) button.onclick = () => change({ tab: button.dataset.tab });
form.onsubmit = (event) => { event.preventDefault(); text.replaceChildren(paragraph("Deciding …", "debug")); showPanel(); };
command.onclick = async () => {
  await navigator.clipboard?.writeText(command.textContent.replace(/^\$ /, ""));
  command.classList.add("copied");
  setTimeout(() => command.classList.remove("copied"), 1500);
};

// Who copies a figure gets the command that prints it, too.
document.addEventListener("copy", (event) => {
  const chosen = getSelection(), anchor = chosen?.anchorNode;
  const from = (anchor instanceof Element ? anchor : anchor?.parentElement)?.closest("[data-command], #text");
  const told = from?.dataset.command ?? (from ? command.textContent.replace(/^\$ /, "") : "");
  if (!told || chosen.isCollapsed) return;
  event.clipboardData.setData("text/plain", `${chosen}\n$ ${told}`);
  event.preventDefault();
});
