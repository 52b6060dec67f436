// One conversation: its questions and answers as they grow, from the events that the chat API tells.

import { api, follow } from "/page/api.js";
import { Cards } from "/page/cards.js";
import { h } from "/page/dom.js";
import { showEvidence } from "/page/evidence.js";
import { markdown } from "/page/text.js";
import { count, dollars, moment, seconds, straight, tool, visible } from "/page/words.js";

const MOST_MARKED = 100_000; // characters of an answer that are laid out; the rest stands as it is
const MOST_OPEN = 2; // unbacked statements that are shown unasked: an answer fits a phone
const STATES = [["supported", "supported"], ["contradicted", "contradicted"], ["unchecked", "not checked"]];
const BAR_PX = 60; // the bar that stays on top
const CITED = /\[(E\d{1,4})\]/;

const cells = (text) => text.replace(/^\s*\||\|\s*$/g, "").split("|").map((each) => each.trim()).join(", "); // of a table's row
const lines = (node) => [...node.querySelectorAll("p, li, tr, pre, h4")];

// Laid out as answers are: what came of an action stands in a block.
function note(text) {
  const node = h("div", { class: "note md", dir: "auto" });
  node.innerHTML = markdown(straight(text.slice(0, MOST_MARKED)));
  return node;
}

class Answer {
  constructor(id, session, cards) {
    Object.assign(this, { id, session, tools: new Map(), notices: [], proposals: new Set(), claims: [], done: null, text: "", isDrawn: false });
    const at = Number(id) ? moment(Number(id) * 1000) : "";
    this.asked = h("header", { class: "asked-by" }, h("strong"), h("time", { class: "muted" }, at));
    this.question = h("p", { class: "question", dir: "auto" });
    this.calls = h("ul", { class: "calls", "aria-label": "Checks" });
    this.summary = h("summary", {});
    this.behind = h("div", { class: "more" });
    this.whole = h("div", { class: "md whole", dir: "auto", role: "region", "aria-label": "Whole answer", hidden: true });
    this.panel = h("details", { class: "evidence", hidden: true, open: true }, this.summary, this.whole, this.calls, this.behind);
    this.body = h("div", { class: "md answer", dir: "auto" });
    this.more = h("div", { class: "more" });
    this.cardsAt = h("div");
    this.cards = cards(this.cardsAt);
    this.node = h("article", { class: "turn", "data-message": id }, this.asked, this.question, this.body, this.more, this.panel, this.cardsAt);
  }

  take(kind, data) {
    switch (kind) {
      case "question": this.asked.firstChild.textContent = visible(data.asker); this.question.textContent = straight(data.text); break;
      case "text": this.text += data.text; break;
      case "reset": this.text = data.text; break;
      case "tool_start": this.tools.set(data.tool_call_id, { ...data, runs: true }); break;
      case "tool_end": this.tools.set(data.tool_call_id, data); break;
      case "notice": this.notices.push(data.text); break;
      case "proposal": this.proposals.add(data.proposal_id); break;
      case "claims": this.claims = data.claims; break;
      case "done": this.panel.open = false; this.done = data; this.text = data.text || this.text; break;
    }
  }

  get isRunning() { return !this.done; }

  // At its end an answer shows what fits a phone, and the rest moves into the panel: whoever reads there goes along.
  // Returns whether somebody did.
  draw() {
    const folds = !!this.done?.screen && this.whole.hidden && this.body.getBoundingClientRect().top < 0;
    const at = folds ? lines(this.body).findIndex((each) => each.getBoundingClientRect().bottom > 0) : -1;
    const top = lines(this.body)[at]?.getBoundingClientRect().top;
    this.calls.replaceChildren(...[...this.tools.values()].map((call) => this.call(call)));
    this.whole.hidden = !this.done?.screen;
    this.lay(this.body, this.done?.screen || this.text);
    this.lay(this.whole, this.whole.hidden ? "" : this.text);
    const doubts = this.claims.filter((each) => each.note);
    const notices = [...new Set([...this.notices, ...(this.done?.notices ?? [])])];
    this.panel.hidden = !this.tools.size && !this.done;
    this.summary.textContent = `Evidence (${count(this.tools.size, "call")})`;
    this.behind.replaceChildren(...[...notices.map(note), this.done ? h("p", { class: "foot muted" }, this.footer()) : null].filter(Boolean));
    this.more.replaceChildren(...[
      this.done?.more ? h("p", { class: "muted left-out" }, `${count(this.done.more, "more line")} behind Evidence`) : null,
      this.isRunning ? h("p", { class: "working" }, "Kortex is working on this") : null,
      doubts.length ? h("details", { class: "doubts", open: doubts.length <= MOST_OPEN }, h("summary", {}, `${count(doubts.length, "statement")} not backed by the evidence`),
        h("ul", {}, ...doubts.map((each) => h("li", {}, straight(cells(each.text)), h("span", { class: "muted" }, ` (${straight(each.note)})`))))) : null,
    ].filter(Boolean));
    if (at < 0) return false;
    this.panel.open = true;
    document.scrollingElement.scrollTop += (lines(this.whole)[at] ?? this.whole).getBoundingClientRect().top - top;
    return true;
  }

