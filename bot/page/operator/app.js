// The operator's page: who is signed in, which view is shown, and what is asked for again and again.

import { api, onSignedOut, parts } from "/page/api.js";
import { Cards, FINAL, tick } from "/page/cards.js";
import { Conversation } from "/page/conversation.js";
import { h } from "/page/dom.js";
import { allowHosts } from "/page/links.js";
import { REPORTS } from "/page/reports.js";
import { moment, straight, visible } from "/page/words.js";

const $ = (id) => document.getElementById(id);
const CARDS_MS = 4_000, LIST_MS = 10_000, PARTS_MS = 30_000, ME_MS = 60_000, TICK_MS = 1_000;
const MOST_ENDED = 5; // cards that stay in sight after their end
const CHANNEL = "incident-console";
const state = { me: null, view: "", conversation: null, stopReport: () => {}, draft: "", answered: Date.now() };
const me = () => state.me;
const say = (text) => { $("spoken").textContent = straight(text); };

const openCards = new Cards($("open-cards"), me, { say, onChange: (row) => { state.conversation?.put(row); tellWaiting(); } });

// Cards that ended stay in sight for a while, and wait for nobody.
function tellWaiting() {
  const rows = [...openCards.shown.values()].map((each) => each.row);
  $("no-cards").textContent = rows.length ? "No open cards. Recently closed:" : "No open cards.";
  $("no-cards").hidden = rows.some((row) => !FINAL.has(row.state));
}

// Signing in and out

function showSignIn(message = "") {
  Object.assign(state, { me: null, draft: "", opened: null, key: null }); // the next person sees nothing of this one
  leave();
  for (const box of document.querySelectorAll("dialog")) box.remove();
  $("main").replaceChildren();
  $("app").hidden = true;
  $("start").hidden = false;
  document.body.dataset.view = "start";
  document.title = "Sign in · Kortex";
  $("conversations").replaceChildren();
  delete $("conversations").dataset.key;
  openCards.show([]);
  $("sign-in-trouble").textContent = message;
  $("sign-in-trouble").hidden = !message;
  $("token").focus();
  api.ways().then((ways) => { $("at-provider").hidden = !ways.at_provider; }).catch(() => {});
}

onSignedOut(() => { if (state.me) showSignIn("You are signed out: your token expired or was revoked."); });

$("sign-in").addEventListener("submit", async (event) => {
  event.preventDefault();
  const token = $("token").value.trim();
  $("token").value = "";
  try {
    await api.signIn(token);
  } catch (error) {
    showSignIn(error.status === 401 ? "This token is unknown, expired or revoked." : error.message);
    return;
  }
  try {
    await start();
  } catch (error) {
    showSignIn(error.status === 401 ? "Your browser did not keep the sign-in: open this page over https." : error.message);
  }
});

$("sign-out").addEventListener("click", async () => {
  try {
    await api.signOut();
    showSignIn();
  } catch (error) { lost(error); }
});

// Views: #/, #/cards, #/s/<id>, and the reports by their names

function tabs() {
  const all = [["", "Ask"], ["cards", "Cards"], ...(state.me.is_admin ? Object.entries(REPORTS).map(([name, { title }]) => [name, title]) : [])];
  $("tabs").replaceChildren(...all.map(([name, title]) => h("a", { href: `#/${name}`, "data-tab": name, class: name === "cards" ? "only-narrow" : "" }, title)));
}

function leave() {
  state.conversation?.close();
  state.conversation = null;
  state.stopReport();
}

