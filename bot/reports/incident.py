"""A session's dossier as Markdown: timeline, evidence, decisions, cost, and what proves it. Pure."""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from bot.audit.checkpoint import Checkpoint
from bot.audit.verify import Summary
from bot.domain.audit import AuditEntry, AuditKind
from bot.domain.change import named, outcome_words
from bot.domain.dossier import Dossier, DossierTurn
from bot.domain.proposal import Proposal, status
from bot.domain.thread import Speaker, ThreadRead
from bot.reports.one_page import one_page
from bot.slack.text.links import NO_LINKS, safe_links
from bot.slack.text.markdown import lines

USD_MICROS = 1_000_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
_MAX_CELL = 300
# The rows of the timeline, and the fields of their bodies that it uses.
_STORY: Mapping[str, Sequence[str]] = {
    AuditKind.TURN_STARTED: (),
    AuditKind.TOOL_CALL: ("tool", "error"),
    AuditKind.TOOL_DEPTH_EXCEEDED: ("rounds",),
    AuditKind.PROPOSAL_CREATED: ("action", "product"),
    AuditKind.PROPOSAL_VOTED: ("action", "product"),
    AuditKind.PROPOSAL_CONFIRMED: ("action", "product"),
    AuditKind.PROPOSAL_REJECTED: ("action", "product"),
    AuditKind.PROPOSAL_EXPIRED: ("action", "product"),
    AuditKind.PROPOSAL_SUPERSEDED: ("action", "product"),
    AuditKind.CLICK_REFUSED: ("wanted", "why"),
    AuditKind.GUARD_VERDICT: ("guard", "verdict", "reason"),
    AuditKind.DISPATCH_INTENT: ("action", "product"),
    AuditKind.DISPATCH_OUTCOME: ("state",),
    AuditKind.DISPATCH_EFFECT: ("verdict", "metric"),
    AuditKind.BUDGET_REFUSED: ("limit",),
    AuditKind.FEEDBACK_GIVEN: ("vote",),
    AuditKind.TURN_ENDED: ("state",),
}


@dataclass(frozen=True, slots=True)
class ReportFacts:
    """Facts beside the dossier. `names` by user id; `links` by message; both may be incomplete.

    `thread`: people's messages there. `beside`: other threads that may have been meant, in words.
    """

    written_at: datetime
    verdict: Summary
    checkpoint: Checkpoint | None
    names: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    thread: ThreadRead | None = None  # None: it cannot be read
    beside: str = ""


def people_in(dossier: Dossier) -> set[str]:
    found = {turn.asker for turn in dossier.turns}
    found |= {str(entry.actor) for entry in dossier.audit_log}
    found |= {p.decided_by for p in dossier.proposals if p.decided_by}
    return {each for each in found if each}


def report(dossier: Dossier, facts: ReportFacts) -> str:
    sections: Sequence[Callable[[Dossier, ReportFacts], Iterator[str]]] = (
        _head,
        _page,
        _timeline,
        _people_said,
        _decisions,
        _questions,
        _cost,
        _proof,
    )
    return "\n".join(line for section in sections for line in section(dossier, facts)) + "\n"


