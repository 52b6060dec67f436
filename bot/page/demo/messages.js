// One message as a DOM node, and lists of them that change in place.

import { emoji, mrkdwn, names } from "/page/text.js";
import { renderBlock } from "/page/blocks.js";
import { h } from "/page/dom.js";

const clock = (ts) => new Date(parseFloat(ts) * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
const whole = (ts) => new Date(parseFloat(ts) * 1000).toLocaleString();

export function avatar(person) {
  if (person?.is_bot && person.name === "kortex") {
    return h("img", { class: "avatar", src: "/page/mark.svg", alt: "" });
  }
  const name = person?.real_name ?? "?";
  const initials = name.split(" ").map((word) => word[0]).slice(0, 2).join("");
  const tone = [...(person?.id ?? "")].reduce((sum, c) => sum + c.charCodeAt(0), 0) % 6;
  return h("span", { class: `avatar tone-${tone}`, "aria-hidden": "true" }, initials);
}

function tags(person) {
  if (person?.is_bot) return h("span", { class: "tag" }, "APP");
  if (person?.is_stranger) return h("span", { class: "tag is-outside" }, "EXTERNAL");
  if (person?.is_guest) return h("span", { class: "tag" }, "GUEST");
  return null;
}

function body(message, press) {
  const shown = message.subtype === "tombstone"
    ? [h("p", { class: "muted" }, "This message was deleted.")]
    : message.blocks?.length
      ? message.blocks.map((block) => renderBlock(block, press))
      : [h("div", { class: "md prewrap", html: mrkdwn(message.text ?? "") })];
  const isCard = (message.blocks ?? []).some((block) => block.type === "header");
  const card = h("div", { class: isCard ? "card" : "plain" }, ...shown);
  const after = (message.files ?? []).map((file) => h("p", { class: "files" }, `📎 ${file.name ?? "a file"}`));
  const reactions = (message.reactions ?? []).map((each) =>
    h("span", { class: "reaction", title: each.users.map((id) => names.users.get(id) ?? id).join(", ") },
      `${emoji(each.name) ?? `:${each.name}:`} ${each.count}`));
  if (reactions.length) after.push(h("div", { class: "reactions" }, ...reactions));
  return [card, ...after];
}

// `context`: person(id), press(message), replies(message), openThread(ts), remove(message), canRemove(message)
export function messageNode(message, context, { inThread, continued }) {
  const person = context.person(message.user);
  const node = h("article", {
    class: `msg${message.is_ephemeral ? " is-private" : ""}${continued ? " is-continued" : ""}${person?.is_bot ? " is-bot" : ""}`,
    "data-ts": message.ts, "aria-label": `${person?.real_name ?? message.user}, ${clock(message.ts)}`,
  });
  if (message.is_ephemeral) node.append(h("p", { class: "private-note" }, "👁 Only visible to you"));
  node.append(avatar(person), h("div", { class: "msg-main" },
    h("header", {}, h("strong", {}, person?.real_name ?? message.user), tags(person),
      h("time", { title: whole(message.ts), datetime: new Date(parseFloat(message.ts) * 1000).toISOString() }, clock(message.ts)),
      message.edited ? h("span", { class: "edited", title: `Edited ${whole(message.edited.ts)}` }, "(edited)") : null),
    h("div", { class: "msg-body" }, ...body(message, context.press(message))),
    inThread ? null : replies(message, context)));
  node.append(tools(message, context, inThread));
  return node;
}

function replies(message, context) {
  const answers = context.replies(message);
  if (!answers.length) return null;
  const faces = [...new Set(answers.map((each) => each.user))].slice(0, 3).map((id) => avatar(context.person(id)));
  return h("button", { class: "replies", type: "button", onclick: () => context.openThread(message.ts) },
    h("span", { class: "faces" }, ...faces),
    h("span", { class: "count" }, `${answers.length} ${answers.length === 1 ? "reply" : "replies"}`),
    h("span", { class: "muted" }, `last at ${clock(answers[answers.length - 1].ts)}`));
}

function tools(message, context, inThread) {
  const row = h("div", { class: "tools" });
  if (message.subtype === "tombstone" || message.is_ephemeral) return row;
  if (!inThread) row.append(h("button", { class: "icon", type: "button", "aria-label": "Reply in thread", title: "Reply in thread", onclick: () => context.openThread(message.ts) }, "💬"));
  if (context.canRemove(message)) row.append(h("button", { class: "icon", type: "button", "aria-label": "Delete message", title: "Delete message", onclick: () => context.remove(message) }, "🗑"));
  return row;
}

// The node in which the last speaker begins; null where nothing is said.
function runOf(messages, nodes) {
  let at = messages.length - 1;
  while (at > 0 && messages[at - 1].user === messages[at].user) at -= 1;
  return nodes[at] ?? null;
}

// Keeps a list's nodes in step with messages: only what changed is built again.
export class MessageList {
  constructor(root, scroll, context, inThread) {
    Object.assign(this, { root, scroll, context, inThread, shown: new Map(), run: null, left: -1 });
  }

  show(messages) {
    const { scrollHeight, scrollTop, clientHeight } = this.scroll;
    const follows = scrollHeight - scrollTop - clientHeight < 120 || Math.abs(scrollTop - this.left) < 2;
    const before = this.shown;
    this.shown = new Map();
    let previous = null;
    const nodes = messages.map((message) => {
      const continued = !!previous && previous.user === message.user && !message.is_ephemeral && !previous.is_ephemeral
        && parseFloat(message.ts) - parseFloat(previous.ts) < 300 && !(message.blocks ?? []).some((b) => b.type === "header");
      previous = message;
      const face = JSON.stringify([message, continued, this.inThread ? 0 : this.context.replies(message).map((each) => each.ts)]);
      const known = before.get(message.ts);
      const node = known?.face === face ? known.node : this.build(message, continued, known?.node);
      this.shown.set(message.ts, { face, node });
      return node;
    });
    this.place(nodes);
    this.run = runOf(messages, nodes);
    if (follows) this.toEnd();
  }

  build(message, continued, old) {
    const focused = old?.contains(document.activeElement) ? document.activeElement.dataset.action : null;
    const node = messageNode(message, this.context, { inThread: this.inThread, continued });
    node.classList.add(old ? "is-changed" : "is-new");
    if (old) old.replaceWith(node);
    if (focused) node.querySelector(`[data-action="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    return node;
  }

  place(nodes) {
    const wanted = new Set(nodes);
    for (const child of [...this.root.children]) if (!wanted.has(child)) child.remove();
    nodes.forEach((node, index) => { if (this.root.children[index] !== node) this.root.insertBefore(node, this.root.children[index] ?? null); });
  }

  // To the end, but no further than where the last speaker begins: an answer is read from its headline.
  toEnd() {
    const top = this.run ? this.run.getBoundingClientRect().top - this.scroll.getBoundingClientRect().top + this.scroll.scrollTop : Infinity;
    this.scroll.scrollTop = Math.max(0, Math.min(this.scroll.scrollHeight, top));
    this.left = this.scroll.scrollTop;
  }
}
