// Elements made of plain text: nothing that a record says is ever read as HTML.
import { change } from "./view.js";

export function el(kind, className = "", ...children) {
  const made = document.createElement(kind);
  if (className) made.className = className;
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

// A link within the page, that the keyboard reaches, too.
export function link(text, action, className = "link") {
  const made = el("button", className, text);
  made.type = "button";
  made.onclick = action;
  return made;
}

// The name of something that can be explained: "pod/default/web-1" is shown without its kind.
export function subjectLink(subject, text = subject.slice(subject.indexOf("/") + 1)) {
  return link(text, () => change({ sel: subject, tab: "why" }), "link subject");
}

export function section(title, ...children) {
  return el("section", "block", el("h3", "", title), ...children);
}

export function folded(title, ...children) {
  return el("details", "block", el("summary", "", title), ...children);
}

// A table with a head, its first column left, numbers right.
export function table(head, rows, className = "") {
  const body = el("tbody", "", ...rows.map((cells) => el("tr", "", ...cells.map((cell) => el("td", typeof cell === "number" ? "number" : "", cell instanceof Node ? cell : String(cell))))));
  return el("table", className, el("thead", "", el("tr", "", ...head.map((text) => el("th", "", text)))), body);
}

// An entry of a legend: a box in its colour, or a sign in it. With an action it can be clicked.
export function legendEntry(text, hue, { sign = "", action = null } = {}) {
  const box = el("i", "", sign), made = el(action ? "button" : "span", "", box, text);
  if (sign) Object.assign(box.style, { color: hue, fontStyle: "normal", width: "auto" });
  else box.style.background = hue;
  if (action) made.onclick = action;
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(kind, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function dollars(amount) {
  return `$${amount.toFixed(4)}/h`;
}
