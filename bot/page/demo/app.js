// The page: who one is, which channel and thread are open, and what happens when something is pressed.

import { client, follow } from "/page/client.js";
import { renderBlock } from "/page/blocks.js";
import { h } from "/page/dom.js";
import { closeAll, closeView, showView } from "/page/dialogs.js";
import { canAsk, hint } from "/page/guide.js";
import { MessageList } from "/page/messages.js";
import { names } from "/page/text.js";

const $ = (id) => document.getElementById(id);
const state = { user: "", bot: "", channel: "", thread: "", people: new Map(), channels: new Map(), messages: new Map(), unread: new Set(), sessions: new Map(), home: false, wasRefused: false };
let stopFollowing = () => {};

const query = new URLSearchParams(location.search);
const phone = matchMedia("(max-width: 900px)");
const here = () => state.channels.get(state.channel);
const me = () => state.people.get(state.user);

const all = () => [...state.messages.values()].sort((a, b) => parseFloat(a.ts) - parseFloat(b.ts));
const inThread = () => all().filter((each) => each.ts === state.thread || each.thread_ts === state.thread);
const repliesTo = (message) => all().filter((each) => each.thread_ts === message.ts && each.ts !== message.ts && !each.is_ephemeral);

const context = {
  person: (id) => state.people.get(id),
  replies: repliesTo,
  openThread: (ts) => openThread(ts, true),
  canRemove: (message) => message.user === state.user || me()?.is_admin,
  remove: (message) => attempt($("trouble"), () => client.remove({ user: state.user, channel: state.channel, ts: message.ts })),
  press: (message) => async (element, chosen, node) => {
    if (element.action_id === "proposal:confirm" && me()?.is_guest) state.wasRefused = true;
    node.setAttribute("aria-busy", "true");
    await attempt(message.thread_ts ? $("thread-trouble") : $("trouble"), () => client.click({
      user: state.user, channel: state.channel, message_ts: message.ts,
      block_id: element.block_id, action_id: element.action_id, chosen,
    }));
    node.removeAttribute("aria-busy");
  },
};
const channelList = new MessageList($("messages"), $("scroll"), context, false);
const threadList = new MessageList($("thread-messages"), $("thread-scroll"), context, true);

async function attempt(trouble, act) {
  trouble.hidden = true;
  try {
    return await act();
  } catch (error) {
    trouble.textContent = error.message;
    trouble.hidden = false;
    return null;
  }
}

function setView(view) { document.body.dataset.view = view; }

let drawing = 0;
function draw() {
  drawing ||= requestAnimationFrame(() => { drawing = 0; drawNow(); });
}

function drawNow() {
  const isRoot = (message) => !message.thread_ts || message.thread_ts === message.ts;
  channelList.show(all().filter(isRoot));
  $("thread").hidden = !state.thread;
  if (state.thread) threadList.show(inThread());
  drawSession();
  drawHint();
  drawSide();
}

function drawHint() {
  const said = state.home ? "" : hint({
    messages: state.thread ? inThread() : all(), channel: here(), person: me(), people: [...state.people.values()],
    isAsked: mentions().length > 0, wasRefused: state.wasRefused,
  });
  for (const [id, isHere] of [["hint", !state.thread], ["thread-hint", !!state.thread]]) {
    if ($(id).textContent !== said) $(id).textContent = said;
    $(id).hidden = !isHere || !said;
  }
}

function mentions() {
  return all().filter((each) => !each.thread_ts || each.thread_ts === each.ts).filter((each) => (each.text ?? "").includes(`<@${state.bot}>`));
}

// Slack's own Stop: there while the thread is being worked on.
function drawSession() {
  const session = state.sessions.get(`${state.channel} ${state.thread}`);
  const runs = !!state.thread && session?.status === "processing";
  $("thread-status").hidden = !runs;
  $("thread-title").textContent = session?.title || "Thread";
}

function place(channel, label, title) {
  const current = !state.home && channel.id === state.channel;
  return h("li", {}, h("button", {
    class: `place${current ? " is-current" : ""}${state.unread.has(channel.id) ? " is-unread" : ""}${channel.is_archived ? " is-archived" : ""}`,
    type: "button", "aria-current": current ? "page" : null, title, onclick: () => openChannel(channel.id),
  }, h("span", { class: "place-mark", "aria-hidden": "true" }, channel.kind === "im" ? "@" : "#"), label,
  state.unread.has(channel.id) ? h("span", { class: "dot", "aria-label": "new messages" }) : null));
}

function drawSide() {
  const channels = [...state.channels.values()];
  $("channels").replaceChildren(...channels.filter((each) => each.kind !== "im").map((each) => place(each, each.name, each.topic)));
  const home = h("li", {}, h("button", { class: `place${state.home ? " is-current" : ""}`, type: "button", onclick: openHome }, h("img", { src: "/page/mark.svg", width: 16, height: 16, alt: "" }), "Kortex home"));
  $("directs").replaceChildren(home, ...channels.filter((each) => each.kind === "im").map((each) => place(each, "Message Kortex", "")));
}