async function route() {
  if (!state.me) return;
  leave();
  const [name, id] = location.hash.replace(/^#\/?/, "").split("/");
  const report = state.me.is_admin && Object.hasOwn(REPORTS, name) ? REPORTS[name] : null;
  state.view = name === "s" && id ? "conversation" : report ? "report" : name === "cards" ? "cards" : "home";
  document.body.dataset.view = state.view;
  for (const tab of $("tabs").children) {
    const isHere = tab.dataset.tab === (state.view === "report" || state.view === "cards" ? name : "");
    if (isHere) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
  }
  if (report) showReport(report);
  else if (state.view === "conversation") await showConversation(id);
  else showHome();
  markConversations();
  scrollTo(0, state.view === "conversation" ? document.body.scrollHeight : 0);
}

function shown(title, ...nodes) {
  document.title = `${title} · Kortex`;
  $("main").replaceChildren(...nodes);
}

// What failed half-way goes on when it is sent again: the conversation that was opened, the question that was asked.
function firstKey(session, text) {
  const of = `${session} ${text}`;
  if (state.key?.of !== of) state.key = { of, key: crypto.randomUUID() };
  return state.key.key;
}

function showHome() {
  const trouble = h("p", { class: "trouble", role: "alert", hidden: true });
  const channel = h("input", { id: "channel", value: CHANNEL, required: true, maxlength: 80, pattern: "\\w[\\w.\\-]*", spellcheck: "false", autocapitalize: "off" });
  channel.value = localStorage.getItem("channel") ?? CHANNEL;
  const text = h("textarea", { id: "question", rows: 3, required: true, maxlength: 40000, placeholder: "Why is checkout slow?" });
  text.value = state.draft;
  text.addEventListener("input", () => { state.draft = text.value; });
  const button = h("button", { class: "btn is-primary" }, "Ask");
  const form = h("form", { class: "new", onsubmit: async (event) => {
    event.preventDefault();
    button.disabled = true;
    trouble.hidden = true;
    try {
      const wanted = channel.value.trim();
      if (state.opened?.channel !== wanted) state.opened = await api.open(wanted);
      const session = state.opened;
      localStorage.setItem("channel", wanted);
      await api.ask(session.id, text.value.trim(), firstKey(session.id, text.value.trim()));
      state.draft = "";
      state.opened = null;
      location.hash = `#/s/${session.id}`;
      refreshList();
    } catch (error) {
      trouble.textContent = error.message;
      trouble.hidden = false;
      button.disabled = false;
    }
  } }, h("label", { for: "question" }, "Your question"), text, h("label", { for: "channel" }, "Channel (sets permissions)"), channel, trouble, h("div", { class: "row" }, button));
  text.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); } });
  shown("Ask", h("section", { class: "home" }, h("h1", {}, "What is wrong?"), h("p", { class: "muted" }, "Kortex reads and proposes. Only people confirm actions."), form));
}

function onCard(row) {
  if (row.state !== "pending" && !openCards.shown.has(row.id)) return; // of long ago
  openCards.put(row);
  tellWaiting();
}

async function showConversation(id) {
  const hash = location.hash;
  shown("Conversation", h("h1", {}, "Conversation"), h("p", { class: "muted" }, "Reading…"));
  try {
    const session = await api.conversation(id);
    if (location.hash !== hash || !state.me) return;
    state.conversation = new Conversation(session, me, { say, onCard });
    shown(`#${session.channel}`, state.conversation.node);
  } catch (error) {
    if (location.hash === hash) shown("Conversation", h("h1", {}, "Conversation"), h("p", { class: "trouble", role: "alert" }, error.message));
  }
}

function showReport({ title, load, everyMs }) {
  const body = h("div", { class: "report" }, h("p", { class: "muted" }, "Reading…")), at = h("p", { class: "muted", role: "status" });
  let stopped = false, seen = "";
  const draw = async () => {
    try {
      const nodes = await load();
      const made = nodes.map((node) => node.outerHTML).join("");
      if (!stopped && made !== seen) { seen = made; body.replaceChildren(...nodes); }
      at.textContent = "";
    } catch (error) { at.textContent = `${error.message} The figures below are older.`; }
  };
  const stop = every(everyMs, draw);
  state.stopReport = () => { stopped = true; stop(); state.stopReport = () => {}; };
  shown(title, h("section", {}, h("header", { class: "head" }, h("h1", {}, title)), at, body));
}

// What is asked for again and again, while somebody looks

function every(ms, act) {
  let timer = 0, stopped = false, isAsking = false;
  const turn = async () => {
    if (isAsking) return;
    clearTimeout(timer);
    isAsking = true;
    if (!document.hidden) await act();
    isAsking = false;
    if (!stopped) timer = setTimeout(turn, ms);
  };
  document.addEventListener("visibilitychange", turn); // who comes back sees how it is now
  turn();
  return () => { stopped = true; clearTimeout(timer); document.removeEventListener("visibilitychange", turn); };
}

