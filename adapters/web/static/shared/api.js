// The API as functions. The token comes in the link's fragment, which browsers send to nobody, and stays in this tab.
import { answerOf, exported } from "./exported.js";

const KEY = "kerf-token";
const MOST_KEPT = 60;
const kept = new Map(); // URL → { etag, answer }: what is past does not change
const fragment = new URLSearchParams(location.hash.slice(1));
if (fragment.has("token")) {
  sessionStorage.setItem(KEY, fragment.get("token"));
  history.replaceState(null, "", location.pathname + location.search);
}

// As KerfError writes it: the answer of a command has its hint in the message.
function sentence({ message, hint }) {
  return hint ? `${message}${/[.!?]$/.test(message) ? "" : "."} ${hint}` : message;
}

export class Refused extends Error {
  constructor(status, error) {
    super(`${error.code ? error.code + ": " : ""}${sentence(error)}`);
    this.status = status;
    this.code = error.code;
  }
}

// A server that is not there is told in the browser's words, which say nothing of kerf.
async function reached(answer) {
  try {
    return await answer;
  } catch {
    throw new Error(
      "kerf does not answer. If it has ended, start kerf ui again and open the link that it prints: it has a new token.",
    );
  }
}

export function useToken(token) {
  sessionStorage.setItem(KEY, token);
}

// Calls back with what happens to the record: `position` with its last one, `read` with the share that is read.
export async function follow(told) {
  if (exported) return;
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` };
  const response = await reached(fetch("api/v1/live", { headers }));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reached(reader.read());
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const [, name, value] = event.match(/^event: (\w+)\ndata: (.*)$/) ?? [];
      if (name) told(name, Number(value));
    }
  }
}

// Characters that nobody sees, or that turn the text around them, are shown as escapes, as the commands print them. A
// name with escapes is asked for by what it stands for.
const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}\x7f-\x9f]/gu;
const escaped = (sign) => sign.split("").map((unit) => `\\\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");
const meant = (text) => String(text).replace(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16)));

export async function ask(name, parameters = {}) {
  if (exported) return answerOf(name, parameters);
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value != null);
  const query = new URLSearchParams(given.map(([key, value]) => [key, meant(value)]));
  const url = `api/v1/${name}${query.size ? "?" + query : ""}`;
  const known = kept.get(url);
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` };
  if (known) headers["If-None-Match"] = known.etag;
  const response = await reached(fetch(url, { headers }));
  if (response.status === 304) return known.answer;
  const answer = JSON.parse((await reached(response.text())).replace(UNSEEN, escaped));
  if (!response.ok) throw new Refused(response.status, answer.error);
  while (kept.size >= MOST_KEPT) kept.delete(kept.keys().next().value);
  kept.set(url, { etag: response.headers.get("ETag"), answer });
  return answer;
}