  lay(node, text) {
    const rest = text.slice(MOST_MARKED);
    node.innerHTML = markdown(straight(text.slice(0, MOST_MARKED)));
    if (rest) node.append(h("pre", { class: "rest", tabindex: "0" }, straight(rest)));
    this.link(node);
  }

  call(call) {
    const name = tool(call.tool);
    if (call.runs) return h("li", { class: "chip is-busy" }, `${name} …`);
    const words = `${call.evidence ? `${call.evidence} ` : ""}${name}: ${visible(call.ok ? call.summary : call.message || call.error_code)} · ${seconds(call.latency_ms)}`;
    if (!call.evidence) return h("li", { class: `chip ${call.ok ? "is-good" : "is-bad"}` }, words);
    return h("li", {}, h("button", { class: `chip ${call.ok ? call.truncated ? "is-cut" : "is-good" : "is-bad"}`, type: "button", "data-evidence": call.evidence, onclick: () => this.open(call.evidence) }, words));
  }

  // Where the text cites a result, it opens it.
  link(body) {
    const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT), found = [];
    while (walker.nextNode()) if (CITED.test(walker.currentNode.data) && !walker.currentNode.parentElement.closest("a, code, pre")) found.push(walker.currentNode);
    for (const node of found) {
      node.replaceWith(...node.data.split(/(\[E\d{1,4}\])/).map((piece) => {
        const number = CITED.exec(piece)?.[1];
        return number ? h("button", { class: "cite", type: "button", "aria-label": `Open result ${number}`, onclick: () => this.open(number) }, number) : piece;
      }));
    }
  }

  async open(number) {
    try {
      await showEvidence(this.session, this.id, number);
    } catch (error) {
      this.more.prepend(h("p", { class: "trouble", role: "alert" }, error.message));
    }
  }

  footer() {
    const { done } = this, missing = done.coverage?.missing ?? [];
    const states = STATES.map(([state, words]) => [this.claims.filter((each) => each.state === state).length, words]);
    return [
      done.verdict ? `verdict: ${visible(done.verdict)}` : "", visible([done.provider, done.model].filter(Boolean).join(" ")),
      count(done.rounds, "round"), done.provider === "triage" ? "no model was used" : dollars(done.cost_usd_micros),
      this.claims.length ? `statements: ${states.filter(([n]) => n).map(([n, words]) => `${n} ${words}`).join(", ")}` : "",
      missing.length ? `missing: ${visible(missing.join(", "))}` : "",
    ].filter(Boolean).join(" · ");
  }
}

