// The command line's own sentences, with a link on each name that the record knows and on each position.
import { namesHere } from "../cluster/cluster.js";
import { el } from "../shared/dom.js";
import { change, view } from "../shared/view.js";
import { knownNames } from "../time/lanes.js";

// A paragraph for each line of a command's text.
export function paragraphs(lines) {
  return lines.map(({ text, style }) => paragraph(text, style));
}

export function paragraph(said, style) {
  const made = el("p", style, linked(said));
  const indent = said.length - said.trimStart().length + 2; // what is wrapped stands further to the right
  if (style !== "title") {
    made.style.paddingLeft = `${indent}ch`;
    made.style.textIndent = `-${indent}ch`;
  }
  return made;
}

// A sentence within another element.
export function linked(said) {
  const made = document.createDocumentFragment();
  const names = knownNames(), here = namesHere(), found = (name) => names.get(name) ?? here.get(name);
  for (const part of said.split(/((?:position|decision) \d+|[\w.\-/]+)/)) {
    const position = part.match(/^(?:position|decision) (\d+)$/);
    const subject = position ? `decision/${position[1]}` : found(part) ?? found(part.replace(/\.$/, ""));
    if (subject && subject !== view.sel) {
      const link = el("a", "", part);
      link.tabIndex = 0;
      link.setAttribute("role", "link");
      link.onclick = () => change({ sel: subject, tab: "why" });
      link.onkeydown = (event) => { if (event.key === "Enter") link.click(); };
      made.append(link);
    } else made.append(part);
  }
  return made;
}
