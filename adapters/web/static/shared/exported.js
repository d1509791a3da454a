// Answers of an export: what the API was asked beforehand, for moments, names and decisions of one incident.
const told = globalThis.KERF_EXPORT ?? null;
export const exported = told !== null;

// What was asked and is not in the export is refused, with what there is instead.
class NotExported extends Error {
  constructor(what) {
    super(`${what} is not in this export: it was made beforehand, without kerf. Ask kerf ui, or the command, with the record.`);
    this.code = "EXPORT";
  }
}

export function exportNote() {
  return told.note;
}

export function answerOf(name, parameters) {
  const answer = ANSWERS[name]?.(parameters);
  if (!answer) throw new NotExported(WHAT[name]?.(parameters) ?? name);
  return answer;
}

const WHAT = {
  explain: ({ name }) => `Why ${name} is as it is`, story: ({ name }) => `The story of ${name}`, decision: ({ position }) => `Decision ${position}`,
  again: () => "Deciding again", whatif: () => "What if", modelled: () => "The model", diff: () => "A comparison of these moments",
};
const ANSWERS = {
  record: () => told.record, findings: () => told.findings, timeline: () => told.timeline, curves,
  tile: ({ level, number }) => own(told.tiles, `${level}/${number}`) ?? { level, number, apart: 1, lanes: [], marks: [] },
  fill: ({ level, number }) => own(told.fills, `${level}/${number}`) ?? { level, number, nodes: {} },
  status: ({ at }) => latest(told.status, at), explain: ({ name, at }) => latest(own(told.explain, name), at),
  decision: ({ position }) => own(told.decision, position), again: ({ position }) => own(told.again, position),
  diff: ({ before, after }) => (Date.parse(before) === told.since && Date.parse(after) === told.until ? told.diff : null),
  story, log, search, step,
};

function own(answers, key) {
  return answers && Object.hasOwn(answers, key) ? answers[key] : undefined;
}

// The answer as of the last moment that is not later, or of the first one.
function latest(list, at) {
  const time = at ? Date.parse(at) : told.until;
  return (list?.findLast((one) => one.at <= time) ?? list?.[0])?.answer;
}

// The points of a part, and one on either side of it.
function curves({ since, until }) {
  const { times, cost, ...others } = told.curves;
  const first = Math.max(0, times.findLastIndex((time) => time <= since)), after = times.findIndex((time) => time >= until);
  const part = (values) => values.slice(first, after < 0 ? undefined : after + 1);
  return {
    times: part(times), cost: Object.fromEntries(Object.entries(cost).map(([pool, values]) => [pool, part(values)])),
    ...Object.fromEntries(Object.entries(others).filter(([, values]) => Array.isArray(values)).map(([name, values]) => [name, part(values)])),
  };
}

function story({ name, at }) {
  const found = own(told.story, name);
  return found && { ...found, events: found.events.filter((event) => event.at <= Date.parse(at)) };
}

function log({ since = 0, until = Infinity, subject = "", limit = 200 }) {
  const events = told.log.events.filter((event) => event.at >= since && event.at <= until && (!subject || event.subjects.includes(subject)));
  return { ...told.log, events: events.slice(0, limit), more: events.length > limit };
}

function search({ q }) {
  const names = Object.keys(told.explain).filter((name) => name.includes(q)).slice(0, 50);
  const found = names.map((name) => ({ kind: name.slice(0, name.indexOf("/")), name: name.slice(name.indexOf("/") + 1) }));
  return [...found, ...told.marks.filter((mark) => mark.text.includes(q)).slice(0, 20).map((mark) => ({ kind: "decision", name: String(mark.position), at: mark.at, text: mark.text }))];
}

function step({ at, by = "next" }) {
  const decisions = told.marks.filter((mark) => mark.kind === "decision");
  return (by === "next" ? decisions.find((mark) => mark.at > at) : decisions.findLast((mark) => mark.at < at)) ?? { at: 0, position: 0, text: "" };
}
