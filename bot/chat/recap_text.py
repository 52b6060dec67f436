"""The digest of a thread or a channel as Markdown: who said and did what, findings, open questions.

Quoted text becomes one line without Markdown, so that no message can make a heading, a list or a
link.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bot.domain.change import named
from bot.domain.dossier import Dossier, DossierTurn
from bot.domain.ids import ALERTS, MessageTs, Place
from bot.domain.proposal import Proposal, ProposalState, became
from bot.domain.session import TurnState
from bot.domain.thread import Said, Speaker

LINES: Final = 6  # of who said and did what: the first one, and the last; it fits on a phone
_FIRST: Final = 1
_KNOWN: Final = 3
_OPEN: Final = 5
_CAUSE = re.compile(r"\b(?:likely cause|root cause|trouble seems)\b", re.IGNORECASE)
QUOTED: Final = 200
_NAMED: Final = 60
_SPACES = re.compile(r"\s+")
_MARKS: Final = str.maketrans(
    {"*": "\u2217", "~": "\u223c", "`": "\u02cb", "[": "(", "]": ")", "_": "\u02cd", "|": "\u00a6"}
)
# What an answer begins with that is no statement: its own emphasis, headings, list marks.
_LEADING = re.compile(r"^[\s#>*_-]+")
_OWN: Final = (
    "So far in this thread",
    "The threads here in which I was asked",
    "No one asked me a question",
    "Draft from the records",
)
_NONE_OPEN: Final = (
    "no open proposal and no queued question; I did not check whether the incident is over"
)
_OWN_NAME: Final = "kortex"  # as the lines of the bot begin
_HANDLED: Final = frozenset({ProposalState.SUCCEEDED, ProposalState.FAILED, ProposalState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class ChannelPart:
    """One thread. `names` by user id, `links` by message; `dossier` is None without records."""

    place: Place
    dossier: Dossier | None
    messages: Sequence[Said]
    missing: str
    names: Mapping[str, str]
    links: Mapping[MessageTs, str]
    now: datetime

    def name(self, user: str) -> str:
        return "an alert" if user == ALERTS else inert(self.names.get(user, "somebody"), _NAMED)

    @property
    def proposals(self) -> Sequence[Proposal]:
        return self.dossier.proposals if self.dossier else ()

    @property
    def turns(self) -> Sequence[DossierTurn]:
        return self.dossier.turns if self.dossier else ()


def inert(text: str, most: int) -> str:
    """One line, cut, with nothing that formats."""
    flat = _SPACES.sub(" ", text.replace("```", " ")).strip().translate(_MARKS)
    return flat if len(flat) <= most else flat[: most - 1] + "\u2026"


def thread_digest(part: ChannelPart, asked_by: str) -> str:
    """The whole digest of one thread; `asked_by` is the turn that asks for it."""
    events = sorted(_events(part), key=lambda event: event[0])
    people = len({m.user for m in part.messages if m.speaker is Speaker.PERSON})
    counted = f"{_count(len(part.messages), 'message')}, {_count(people, 'person', 'people')}"
    return "\n".join(
        (
            f"**So far in this thread** ({counted}; times are UTC)",
            *([f"\n\u26a0 Not all: {part.missing}."] if part.missing else []),
            "\n**Known so far** (from earlier answers; nothing was checked again)",
            *(_known(part) or ["- no question has been answered here yet"]),
            "\n**What is open**",
            *(_open(part, asked_by) or [f"- {_NONE_OPEN}"]),
            "\n**Who said and did what**",
            *(_cut([line for _, line in events]) or ["- no messages"]),
        )
    )


def channel_digest(parts: Sequence[ChannelPart], hours: int, total: int) -> str:
    """Of the `total` threads of a channel in which I was asked lately, these."""
    if not parts:
        return f"No one asked me a question in this channel in the last {hours} hours."
    some = f"{len(parts)} of {total}, those with proposals first; " if total > len(parts) else ""
    lines = [f"**The threads here in which I was asked, last {hours} hours** ({some}times are UTC)"]
    for part in parts:
        lines += ["", *_of_thread(part)]
    return "\n".join(lines)


def _of_thread(part: ChannelPart) -> Iterator[str]:
    first = part.messages[0] if part.messages else None
    if first is not None:
        yield f"**{_clock(first.at, first.link)} {_who(first)}**: {_quote(first.text)}"
    else:
        began = part.dossier.session.created_at if part.dossier else part.now
        yield f"**{_clock(began, part.links.get(part.place.thread_ts, ''))} a thread**"
    people = len({m.user for m in part.messages if m.speaker is Speaker.PERSON})
    last = max((m.at for m in part.messages), default=None)
    until = f", the last at {last.astimezone(UTC):%H:%M}" if last else ""
    count = _count(len(part.messages), "message")
    yield f"- {count} of {_count(people, 'person', 'people')}{until}"
    if part.missing:
        yield f"- \u26a0 Not all: {part.missing}."
    known = sorted([*_answers(part)[-2:], *_carried_out(part)[-2:]])
    yield from (line for _, line in known)
    yield from (f"{line} (open)" for line in _open(part, "")[:3])


def _events(part: ChannelPart) -> Iterator[tuple[datetime, str]]:
    for said in part.messages:
        if said.speaker in (Speaker.PERSON, Speaker.APP):
            yield said.at, f"- {_clock(said.at, said.link)} {_who(said)}: {_quote(said.text)}"
        elif said.speaker is Speaker.NOTE:
            yield said.at, f"- {_clock(said.at, said.link)} Kortex: {_quote(said.text)}"
    for turn in part.turns:
        if turn.state == TurnState.ANSWERED.value and turn.ended_at:
            link = _link(part, turn.answer_ts)
            yield (
                turn.ended_at,
                f"- {_clock(turn.ended_at, link)} Kortex answered {part.name(turn.asker)}",
            )
    for row in part.proposals:
        yield from _decided(part, row)


def _decided(part: ChannelPart, row: Proposal) -> Iterator[tuple[datetime, str]]:
    link, what = _link(part, row.card_ts), inert(named(row), QUOTED)
    yield row.created_at, f"- {_clock(row.created_at, link)} Kortex proposed: {what}"
    if row.decided_at is None:
        return
    by = row.decided_by or ""
    who = f" by {part.name(by)}" if by in part.names else ""
    at = row.decided_at
    why = f": {_quote(row.reason)}" if row.reason else ""
    yield at, f"- {_clock(at, link)} {what}: {became(row, who)}{why}"


def _known(part: ChannelPart) -> list[str]:
    answers, done = _answers(part), _carried_out(part)
    causes = [one for one in answers if _CAUSE.search(one[1])][-1:]
    last = [one for one in answers[-1:] if one not in causes]
    newest = sorted([*done, *answers], reverse=True)
    chosen = dict.fromkeys([*causes, *done[-1:], *last, *newest])
    return [line for _, line in sorted(list(chosen)[:_KNOWN])]


def _answers(part: ChannelPart) -> list[tuple[datetime, str]]:
    answers = {m.ts: m for m in part.messages if m.speaker is Speaker.ANSWER}
    lines: list[tuple[datetime, str]] = []
    for turn in part.turns:
        shown = answers.get(MessageTs(turn.answer_ts or ""))
        if turn.state != TurnState.ANSWERED.value or shown is None or turn.ended_at is None:
            continue
        head = _headline(shown.text)
        if head and not head.startswith(_OWN):
            line = f"- {_clock(turn.ended_at, shown.link)} Kortex: {_marked(head)}"
            lines.append((turn.ended_at, line))
    return sorted(lines)


def _carried_out(part: ChannelPart) -> list[tuple[datetime, str]]:
    lines: list[tuple[datetime, str]] = []
    for row in part.proposals:
        if row.state in _HANDLED and row.decided_at:
            link = _link(part, row.card_ts)
            what = f"{inert(named(row), QUOTED)}: {became(row)}"
            lines.append((row.decided_at, f"- {_clock(row.decided_at, link)} {what}"))
    return sorted(lines)


def _headline(answer: str) -> str:
    told = _LEADING.sub("", answer).split("\n\n", 1)[0]
    return told.replace("**", "")


def _marked(head: str) -> str:
    quoted = _quote(head)
    is_cut = "\u26a0" in head and head.count("\u26a0") > quoted.count("\u26a0")
    return f"{quoted} (\u26a0 marked there)" if is_cut else quoted


def _open(part: ChannelPart, asked_by: str) -> list[str]:
    lines = [
        f"- {_clock(row.created_at, _link(part, row.card_ts))} {inert(named(row), QUOTED)} waits "
        f"for a decision until {row.expires_at.astimezone(UTC):%H:%M}"
        for row in part.proposals
        if row.state is ProposalState.PENDING and row.expires_at > part.now
    ]
    for turn in part.turns:
        if turn.state != TurnState.ANSWERED.value and turn.id != asked_by:
            how = "is being answered" if turn.state == TurnState.RUNNING.value else turn.state
            lines.append(
                f"- {_clock(turn.started_at, _link(part, turn.answer_ts))} {part.name(turn.asker)} "
                f"asked me: {_quote(turn.question)} ({how})"
            )
    lines += [
        f"- {_clock(m.at, m.link)} {_who(m)} asked: {_quote(m.text)} (no reply since)"
        for m in _unanswered(part.messages)
    ]
    return lines[:_OPEN]


def _unanswered(messages: Sequence[Said]) -> Iterator[Said]:
    others = [m for m in messages if m.speaker in (Speaker.PERSON, Speaker.APP, Speaker.ANSWER)]
    for at, said in enumerate(others):
        if said.speaker is not Speaker.PERSON or said.to_bot or "?" not in said.text:
            continue
        if all(later.user == said.user for later in others[at + 1 :]):
            yield said


def _cut(lines: Sequence[str]) -> list[str]:
    if len(lines) <= LINES:
        return list(lines)
    left = len(lines) - LINES
    return [*lines[:_FIRST], f"- \u2026 {left} more", *lines[-(LINES - _FIRST) :]]


def _clock(at: datetime, link: str) -> str:
    shown = f"{at.astimezone(UTC):%H:%M}"
    return f"[{shown}]({link})" if link else shown


def _link(part: ChannelPart, ts: str | None) -> str:
    return part.links.get(MessageTs(ts), "") if ts else ""


def _who(said: Said) -> str:
    app = " (app)" if said.speaker is Speaker.APP and "app" not in said.name.split() else ""
    plain = "".join(filter(str.isalnum, unicodedata.normalize("NFKC", said.name).casefold()))
    other = " (not this bot)" if plain.startswith(_OWN_NAME) else ""
    return f"{inert(said.name, _NAMED)}{app}{other}"


def _quote(text: str) -> str:
    return f"\u201c{inert(text, QUOTED)}\u201d" if text.strip() else "(no text)"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
