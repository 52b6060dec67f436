// Words and figures as people read them. What could hide or turn text around is shown, not obeyed.

const HIDDEN = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u200B-\u200F\u2028-\u202E\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]|[\u{E0000}-\u{E007F}]/gu;
const TURNING = /[\u202A-\u202E\u2066-\u2069]/g;

const named = (c) => `‹U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}›`;

// Of what runs and what was measured: nothing invisible stays so.
export const visible = (text) => String(text).replace(HIDDEN, named);
// Of prose, in which languages and emoji need their marks.
export const straight = (text) => String(text).replace(TURNING, named);

const TOKENS = /"(?:[^"\\]+|\\.)*"|[{}[\],:]|[^"{}[\],:\s]+/g;
const DEEPEST = 20; // levels that are indented

// JSON a value a line. Its numbers stay as they are written: a browser's have 53 bits.
export function indented(json) {
  try {
    JSON.parse(json);
  } catch {
    return json;
  }
  let made = "", depth = 0, before = "";
  const line = () => `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
  for (const [token] of json.matchAll(TOKENS)) {
    const opens = before === "{" || before === "[";
    if (token === "}" || token === "]") {
      depth -= 1;
      made += opens ? token : line() + token;
    } else {
      made += (opens || before === "," ? line() : "") + (token === ":" ? ": " : token);
      if (token === "{" || token === "[") depth += 1;
    }
    before = token;
  }
  return made;
}

export const tool = (id) => visible(id).replace(/^core__/, "");
// In UTC, as answers and the audit log speak of time.
export const time = (at) => new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: "UTC" });
export const day = (at) => new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export function moment(at) {
  const then = new Date(at);
  if (Number.isNaN(then.getTime())) return "";
  return day(then) === day(Date.now()) ? `${time(at)} UTC` : `${day(then)} ${time(at)} UTC`;
}

export const seconds = (ms) => ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`;
export const dollars = (micros) => micros === null || micros === undefined ? "price unknown" : `$${(micros / 1e6).toFixed(micros < 1e6 ? 4 : 2)}`;
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;

export function left(until) {
  const s = Math.max(0, Math.floor((new Date(until) - Date.now()) / 1000));
  return s ? `${Math.floor(s / 60)}:${String(s % 60).padStart(2, "0")} left` : "time is up";
}

export function ago(at) {
  const s = Math.max(0, Math.floor((Date.now() - new Date(at)) / 1000));
  return s < 60 ? "just now" : s < 3600 ? `${Math.floor(s / 60)} min ago` : `${Math.floor(s / 3600)} h ago`;
}
