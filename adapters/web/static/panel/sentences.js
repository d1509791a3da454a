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

// Kinds that a name may belong to, beside those that are explained: a PodDisruptionBudget is often called like its
// Deployment, a NodeClass like its NodePool. Their names lead nowhere.
const OTHER_KIND = /(Budget|Class|ConfigMap|Volume|VolumeClaim|Secret|Service|Namespace)s?$/;

// A sentence within another element.
export function linked(said) {
  const made = document.createDocumentFragment();
  const names = knownNames(), here = namesHere(), found = (name) => names.get(name) ?? here.get(name);
  const parts = said.split(/((?:position|decision) \d+|[\w.\-/]+)/);
  let kind = "";
  for (const [i, part] of parts.entries()) {
    if (i % 2) kind = parts[i - 1] === " " ? parts[i - 2] : parts[i - 1] === ", " ? kind : ""; // "Kind NAME, NAME"
    const position = part.match(/^(?:position|decision) (\d+)$/);
    const subject = position ? `decision/${position[1]}` : OTHER_KIND.test(kind) ? null : found(part) ?? found(part.replace(/\.$/, ""));
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