// What one can do here; nothing that would be refused.
function introOf(channel) {
  if (channel.kind === "im") return "Just you and Kortex.";
  if (channel.is_archived) return `${channel.topic}. This channel is archived: you can read it, but not ask in it.`;
  if (!channel.has_bot) return `${channel.topic}. Invite Kortex with the menu ⋯ above; until then it reads nothing here.`;
  return `${channel.topic}. Mention @kortex to start an investigation.`;
}

function drawBar() {
  const channel = here();
  const mark = channel.kind === "im" ? "" : "#";
  const name = channel.kind === "im" ? "Kortex" : channel.name;
  $("channel-name").replaceChildren(h("span", { class: "muted" }, mark), name);
  const status = channel.is_archived ? " · archived" : channel.has_bot ? "" : " · Kortex is not in this channel";
  $("channel-topic").textContent = (channel.topic || "Ask anything about your systems") + status;
  $("thread-place").textContent = mark + name;
  $("channel-menu").hidden = channel.kind === "im";
  $("channel-id").textContent = `Channel ID: ${channel.id}`;
  $("archive").textContent = channel.is_archived ? "Unarchive channel" : "Archive channel";
  $("remove-bot").textContent = channel.has_bot ? "Remove Kortex from channel" : "Invite Kortex to channel";
  $("composer-text").placeholder = channel.is_archived ? "This channel is archived" : `Message ${mark}${name}`;
  $("composer").classList.toggle("is-off", channel.is_archived);
  $("composer-text").disabled = channel.is_archived;
  $("intro").replaceChildren(
    h("span", { class: "intro-mark", "aria-hidden": "true" }, mark || "K"),
    h("div", {}, h("h2", {}, mark + name), h("p", { class: "muted" }, introOf(channel))));
  if (!canAsk(channel)) $("suggestion").hidden = true;
  document.title = `${mark}${name} · Kortex`;
}

async function openChannel(id) {
  state.channel = id;
  state.home = false;
  state.unread.delete(id);
  state.thread = "";
  $("trouble").hidden = true;
  $("home").hidden = true;
  $("scroll").hidden = $("composer").hidden = false;
  setView("channel");
  await loadChannel();
  const asked = mentions();
  if (asked.length) openThread(asked[asked.length - 1].ts, false);
  suggest(asked.length === 0);
  if (!asked.length && !phone.matches) $("composer-text").focus();
  channelList.toEnd();
}

async function loadChannel() {
  const { channel, messages } = await client.channel(state.channel, state.user);
  state.channels.set(channel.id, channel);
  state.messages = new Map(messages.map((message) => [message.ts, message]));
  drawBar();
  drawNow();
}

function suggest(prefill) {
  const text = canAsk(here()) ? here().suggestion : "";
  const box = $("composer-text");
  $("suggestion").textContent = `Ask: ${text}`;
  $("suggestion").hidden = !text || prefill;
  box.value = prefill ? text ?? "" : "";
  grow(box);
}

function openThread(ts, move) {
  if (ts !== state.thread) $("thread-trouble").hidden = true;
  state.thread = ts;
  if (move) setView("thread");
  drawNow();
  threadList.toEnd();
  if (move && !phone.matches) $("thread-text").focus();
}

function closeThread() {
  state.thread = "";
  setView("channel");
  drawNow();
}

async function openHome() {
  state.home = true;
  state.thread = "";
  setView("channel");
  $("scroll").hidden = $("composer").hidden = true;
  $("home").hidden = false;
  $("channel-name").textContent = "Kortex";
  $("channel-topic").textContent = "What it can do, who can confirm, open proposals";
  $("channel-menu").hidden = true;
  drawNow();
  const { view } = await client.openHome(state.user);
  drawHome(view);
}

function drawHome(view) {
  if (!state.home) return;
  const press = (element, chosen) => client.press(view.id, { user: state.user, action_id: element.action_id, chosen }).catch(() => {});
  $("home").replaceChildren(...(view ? view.blocks.map((block) => renderBlock(block, press)) : [h("p", { class: "muted" }, "Waiting for Kortex…")]));
}

function onChange(change) {
  const { kind, channel, body } = change;
  if (kind === "view") return showView(body, state.user);
  if (kind === "view_closed") return closeView(body.id);
  if (kind === "home") return drawHome(body);
  if (kind === "channel") return refresh();
  if (kind === "session") { state.sessions.set(`${channel} ${body.thread_ts}`, body); drawSession(); return undefined; }
  if (channel !== state.channel || state.home) {
    if (kind === "message") { state.unread.add(channel); drawSide(); }
    if (channel !== state.channel) return undefined;
  }
  if (kind === "delete") state.messages.delete(body.ts);
  else state.messages.set(body.ts, body);
  const isMention = kind === "message" && !body.thread_ts && (body.text ?? "").includes(`<@${state.bot}>`);
  if (isMention) openThread(body.ts, body.user === state.user);
  else draw();
  return undefined;
}

async function refresh() {
  const { channels } = await client.workspace(state.user);
  state.channels = new Map(channels.map((each) => [each.id, each]));
  names.channels = new Map(channels.map((each) => [each.id, each.name]));
  if (state.channels.has(state.channel) && !state.home) await loadChannel();
  else drawSide();
}

