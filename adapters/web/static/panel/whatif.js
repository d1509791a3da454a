// What if: a form that changes one thing, and the next decision with it and without it.
import { ask } from "../shared/api.js";
import { el } from "../shared/dom.js";
import { iso, view } from "../shared/view.js";
import { namesHere } from "../cluster/cluster.js";
import { paragraph, paragraphs } from "./sentences.js";
import { knownNames } from "../time/lanes.js";

export const form = document.getElementById("change");
const flag = document.getElementById("flag"), value = document.getElementById("value"), manifest = document.getElementById("manifest");
const BUDGET = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {namespace: default, name: web}\nspec:\n  minAvailable: 1\n  selector: {matchLabels: {app: web}}";
const EXAMPLES = {
  set: "nodepool/default.spec.disruption.consolidateAfter=30s", apply: BUDGET, remove: "node/NAME", delete: "pod/NAMESPACE/NAME",
  price: "m5.large/spot=+20%", "no-capacity": "m5.large/spot", setting: "batch_idle=5s",
};

// What stands in the form: the flag of the command and its value, a manifest for apply. The value may be empty.
export function changeAsked() {
  return { flag: flag.value, change: field().value.trim() };
}

function field() {
  return flag.value === "apply" ? manifest : value;
}

// The change that was asked for last is asked again at each moment, until another one is.
export async function whatIfView() {
  showField();
  const asked = changeAsked();
  if (!asked.change) return { children: [paragraph("Change one thing, and see the next decision after this moment with it and without it. For example:", "debug"), ...examples()], told: "" };
  const answer = await ask("whatif", { ...asked, at: iso(view.at) });
  const sides = el("div", "sides", el("div", "side", el("b", "", "Without the change"), answer.unchanged), el("div", "side", el("b", "", "With the change"), answer.changed));
  const beside = answer.unchanged && answer.changed ? [sides] : [];
  return { children: [...beside, ...paragraphs(answer.text)], told: answer.command };
}

// A field for the value, or a larger one for a manifest.
function showField() {
  value.hidden = flag.value === "apply";
  manifest.hidden = !value.hidden;
  field().placeholder = example(flag.value);
}

// An example with names of this record.
function example(name) {
  const named = (kind) => [...knownNames().values(), ...namesHere().values()].find((known) => known.startsWith(`${kind}/`));
  return ["nodepool/default", "node/NAME", "pod/NAMESPACE/NAME"].reduce((text, stand) => text.replace(stand, named(stand.split("/")[0]) ?? stand), EXAMPLES[name]);
}

// Changes to begin with. A click writes one into the form.
function examples() {
  return Object.keys(EXAMPLES).map((name) => {
    const filled = example(name);
    const button = el("button", "example", el("b", "", name), ` ${name === "apply" ? "a manifest of any kind, such as a PodDisruptionBudget" : filled}`);
    button.type = "button";
    button.onclick = () => {
      flag.value = name;
      showField();
      field().value = filled;
      field().focus();
    };
    return button;
  });
}

flag.onchange = showField;
manifest.onkeydown = (event) => { if (event.key === "Enter" && event.ctrlKey) form.requestSubmit(); };
