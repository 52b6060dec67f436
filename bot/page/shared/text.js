// Text as people read it: Slack's mrkdwn and standard Markdown, to HTML. Everything is escaped first.

const EMOJI = {
  white_check_mark: "✅", heavy_check_mark: "✔️", x: "❌", warning: "⚠️", eyes: "👀", mag: "🔍",
  hourglass: "⌛", hourglass_flowing_sand: "⏳", rotating_light: "🚨", fire: "🔥", rocket: "🚀",
  large_green_circle: "🟢", large_yellow_circle: "🟡", red_circle: "🔴", white_circle: "⚪",
  information_source: "ℹ️", no_entry: "⛔", lock: "🔒", stop_sign: "🛑", bulb: "💡", tada: "🎉",
  "+1": "👍", "-1": "👎", thinking_face: "🤔", chart_with_upwards_trend: "📈", brain: "🧠",
};

export const escapeHtml = (text) =>
  String(text).replace(/[&<>"']/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" })[c]);
export const unescapeSlack = (text) =>
  String(text).replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
export const emoji = (name) => EMOJI[name] ?? null;

// Names of people and channels, set once they are known.
export const names = { users: new Map(), channels: new Map(), groups: new Map(), me: "" };

const OPEN = "\uE000", CLOSE = "\uE001";
const clean = (text) => text.replace(/[\uE000\uE001]/g, "");

// Finished HTML is set aside under a mark that no later rule matches, and put back at the end.
class Kept {
  constructor() { this.pieces = []; }
  keep(html) { this.pieces.push(html); return OPEN + (this.pieces.length - 1) + CLOSE; }
  restore(html) {
    const put = (text) => text.replace(/\uE000(\d+)\uE001/g, (_, n) => put(this.pieces[+n]));
    return put(html);
  }
}

// Which addresses may be clicked. A page that shows what a model wrote replaces `allows`.
export const liveLinks = { allows: () => true };

function link(url, label) {
  if (!/^(https?:\/\/|mailto:)[^\s\uE000\uE001]*$/i.test(url)) return label; // no mark inside an attribute
  if (!liveLinks.allows(url)) {
    const address = `<code>${escapeHtml(url)}</code>`;
    return label === escapeHtml(url) ? address : `${label} (${address})`;
  }
  return `<a href="${escapeHtml(url)}" target="_blank" rel="noopener noreferrer">${label}</a>`;
}

function mention(id, label) {
  const name = names.users.get(id) ?? label ?? id;
  const mine = id === names.me ? " is-me" : "";
  return `<span class="mention${mine}">@${escapeHtml(name)}</span>`;
}

export function formatDate(seconds, format) {
  const at = new Date(seconds * 1000);
  const day = at.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return format
    .replace(/\{date_short_pretty\}|\{date_pretty\}|\{date_long\}|\{date_short\}|\{date_num\}|\{date_long_pretty\}|\{date\}/g, day)
    .replace(/\{time_secs\}/g, at.toLocaleTimeString()).replace(/\{time\}/g, time)
    .replace(/\{ago\}/g, time);
}

function token(body) {
  const [head, ...rest] = body.split("|");
  const label = rest.length ? unescapeSlack(rest.join("|")) : null;
  if (/^@[UW]/.test(head)) return mention(head.slice(1), label);
  if (/^#C/.test(head)) {
    return `<span class="mention">#${escapeHtml(names.channels.get(head.slice(1)) ?? label ?? head.slice(1))}</span>`;
  }
  if (head.startsWith("!date^")) {
    const [, seconds, format] = head.split("^");
    const shown = Number(seconds) ? formatDate(Number(seconds), format ?? "{date} {time}") : label ?? "";
    return `<time>${escapeHtml(shown)}</time>`;
  }
  if (head.startsWith("!subteam^")) return `<span class="mention">${escapeHtml(label ?? `@${names.groups.get(head.slice(9)) ?? "group"}`)}</span>`;
  if (/^!(here|channel|everyone)$/.test(head)) return `<span class="mention is-me">@${head.slice(1)}</span>`;
  if (/^(https?:\/\/|mailto:)/i.test(head)) return link(unescapeSlack(head), escapeHtml(label ?? unescapeSlack(head)));
  return null;
}

const withEmoji = (html) => html.replace(/:([a-z0-9_+-]+):/g, (all, name) => emoji(name) ?? all);

function slackTokens(text, kept) {
  return text.replace(/<([^<>\n\uE000\uE001]+)>/g, (all, body) => {
    const html = token(body);
    return html === null ? all : kept.keep(html);
  });
}

