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

// A name after one of these words is of that kind: a PodDisruptionBudget is often called like its Deployment. Names of
// other kinds, such as a NodeClass, which is often called like its NodePool, lead nowhere.
const KINDS = [[/^PodDisruptionBudgets?$/, "poddisruptionbudget/"], [/^(Deployment|ReplicaSet|StatefulSet|CronJob|Job)$/, "workload/"]];
const BOUGHT_AS = /^(spot|on-demand|reserved)$/; // a NodePool may be called so: it is one after its kind, or first in a line
const OTHER_KIND = /(Budget|Class|ConfigMap|Volume|VolumeClaim|Secret|Service|Namespace)s?$/;

function named(name, kind, found, first) {
  const known = KINDS.find(([word]) => word.test(kind)), bare = name.replace(/\.$/, "");
  if (known) return bare.includes("/") ? known[1] + bare : null;
  if (OTHER_KIND.test(kind) || (BOUGHT_AS.test(bare) && !first && !/^nodepools?$/i.test(kind))) return null;
  return found(name) ?? found(bare);
}

// A sentence within another element.
export function linked(said) {
  const made = document.createDocumentFragment();
  const names = knownNames(), here = namesHere(), found = (name) => names.get(name) ?? here.get(name);
  const parts = said.split(/((?:position|decision) \d+|[\w.\-/]+)/);
  let kind = "";
  for (const [i, part] of parts.entries()) {
    if (i % 2) kind = parts[i - 1] === " " ? parts[i - 2] : parts[i - 1] === ", " ? kind : ""; // "Kind NAME, NAME"
    const position = part.match(/^(?:position|decision) (\d+)$/);
    const subject = position ? `decision/${position[1]}` : named(part, kind, found, i === 1 && !parts[0].trim());
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