async function become(user) {
  stopFollowing();
  closeAll();
  state.user = names.me = user;
  const { people, groups, channels, bot, team, sessions } = await client.workspace(user);
  state.sessions = new Map(sessions.map((each) => [`${each.channel} ${each.thread_ts}`, each]));
  state.bot = bot;
  state.people = new Map(people.map((each) => [each.id, each]));
  state.channels = new Map(channels.map((each) => [each.id, each]));
  names.users = new Map(people.map((each) => [each.id, each.name]));
  names.groups = new Map(Object.entries(groups));
  names.channels = new Map(channels.map((each) => [each.id, each.name]));
  $("team").textContent = team;
  drawPeople(people);
  stopFollowing = follow(user, onChange, onState);
  const open = { ...state, view: document.body.dataset.view };
  await openChannel(state.channels.has(open.channel) ? open.channel : channels[0].id);
  if (open.thread && state.channel === open.channel && state.messages.has(open.thread)) {
    openThread(open.thread, false);
    setView(open.view);
  }
}

let wasLost = false;
function onState(isOn) {
  $("offline").hidden = isOn;
  if (isOn && wasLost) refresh();
  wasLost = !isOn;
}

function drawPeople(people) {
  const kind = (each) => each.is_stranger ? "other company" : each.title;
  const shown = people.filter((each) => !each.is_bot && !each.deleted);
  $("person").replaceChildren(...shown.map((each) =>
    h("option", { value: each.id, selected: each.id === state.user }, each.real_name)));
  $("person-note").textContent = `${kind(me())}. Switch to see what other people can do.`;
}

async function drawProviders(load) {
  const { providers } = await load();
  $("provider-pick").hidden = providers.length === 0;
  const chosen = providers.find((each) => each.chosen);
  $("provider").replaceChildren(...providers.map((each) =>
    h("option", { value: each.id, disabled: !each.available, selected: each.chosen }, each.available ? each.label : `${each.label} (unavailable)`)));
  const missing = providers.filter((each) => !each.available).map((each) => `${each.label}: ${each.reason}`);
  $("provider-note").textContent = chosen?.reason ?? "";
  $("provider").title = missing.join("\n");
}

function grow(box) {
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, 180)}px`;
}

function wireComposer(form, box, trouble, send) {
  box.addEventListener("input", () => grow(box));
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); }
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const text = box.value.trim();
    if (!text) return;
    box.value = "";
    grow(box);
    if (await attempt(trouble, () => send(text)) === null) { box.value = text; grow(box); }
  });
}

const attached = new Map(); // text of files by name, of the next message in the channel

function showAttached() {
  $("composer-files").hidden = !attached.size;
  $("composer-files").textContent = [...attached.keys()].map((name) => `📎 ${name}`).join("  ");
}

$("composer-file").addEventListener("change", async (event) => {
  for (const file of event.target.files) attached.set(file.name, await file.text());
  event.target.value = "";
  showAttached();
  $("composer-text").focus();
});

const command = (text) => client.command({ user: state.user, channel: state.channel, command: text.split(" ")[0], text: text.split(" ").slice(1).join(" ") });

async function sendToChannel(text) {
  const { user, channel } = state;
  if (attached.size) {
    const files = [...attached].map(([name, content]) => ({ name, text: content }));
    const said = await client.say({ user, channel, text, files });
    attached.clear();
    showAttached();
    return said;
  }
  const sent = text.startsWith("/") ? await command(text) : await client.say({ user, channel, text });
  suggest(false);
  return sent;
}

wireComposer($("composer"), $("composer-text"), $("trouble"), sendToChannel);
wireComposer($("thread-composer"), $("thread-text"), $("thread-trouble"), (text) =>
  text.startsWith("/") ? command(text) : client.say({ user: state.user, channel: state.channel, text, thread_ts: state.thread }));
$("suggestion").addEventListener("click", () => { suggest(true); $("composer-text").focus(); });
$("thread-stop").addEventListener("click", () => attempt($("thread-trouble"), () => client.stop({ user: state.user, channel: state.channel, thread_ts: state.thread })));
$("thread-close").addEventListener("click", closeThread);
$("thread-back").addEventListener("click", () => setView("channel"));
$("side-open").addEventListener("click", () => setView("side"));
$("side-close").addEventListener("click", () => setView("channel"));
$("person").addEventListener("change", (event) => become(event.target.value));
$("provider").addEventListener("change", (event) => drawProviders(() => client.choose(event.target.value)).catch((error) => { $("provider-note").textContent = error.message; }));
$("archive").addEventListener("click", () => { $("channel-menu").open = false; client.archive(state.channel, !here().is_archived); });
$("remove-bot").addEventListener("click", () => { $("channel-menu").open = false; here().has_bot ? client.removeBot(state.channel) : client.inviteBot(state.channel); });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.thread && !document.querySelector("dialog[open]")) closeThread();
});

const { people } = await client.workspace("");
state.channel = query.get("channel") ?? "";
await become(query.get("person") ?? people.find((each) => !each.is_bot).id);
drawProviders(client.providers).catch(() => {});
