// Search across names and reasons: what is found is chosen by arrows and Enter, or by a click.
import { ask } from "./shared/api.js";
import { el } from "./shared/dom.js";
import { change, clockText } from "./shared/view.js";

const input = document.getElementById("search"), list = document.getElementById("found");
const PAUSE = 150; // ms without a key before it is asked
let timer = 0, hiding = 0, chosen = 0;

export function focusSearch() {
  input.focus();
  input.select();
}

input.oninput = () => {
  clearTimeout(timer);
  timer = setTimeout(find, PAUSE);
};
input.onkeydown = (event) => {
  if (event.key === "Escape") { list.hidden = true; input.blur(); }
  if (event.key === "Enter") list.querySelectorAll("[role=option]")[chosen]?.click();
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
  }
};
input.onblur = () => { hiding = setTimeout(() => { list.hidden = true; }, 200); };
input.onfocus = () => { clearTimeout(hiding); if (input.value.trim() && list.children.length) list.hidden = false; };

async function find() {
  const q = input.value.trim();
  const names = q ? await ask("search", { q }) : [];
  if (q !== input.value.trim()) return;
  list.hidden = !q;
  list.replaceChildren(...(names.length ? names.map(found) : [el("li", "quiet", "Nothing in this record is called so, and nothing was said of it. Try a part of a name, or a word of a reason: capacity, budget, limit.")]));
  if (!document.getElementById("reading").hidden) list.append(el("li", "quiet", "The record is still being read: more of what was said may be found in a moment."));
  choose(0);
}

function choose(number) {
  const options = [...list.querySelectorAll("[role=option]")];
  chosen = Math.max(0, Math.min(options.length - 1, number));
  options.forEach((option, i) => option.setAttribute("aria-selected", i === chosen));
  options[chosen]?.scrollIntoView({ block: "nearest" });
}

function found({ kind, name, at, text }) {
  const item = text ? el("li", "", el("span", "quiet", `${clockText(at, false)} `), text) : el("li", "", el("span", "quiet", `${kind} `), name);
  item.setAttribute("role", "option");
  item.onclick = () => { list.hidden = true; change({ sel: `${kind}/${name}`, tab: "why", ...(at ? { at } : {}) }); };
  return item;
}