def _head(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    session = dossier.session
    spent = sum(each.usd_micros for each in dossier.costs)
    thread = facts.links.get(session.place.thread_ts)
    yield f"# Incident report: {_cell(session.name)}"
    yield ""
    yield f"- Session: `{session.id}`" + (f" ([thread]({thread}))" if thread else "")
    if facts.beside:
        yield f"- Other threads are not in this report: {_cell(facts.beside)}"
    yield f"- From {_at(session.created_at)} to {_at(session.active_at)}"
    counts = (
        _count(len(dossier.turns), "question"),
        _count(sum(len(turn.evidence) for turn in dossier.turns), "result"),
        _count(len(dossier.proposals), "proposal"),
    )
    unpriced = sum(each.rounds_unpriced for each in dossier.costs)
    more = f" and {_count(unpriced, 'round')} of unknown price" if unpriced else ""
    yield f"- {', '.join(counts)}, {_usd(spent)}{more}"
    yield f"- Written {_at(facts.written_at)} from the records of Kortex; times are UTC"
    yield ""


def _page(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    del facts
    yield from (_foreign_line(line) for line in one_page(dossier))
    yield "---"
    yield ""


def _foreign_line(line: str) -> str:
    mark, _, words = line.partition(" ")
    return f"{mark} {_foreign_cell(words)}" if mark in ("-", "##") else _foreign_cell(line)


def _timeline(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    yield "## Timeline"
    yield ""
    yield "| time | who | what | row |"
    yield "|---|---|---|---|"
    questions = {turn.id: turn.question for turn in dossier.turns}
    for entry in dossier.audit_log:
        if entry.kind in _STORY or entry.erased_by:
            yield (
                f"| {_at(entry.at)} | {_who(entry.actor, facts)} "
                f"| {_happened(entry, questions)} | {entry.seq} |"
            )
    yield ""


def _people_said(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    del dossier
    yield "## What people said"
    yield ""
    if facts.thread is None:
        yield "The thread's messages were not read: there was no workspace to ask."
        yield ""
        return
    if facts.thread.missing:
        yield f"**Not all:** {_cell(facts.thread.missing)}."
        yield ""
    said = [m for m in facts.thread.messages if m.speaker in (Speaker.PERSON, Speaker.APP)]
    if not said and not facts.thread.missing:
        yield "The thread has no messages."
        yield ""
    for message in said:
        app = " (app)" if message.speaker is Speaker.APP else ""
        when = f"[{_at(message.at)}]({message.link})" if message.link else _at(message.at)
        yield f"{when} **{_foreign_cell(message.name).replace('*', '∗')}**{app}:"
        yield ""
        yield from _quoted(message.text or "(no text)")
        yield ""


def _happened(entry: AuditEntry, questions: Mapping[str, str]) -> str:
    if entry.erased_by:
        return f"{_cell(entry.kind)} (content erased, row {entry.erased_by})"
    told = [str(entry.body[name]) for name in _STORY[entry.kind] if entry.body.get(name)]
    if entry.kind == AuditKind.TURN_STARTED:
        told = [questions.get(str(entry.body.get("turn")), "")]
    return _cell(": ".join(filter(None, (entry.kind, ", ".join(told)))))


def _decisions(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    yield "## Decisions"
    yield ""
    if not dossier.proposals:
        yield "No action was proposed."
        yield ""
    for proposal in dossier.proposals:
        yield from _decision(proposal, dossier, facts)


def _decision(proposal: Proposal, dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    card = facts.links.get(proposal.card_ts or "")
    yield f"### {_cell(named(proposal))}: {status(proposal)}"
    yield ""
    yield f"- Proposal `{proposal.id}`" + (f" ([card]({card}))" if card else "")
    yield f"- Action `{_cell(proposal.action)}` on `{_cell(proposal.product)}`"
    yield f"- Parameters `{_cell(proposal.params)}`, digest `{proposal.digest}`"
    yield f"- Proposed {_at(proposal.created_at)}, asked for by {_who(proposal.asked_by.user, facts)}"
    yield f"- Reason given, not checked: {_foreign_cell(proposal.rationale)}"
    if proposal.untrusted_read:
        yield "- The turn had read untrusted output"
    if proposal.decided_by and proposal.decided_at:
        reason = f": {_foreign_cell(proposal.reason)}" if proposal.reason else ""
        decided = "Decided" if proposal.decided_by in people_in(dossier) else "Ended"
        yield (
            f"- {decided} {_at(proposal.decided_at)} by {_who(proposal.decided_by, facts)}{reason}"
        )
    for entry in dossier.audit_log:
        if entry.kind == AuditKind.GUARD_VERDICT and entry.body.get("proposal") == proposal.id:
            told = [str(entry.body.get(name) or "") for name in ("guard", "verdict", "reason")]
            yield f"- Guard {_cell(' '.join(filter(None, told)))} ({_at(entry.at)})"
    if proposal.outcome:
        said = "; ".join(outcome_words(proposal.outcome).split("\n"))
        yield f"- Outcome: {_foreign_cell(said)}"
    yield ""


def _questions(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    yield "## Questions and evidence"
    yield ""
    for number, turn in enumerate(dossier.turns, 1):
        link = facts.links.get(turn.answer_ts or "")
        yield f"### {number}. {_at(turn.started_at)}, {_who(turn.asker, facts)}"
        yield ""
        yield from _quoted(turn.question)
        yield ""
        yield (f"[Answer]({link})" if link else "Answer") + f" ({_cell(turn.state)}):"
        yield ""
        yield from _quoted(turn.answer or "(none was kept)")
        yield ""
        yield from _evidence(turn, link)


def _evidence(turn: DossierTurn, link: str | None) -> Iterator[str]:
    if not turn.evidence:
        return
    yield "| result | tool | what it showed | |"
    yield "|---|---|---|---|"
    for each in turn.evidence:
        name = f"[E{each.number}]({link})" if link else f"E{each.number}"
        cut = ", cut" if each.truncated else ""
        outcome = f"{'ok' if each.ok else 'failed'}, {each.latency_ms} ms{cut}"
        yield f"| {name} | {_cell(each.tool)} | {_foreign_cell(each.summary)} | {outcome} |"
    yield ""


def _cost(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    del facts
    yield "## Cost"
    yield ""
    if not dossier.costs:
        yield "No model was asked."
        yield ""
        return
    yield "| provider | model | rounds | tokens | cost |"
    yield "|---|---|---|---|---|"
    for each in dossier.costs:
        unpriced = (
            f" + {_count(each.rounds_unpriced, 'round')} of unknown price"
            if each.rounds_unpriced
            else ""
        )
        yield (
            f"| {_cell(each.provider)} | {_cell(each.model)} | {each.rounds} | {each.tokens:,} "
            f"| {_usd(each.usd_micros)}{unpriced} |"
        )
    yield ""


def _proof(dossier: Dossier, facts: ReportFacts) -> Iterator[str]:
    yield "## What proves it"
    yield ""
    if not dossier.audit_log:
        yield "The audit log has no row of this session."
        return
    first, last = dossier.audit_log[0], dossier.audit_log[-1]
    verdict = facts.verdict
    yield f"- Audit rows {first.seq} to {last.seq}, {len(dossier.audit_log)} of them of this session"
    if verdict.bad:
        yield f"- **The chain is broken at row {verdict.bad.seq}: {verdict.bad.reason}**"
    else:
        keyed = "" if last.key_id else ", chained without a key"
        yield f"- The chain was whole when this was written: {verdict.rows} rows{keyed}"
    yield f"- MAC of the last row: `{last.mac}`"
    if facts.checkpoint:
        yield f"- Checkpoint: `{facts.checkpoint.line}`"
        yield "- Verify with `kortex audit verify --checkpoint THIS_FILE`"


def _who(actor: str, facts: ReportFacts) -> str:
    if not actor:
        return "(erased)"
    name = facts.names.get(actor)
    return f"{_cell(name)} ({_cell(actor)})" if name and name != actor else _cell(actor)


def _cell(text: str) -> str:
    line = " ".join(_CONTROL.sub("�", text).split())
    line = line if len(line) <= _MAX_CELL else f"{line[: _MAX_CELL - 1]}…"
    return line.replace("|", "\\|").replace("`", "´").replace("<", "&lt;")


def _foreign_cell(text: str) -> str:
    """A cell with the words of a model, a person or an upstream: every address in it is text."""
    return html.unescape(safe_links(_cell(text), NO_LINKS)).replace("<", "&lt;")


def _quoted(text: str) -> Iterator[str]:
    """A block quote in which every address is text: who reads a report must not follow a model's link."""
    for line in lines(_CONTROL.sub("�", text.replace("\r", "")), NO_LINKS):
        yield f"> {html.unescape(line.safe).replace('<', '&lt;')}".rstrip()


def _at(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _usd(micros: int) -> str:
    return f"${micros / USD_MICROS:,.4f}"