function codeSpans(text, kept) {
  return text
    .replace(/```([\s\S]*?)```/g, (_, code) => kept.keep(`<pre><code>${escapeHtml(unescapeSlack(code.replace(/^\n|\n$/g, "")))}</code></pre>`))
    .replace(/`([^`\n]+)`/g, (_, code) => kept.keep(`<code>${escapeHtml(unescapeSlack(code))}</code>`));
}

const between = (mark, tag) => [
  new RegExp(`(^|[\\s([{"'>~*_\\uE001])${mark}(?=\\S)([^\\n]*?\\S)${mark}(?=$|[\\s)\\]}"'.,:;!?<~*_\\uE000-])`, "g"),
  `$1<${tag}>$2</${tag}>`,
];
const SLACK_STYLES = [between("\\*", "strong"), between("_", "em"), between("~", "s")];

export function mrkdwn(source) {
  const kept = new Kept();
  let text = slackTokens(codeSpans(clean(String(source)), kept), kept);
  text = withEmoji(escapeHtml(unescapeSlack(text)));
  for (const [rule, by] of SLACK_STYLES) text = text.replace(rule, by);
  const lines = [];
  let quote = [];
  const endQuote = () => { if (quote.length) lines.push(`<blockquote>${quote.join("<br>")}</blockquote>`); quote = []; };
  for (const line of text.split("\n")) {
    if (/^&gt; ?/.test(line)) { quote.push(line.replace(/^&gt; ?/, "")); continue; }
    endQuote();
    lines.push(line);
  }
  endQuote();
  const html = lines.join("<br>").replace(/(<\/blockquote>)<br>|<br>(?=<blockquote>)/g, "$1");
  return kept.restore(html);
}

// Characters of a line that is read as Markdown; a longer one stands as it is. The rules look back and forth in a
// line, so that their time grows with its square.
const MOST_LINE = 4_000;

function inline(source, kept) {
  if (source.length > MOST_LINE) return escapeHtml(source);
  let text = slackTokens(source.replace(/`([^`\n]+)`/g, (_, code) => kept.keep(`<code>${escapeHtml(code)}</code>`)), kept);
  text = text.replace(/!?\[([^\]\n]*)\]\(([^\s\uE000\uE001]+?)(?:\s+"[^"]*")?\)/g, (_, label, url) => kept.keep(link(url, inline(label, kept))));
  text = text.replace(/https?:\/\/[^\s<>()\uE000\uE001]*[^\s<>().,;:!?'"\uE000\uE001]/g, (url) => kept.keep(link(url, escapeHtml(url))));
  text = withEmoji(escapeHtml(text.replace(/\\([\\`*_{}[\]()#+\-.!|>~])/g, (_, c) => kept.keep(escapeHtml(c)))));
  return text
    .replace(/\*\*(?=\S)([^\n]*?\S)\*\*/g, "<strong>$1</strong>")
    .replace(/(^|[^\w*])\*(?=\S)([^*\n]*?\S)\*(?!\w)/g, "$1<em>$2</em>")
    .replace(/(^|[^\w_])_(?=\S)([^_\n]*?\S)_(?!\w)/g, "$1<em>$2</em>")
    .replace(/~~(?=\S)([^\n]*?\S)~~/g, "<s>$1</s>");
}

const cells = (row) => row.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
const isRule = (line) => line.length <= MOST_LINE && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(line) && line.includes("-");

function table(lines, at, kept) {
  const head = cells(lines[at]);
  let end = at + 2;
  const rows = [];
  while (end < lines.length && lines[end].includes("|") && lines[end].trim()) rows.push(cells(lines[end++]));
  const cell = (tag, text) => `<${tag}>${inline(text ?? "", kept)}</${tag}>`;
  const body = rows.map((row) => `<tr>${head.map((_, n) => cell("td", row[n])).join("")}</tr>`).join("");
  const html = `<div class="table" tabindex="0" role="region" aria-label="Table"><table><thead><tr>${head.map((text) => cell("th", text)).join("")}</tr></thead><tbody>${body}</tbody></table></div>`;
  return [html, end];
}

const ITEM = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/;

function list(lines, at, kept) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    if (!found) {
      if (!lines[end].trim() || !/^\s+/.test(lines[end]) || !items.length) break;
      items[items.length - 1] += "<br>" + inline(lines[end++].trim(), kept);
    } else if (found[1].length > indent.length) {
      const [html, next] = list(lines, end, kept);
      items[items.length - 1] = (items[items.length - 1] ?? "") + html;
      end = next;
    } else if (found[1].length < indent.length || /\d/.test(found[2]) !== ordered) {
      break;
    } else {
      items.push(inline(found[3], kept));
      end += 1;
    }
  }
  const tag = ordered ? "ol" : "ul";
  const start = ordered && parseInt(mark, 10) > 1 ? ` start="${parseInt(mark, 10)}"` : "";
  return [`<${tag}${start}>${items.map((item) => `<li>${item}</li>`).join("")}</${tag}>`, end];
}

export function markdown(source) {
  const kept = new Kept();
  const lines = unescapeSlack(clean(String(source))).split("\n");
  const html = [];
  let paragraph = [];
  const flush = () => { if (paragraph.length) html.push(`<p>${paragraph.map((line) => inline(line, kept)).join("<br>")}</p>`); paragraph = []; };
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    if (line.length > MOST_LINE) {
      paragraph.push(line);
      at += 1;
      continue;
    }
    const fence = /^\s*(```+|~~~+)/.exec(line);
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (fence) {
      flush();
      let end = at + 1;
      while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end += 1;
      html.push(`<pre><code>${escapeHtml(lines.slice(at + 1, end).join("\n"))}</code></pre>`);
      at = end + 1;
    } else if (heading) {
      flush();
      html.push(`<h4>${inline(heading[2], kept)}</h4>`);
      at += 1;
    } else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      flush();
      html.push("<hr>");
      at += 1;
    } else if (/^\s*>/.test(line)) {
      flush();
      const quote = [];
      while (at < lines.length && /^\s*>/.test(lines[at])) quote.push(inline(lines[at++].replace(/^\s*>\s?/, ""), kept));
      html.push(`<blockquote>${quote.join("<br>")}</blockquote>`);
    } else if (line.includes("|") && at + 1 < lines.length && isRule(lines[at + 1]) && lines[at + 1].includes("|")) {
      flush();
      const [made, next] = table(lines, at, kept);
      html.push(made);
      at = next;
    } else if (ITEM.test(line)) {
      flush();
      const [made, next] = list(lines, at, kept);
      html.push(made);
      at = next;
    } else if (!line.trim()) {
      flush();
      at += 1;
    } else {
      paragraph.push(line);
      at += 1;
    }
  }
  flush();
  return kept.restore(html.join(""));
}