// Shows and follows it until `close()`.
export class Conversation {
  constructor(session, me, { say, onCard }) {
    Object.assign(this, { session, me, say, onCard, answers: new Map(), notices: [], waiting: 0, left: -1, key: "", keyOf: "", isLive: true });
    this.cardsIn = (at) => new Cards(at, me, { say, onChange: onCard });
    this.turns = h("div", { class: "turns" });
    this.state = h("p", { class: "banner", role: "status", hidden: true });
    this.trouble = h("p", { class: "trouble", role: "alert", hidden: true });
    this.stop = h("button", { class: "btn is-danger", type: "button", hidden: true, onclick: () => this.attempt(() => api.stop(session.id)) }, "Stop");
    this.box = h("textarea", { id: "ask", rows: 1, maxlength: 40000, enterkeyhint: "send", placeholder: "Ask a question, or say what to check next" });
    const form = h("form", { class: "ask", onsubmit: (event) => { event.preventDefault(); this.ask(this.box.value.trim()); } },
      h("label", { class: "unseen", for: "ask" }, "Your question"), this.box, h("div", { class: "row" }, h("button", { class: "btn is-primary" }, "Ask"), this.stop));
    this.box.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); form.requestSubmit(); } });
    const mine = session.owner === me().user;
    this.node = h("section", { class: "conversation" },
      h("header", { class: "head" }, h("h1", {}, h("span", { class: "muted" }, "#"), visible(session.channel)),
        h("p", { class: "muted" }, `${mine ? "yours" : `of ${visible(session.owner_name)}`}, since ${moment(session.created_at)}`)),
      this.turns, this.state, this.trouble, mine ? form : h("div", { class: "row" }, h("p", { class: "muted" }, "Only its owner can ask in this conversation."), this.stop));
    this.close = follow(session.id, { onStart: () => this.begin(), onEvent: (kind, data) => this.take(kind, data), onLive: (isLive) => this.live(isLive) });
  }

  begin() { this.answers.clear(); this.notices = []; this.turns.replaceChildren(); }

  live(isLive) {
    this.isLive = isLive;
    this.state.textContent = isLive ? "" : "Connection lost. Reconnecting…";
    this.state.hidden = isLive;
  }

  take(kind, data) {
    if (!data.message_id) {
      if (kind === "notice") { this.turns.append(note(data.text)); this.say(data.text.replaceAll("```", "")); }
      return;
    }
    let answer = this.answers.get(data.message_id);
    if (!answer) {
      answer = new Answer(data.message_id, this.session.id, this.cardsIn);
      this.answers.set(data.message_id, answer);
      this.turns.append(answer.node);
    }
    answer.take(kind, data);
    if (kind === "proposal") this.proposed(answer, data.proposal_id);
    if (kind === "done") this.finished = data.message_id;
    this.changed = (this.changed ?? new Set()).add(answer);
    this.waiting ||= requestAnimationFrame(() => this.draw());
  }

  // Whoever reads at the end follows, but no further than where the last turn begins: its headline stays in sight.
  atEnd(act) {
    const scroller = document.scrollingElement;
    const follows = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 120 || Math.abs(scroller.scrollTop - this.left) < 2;
    if (act() || !follows) return;
    const last = this.turns.lastElementChild;
    const top = last ? last.getBoundingClientRect().top + scroller.scrollTop - BAR_PX : Infinity;
    scroller.scrollTop = Math.max(0, Math.min(scroller.scrollHeight, top));
    this.left = scroller.scrollTop;
  }

  draw() {
    this.waiting = 0;
    this.atEnd(() => [...this.changed].map((answer) => answer.draw()).some(Boolean));
    this.changed.clear();
    const runs = [...this.answers.values()].some((each) => each.isRunning);
    this.stop.hidden = !runs;
    if (this.finished && !runs) { this.say("The answer is finished."); this.finished = ""; }
  }

  async proposed(answer, id) {
    try {
      const row = await api.proposal(id);
      this.atEnd(() => { answer.cards.put(row); });
      this.onCard(row);
    } catch { /* not this person's to see */ }
  }

  // A proposal that changed elsewhere: on another card, or by the clock.
  put(row) {
    for (const answer of this.answers.values()) if (answer.proposals.has(row.id)) answer.cards.put(row);
  }

  async attempt(act) {
    this.trouble.hidden = true;
    try {
      return await act();
    } catch (error) {
      this.trouble.textContent = error.message;
      this.trouble.hidden = false;
      return null;
    }
  }

  // The same text sent again after a failure is the same question, not a second one.
  async ask(text) {
    if (!text) return;
    if (this.keyOf !== text) { this.keyOf = text; this.key = crypto.randomUUID(); }
    this.box.disabled = true;
    const asked = await this.attempt(() => api.ask(this.session.id, text, this.key));
    this.box.disabled = false;
    if (asked) { this.box.value = ""; this.keyOf = ""; }
    this.box.focus();
  }
}
