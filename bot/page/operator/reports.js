// What admins read: what goes on, providers, budget, tools, and the audit log with its verification.

import { api } from "/page/api.js";
import { h } from "/page/dom.js";
import { threadLink } from "/page/links.js";
import { sortableTable } from "/page/drawing.js";
import { count, dollars, moment, tool, visible } from "/page/words.js";

const PAGE = 25;

function table(caption, heads, rows, none) {
  if (!rows.length) return h("p", { class: "muted" }, none);
  const cell = (value) => value?.node ? value : typeof value === "number" ? { value, text: value.toLocaleString("en") } : { value: visible(value ?? "") };
  return sortableTable({ caption, heads, rows: rows.map((row) => row.map(cell)), pageSize: PAGE });
}

const dollarCell = (micros) => dollars(micros);

// A thread by its channel's name and when it began, as a link where it can be opened.
function threadCell(name, each) {
  const began = each.thread ? moment(Number(each.thread) * 1000) : "", text = visible([name, began].filter(Boolean).join(", "));
  return { value: text, node: () => threadLink(text, each.thread_url) };
}

async function activity() {
  const { under_way: runs, sessions } = await api.activity();
  const where = (each) => threadCell(each.channel_name, each);
  return [
    table("Being answered now", ["Where", "Workspace", "Asked by", "Since"], runs.map((each) => [where(each), each.team, each.asker_name || "queued", each.since ? moment(each.since) : ""]), "Nothing is being answered now."),
    table("Newest conversations, Slack's as well", ["Where", "Workspace", "Last asked by", "Questions", "Active"], sessions.map((each) => [where(each), each.team, each.asker_name, each.questions, moment(each.active_at)]), "No conversation yet."),
  ];
}

async function providers() {
  const { providers: all } = await api.providers();
  const state = (each) => !each.available ? `not available: ${each.reason}` : each.circuit !== "closed" ? `resting, again in ${each.retry_in_s} s` : each.failures ? `${count(each.failures, "failure")} in a row` : each.answered ? "answers" : "not asked yet";
  return [table("In order of use", ["Provider", "State", "Model", "Runs here", "Order"], [...all].sort((a, b) => (a.turn || 99) - (b.turn || 99)).map((each) => [each.name, state(each), each.model, each.local ? "yes" : "no", each.turn || "–"]), "No provider is configured.")];
}

async function budget() {
  const told = await api.budget(), { limits } = told;
  const daily = limits.daily_usd_micros;
  const figures = [
    ["Spent today (UTC)", dollars(told.spent_usd_micros)], ["Reserved for running answers", dollars(told.held_usd_micros)],
    ["Forecast for the day", dollars(told.projected_usd_micros)], ["Daily limit", daily ? dollars(daily) : "none"],
    ["Used of it", daily ? `${Math.floor(100 * told.used_usd_micros / daily)} %` : "–"],
    ["Questions an hour, each person", limits.per_user_hourly_questions || "no limit"], ["Tokens of a session", limits.per_session_tokens ? limits.per_session_tokens.toLocaleString("en") : "no limit"],
  ];
  return [
    h("dl", { class: "facts" }, ...figures.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, String(value))])),
    ...Object.entries(told.by).map(([group, rows]) => table(`By ${visible(group)}`, ["Name", "Cost", "Rounds", "Tokens"], rows.map((row) => [group === "session" ? threadCell(row.label, row) : row.label, dollarCell(row.usd_micros), row.rounds, row.tokens]), `By ${visible(group)}: nothing was spent yet.`)),
  ];
}

async function tools() {
  const told = await api.tools();
  const failed = (health) => Object.entries(health.outcomes).filter(([name]) => name !== "ok").map(([name, number]) => `${number} ${name}`).join(", ");
  const calls = (health) => Object.values(health.outcomes).reduce((sum, each) => sum + each, 0);
  return [
    ...(told.notes ?? []).map((note) => h("p", { class: "note" }, visible(note))),
    table("Tools", ["Tool", "Toolsets", "Calls", "Failed", "Not offered because"], told.tools.map((each) => [tool(each.id), each.toolsets.join(", ") || "none", calls(each.health), failed(each.health), each.reason]), "No tool is loaded."),
    table("Toolsets", ["Toolset", "Tools", "Tokens in every request, at most"], told.toolsets.map((each) => [each.name, each.tools, each.max_tokens]), "No toolset is configured."),
  ];
}

async function audit() {
  const state = await api.auditState();
  const { entries } = await api.auditRows(Math.max(0, state.rows - 50));
  const facts = [["Rows", state.rows.toLocaleString("en")], ["Sealed with a key", (state.rows - state.unkeyed - state.sealed).toLocaleString("en")], ["Without a key", state.unkeyed.toLocaleString("en")], ["Accepted by audit seal", state.sealed.toLocaleString("en")], ["Erased on request", state.erased.toLocaleString("en")], ["Head", state.head], ["Verified at", moment(state.at)]];
  return [
    state.ok ? h("p", { class: "verdict is-good" }, "✓ The audit log is valid: every row follows from the one before it.")
      : h("p", { class: "verdict is-bad", role: "alert" }, `✗ The audit log is broken at row ${state.first_bad_seq}: ${visible(state.reason)}. Stop confirming, and keep the database as it is (docs/runbook.md).`),
    h("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, visible(value))])),
    table("The newest rows", ["Row", "At", "What", "Who", "Details"], [...entries].reverse().map((each) => [each.seq, moment(each.at), each.kind ?? each.event, each.actor, JSON.stringify(each.body ?? {})]), "No row yet."),
  ];
}

// By the name in the address: its title, a word on it, and what draws it anew.
export const REPORTS = {
  activity: { title: "Activity", load: activity, everyMs: 5_000 },
  providers: { title: "Providers", load: providers, everyMs: 10_000 },
  budget: { title: "Budget", load: budget, everyMs: 30_000 },
  tools: { title: "Tools", load: tools, everyMs: 30_000 },
  audit: { title: "Audit log", load: audit, everyMs: 60_000 },
};
