// The story of anything that has a name: its events in order, each hung on what brought it about.
import { ask } from "../shared/api.js";
import { el, folded, link, section, subjectLink } from "../shared/dom.js";
import { change, clockText, duration, iso, view } from "../shared/view.js";
import { linked, paragraphs } from "./sentences.js";

export async function storyView(name) {
  const answer = await ask("story", { name, at: iso(view.at) });
  const { story, events } = answer, begin = events[0]?.at ?? 0, places = new Map(events.map((event, i) => [event.position, i]));
  const last = events.filter((event) => event.at <= view.at).at(-1);
  const rows = events.map((event, i) => {
    const cause = places.get(event.cause);
    const because = cause === undefined || cause >= i ? "" : el("span", "quiet because", `because of ${clockText(events[cause].at, false)}`);
    const when = link(clockText(event.at, false), () => change({ at: event.at }), "when");
    when.title = `${clockText(event.at)}, position ${event.position}: go there`;
    const row = el("li", `${event.level}${event === last ? " now" : ""}`, when, el("span", "quiet passed", i ? `+${duration(event.at - begin)}` : ""), el("span", "said", linked(event.text), " ", because));
    return row;
  });
  const others = story.others.length ? el("div", "names", "with ", ...story.others.slice(0, 12).flatMap((other) => [subjectLink(other), " "])) : "";
  const children = [el("p", "title", `The story of ${story.subject.replace("/", " ")}`), others, el("ol", "story", ...rows)];
  if (story.chain.length) children.splice(2, 0, chain(story.chain));
  if (!events.length) children.push(el("p", "debug", "Nothing is told of it up to this moment: go to a later one."));
  children.push(folded("What the command says", ...paragraphs(answer.text)));
  return { children: children.filter(Boolean), told: answer.command };
}

// Nodes that replaced one another.
function chain(links) {
  const steps = links.flatMap((step, i) => [i ? " → " : "", subjectLink(`nodeclaim/${step.claim}`), step.instance_type ? ` ${step.instance_type}` : "", step.why ? ` (${step.why})` : ""]);
  return section("One node after the other", el("div", "", ...steps));
}