const reached = () => { state.answered = Date.now(); $("lost").hidden = true; };

function lost(error) {
  if (!state.me) return;
  $("lost").textContent = `${error.message} This page is from ${moment(state.answered)}.`;
  $("lost").hidden = false;
}

const quietly = (act) => async () => {
  if (!state.me) return;
  try {
    await act();
    reached();
  } catch (error) { lost(error); }
};

// Whoever watched a card sees how it ended; one that they may not see any more is gone.
async function endOf(row) {
  try {
    const now = await api.proposal(row.id);
    if (FINAL.has(now.state)) say(`${visible(now.effect)}: ${now.status}`);
    return now;
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

const refreshCards = quietly(async () => {
  const { proposals } = await api.proposals();
  const before = new Set(openCards.shown.keys()), known = new Set(proposals.map((row) => row.id));
  const gone = [...openCards.shown.values()].map((each) => each.row).filter((row) => !known.has(row.id)).slice(0, MOST_ENDED);
  const ended = await Promise.all(gone.map((row) => FINAL.has(row.state) ? row : endOf(row)));
  openCards.show([...proposals, ...ended.filter(Boolean)]);
  tellWaiting();
  const tab = $("tabs").querySelector("[data-tab=cards]");
  const title = proposals.length ? `Cards (${proposals.length})` : "Cards";
  if (tab && tab.textContent !== title) tab.textContent = title;
  if (proposals.some((row) => !before.has(row.id))) say("A new card needs a decision.");
  for (const row of [...proposals, ...ended]) if (row) state.conversation?.put(row);
});

const refreshList = quietly(async () => {
  const { sessions } = await api.conversations();
  const key = JSON.stringify(sessions);
  $("no-conversations").hidden = sessions.length > 0;
  if ($("conversations").dataset.key === key) return;
  $("conversations").dataset.key = key;
  $("conversations").replaceChildren(...sessions.map((each) => h("li", {}, h("a", { href: `#/s/${each.id}`, "data-id": each.id },
    h("span", { class: "asked-for", dir: "auto" }, straight(each.question) || `#${visible(each.channel)}`),
    h("span", { class: "muted" }, `${each.question ? `#${visible(each.channel)}, ` : ""}${each.owner === state.me.user ? "you" : visible(each.owner_name)}, ${moment(each.created_at)}`)))));
  markConversations();
});

function markConversations() {
  for (const link of $("conversations").querySelectorAll("a")) {
    if (link.hash === location.hash) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
}

async function refreshParts() {
  const found = state.me && await parts();
  const bad = Object.entries(found || {}).filter(([, part]) => !part.ok || part.detail).map(([name, part]) => `${name}: ${part.detail}`);
  $("parts").textContent = bad.length ? `Not working: ${visible(bad.join("; "))}` : "";
  $("parts").hidden = !bad.length;
}

const refreshMe = quietly(async () => {
  const was = state.me?.is_admin;
  state.me = await api.me();
  $("who").textContent = `${visible(state.me.name)} · ${state.me.is_admin ? "admin" : state.me.roles.join(", ") || "no role"}`;
  if (was !== state.me.is_admin) { tabs(); }
});

async function start() {
  const found = await api.me();
  allowHosts((await api.ways()).link_hosts);
  state.me = found;
  $("start").hidden = true;
  $("app").hidden = false;
  $("who").textContent = `${visible(found.name)} · ${found.is_admin ? "admin" : found.roles.join(", ") || "no role"}`;
  tabs();
  await route();
  refreshCards();
  refreshList();
  refreshParts();
}

addEventListener("hashchange", () => { route(); $("main").focus({ preventScroll: true }); });
every(CARDS_MS, refreshCards);
every(LIST_MS, refreshList);
every(PARTS_MS, refreshParts);
every(ME_MS, refreshMe);
setInterval(tick, TICK_MS);

try {
  await start();
} catch (error) {
  showSignIn(location.hash === "#sign-in-failed" ? "Your identity provider did not sign you in. An operator finds the reason in Kortex' log."
    : error.status === 401 ? "" : error.message);
}
