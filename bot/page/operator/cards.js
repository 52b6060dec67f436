// Proposals as cards: all that would run, and Confirm and Reject for who may.

import { api } from "/page/api.js";
import { dialog } from "/page/dialogs.js";
import { h } from "/page/dom.js";
import { threadLink } from "/page/links.js";
import { ago, indented, left, moment, visible } from "/page/words.js";

const TONES = { pending: "busy", confirmed: "busy", dispatching: "busy", succeeded: "good", failed: "bad", unknown: "warn", rejected: "cut", expired: "cut", superseded: "cut" };
export const FINAL = new Set(["succeeded", "failed", "unknown", "rejected", "expired", "superseded"]);
const MOST_REASON_CHARS = 500;

const json = (text) => text ? { json: text } : "";
// Names and values, whole; the JSON itself where it is no such list.
const listed = (rows, text) => rows?.length ? { rows } : text === "{}" ? "none" : json(text);

const where = (row) => row.channel ? { name: row.channel, url: row.thread_url } : "";

const facts = (row) => [
  ["Action", `${row.action} for ${row.product}`], ["In", where(row)], ["Proposed", { since: row.created_at }],
  ["Parameters", listed(row.arguments, row.as_stored.params)], ["Reasoning (unverified)", row.rationale], ["May touch", row.blast_radius], ["Claimed scope (unverified)", row.model_blast_radius],
  ["Touches", row.touches.join(", ")], ["Dry run", listed(row.preview, row.as_stored.dry_run)], ["Can be undone", row.reversible ? "yes" : "no"], ["Asked by", row.asked_by_name || row.asked_by],
  ["Can be confirmed by", row.may_confirm.join(", ") || "no one"], ["Must also hold", row.must_also_hold.join(", ")],
  ["Not by the asker", row.four_eyes ? "yes" : ""], ["Confirmations", row.approvals > 1 ? `${row.confirmed_by.length} of ${row.approvals}` : ""],
  ["Decided by", row.decided_by ? `${row.decided_by_name || row.decided_by}, ${moment(row.decided_at)}` : ""], ["Reason", row.reason], ["Outcome", json(row.as_stored.outcome)],
].filter(([, value]) => value !== "" && value !== null && value !== undefined);

function shown(value) {
  if (value.json) return [h("pre", {}, h("code", {}, visible(indented(value.json))))];
  if (value.rows) return [h("ul", { class: "values" }, ...value.rows.map(([name, each]) => h("li", {}, `${visible(name)}: `, h("code", {}, visible(each)))))];
  if (value.name) return [threadLink(value.name, value.url)];
  if (value.since) return [`${moment(value.since)}, `, h("span", { "data-since": value.since }, ago(value.since))];
  return [visible(value)];
}

const told = (row) => h("dl", { class: "facts" }, ...facts(row).flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, ...shown(value))]));

const warned = (row) => row.warning ? h("p", { class: "note" }, `⚠ ${visible(row.warning)}`) : null;

// As it is stored, and as it would be sent.
const raw = (row) => h("details", { class: "raw" }, h("summary", {}, "JSON"), ...[["Parameters", row.as_stored.params], ["Dry run", row.as_stored.dry_run], ["Outcome", row.as_stored.outcome]]
  .filter(([, text]) => text).flatMap(([name, text]) => [h("p", { class: "muted" }, name), ...shown({ json: text })]));

function whyNot(row, me) {
  if (me.kind !== "person") return "A service cannot decide: sign in with a person's token.";
  if (!row.may_confirm.some((role) => me.roles.includes(role))) return `You hold none of its roles (${row.may_confirm.join(", ") || "no one does"}), so you cannot decide.`;
  return "";
}

async function sure(row) {
  const body = [h("p", {}, "This runs as soon as you confirm it:"), warned(row), told(row)].filter(Boolean);
  const buttons = [{ text: "Not now", answer: () => false }, { text: "Confirm", style: "primary", answer: () => true }];
  return dialog(`${visible(row.effect)}?`, body, buttons, true);
}

async function reasoned(row) {
  const box = h("textarea", { id: "reason", rows: 3, maxlength: MOST_REASON_CHARS });
  const body = [h("label", { for: "reason" }, "Reason (optional; stored and sent to the model)"), box];
  return dialog(`Reject: ${visible(row.effect)}?`, body, [{ text: "Not now", answer: () => null }, { text: "Reject", style: "danger", answer: () => box.value.trim() }]);
}

// Draws one card. `say` tells who listens what came of it, `onChange` gets the proposal as it stands then; `message` is
// what came of it before.
function card(row, me, { say, onChange, message }) {
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const act = (choose, send) => async (event) => {
    const button = event.currentTarget, chosen = await choose(row);
    if (chosen === null || chosen === false) { button.focus(); return; }
    node.querySelectorAll("button").forEach((each) => { each.disabled = true; });
    trouble.hidden = true;
    try {
      const decided = await send(row.id, chosen);
      say(decided.message);
      onChange(decided.proposal, decided.message);
    } catch (error) {
      trouble.textContent = error.message;
      trouble.hidden = false;
      node.querySelectorAll("button").forEach((each) => { each.disabled = false; });
    }
  };
  const isOpen = row.state === "pending", why = isOpen ? whyNot(row, me) : "";
  const node = h("article", { class: "card", "data-proposal": row.id, "aria-label": visible(row.effect) },
    h("header", {}, h("h3", {}, visible(row.effect)), h("span", { class: `chip is-${TONES[row.state] ?? "cut"}` }, row.status),
      isOpen ? h("span", { class: "muted", "data-until": row.expires_at }, left(row.expires_at)) : null),
    warned(row),
    row.untrusted_read ? h("p", { class: "note" }, "Based on tool output such as logs, which can be forged.") : null,
    told(row), raw(row), message ? h("p", { class: "said" }, visible(message)) : null, trouble,
    !isOpen ? null : why ? h("p", { class: "muted" }, why) : h("div", { class: "row" },
      h("button", { class: "btn is-primary", type: "button", onclick: act(sure, (id) => api.confirm(id)) }, "Confirm"),
      h("button", { class: "btn is-danger", type: "button", onclick: act(reasoned, (id, reason) => api.reject(id, reason)) }, "Reject")));
  return node;
}

// Cards by id in a container: one that did not change keeps its node, and so the focus in it.
export class Cards {
  constructor(container, me, { say, onChange }) {
    Object.assign(this, { container, me, say, onChange, shown: new Map(), said: new Map() });
  }

  show(rows) {
    const roles = JSON.stringify(this.me()?.roles);
    const next = new Map(rows.map((row) => {
      const message = this.said.get(row.id) ?? "";
      const key = JSON.stringify(row) + roles + message, before = this.shown.get(row.id);
      if (before?.key === key) return [row.id, before];
      const onChange = (changed, said) => {
        this.said.set(changed.id, said);
        this.put(changed);
        this.onChange?.(changed);
      };
      return [row.id, { key, row, node: card(row, this.me(), { say: this.say, onChange, message }) }];
    }));
    this.shown = next;
    const nodes = [...next.values()].map((each) => each.node);
    if (nodes.length !== this.container.children.length || nodes.some((node, n) => this.container.children[n] !== node)) this.container.replaceChildren(...nodes);
  }

  put(row) {
    const rows = new Map([...this.shown].map(([id, each]) => [id, each.row]));
    this.show([...rows.set(row.id, row).values()]);
  }
}

export function tick() {
  for (const node of document.querySelectorAll("[data-until]")) node.textContent = left(node.dataset.until);
  for (const node of document.querySelectorAll("[data-since]")) node.textContent = ago(node.dataset.since);
}
