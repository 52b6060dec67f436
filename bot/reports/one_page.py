"""An incident on one page: summary, impact, cause, timeline, actions, open questions. Pure.

It repeats recorded answers and decisions; it checks nothing again.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from bot.domain.change import named
from bot.domain.dossier import Dossier, DossierTurn
from bot.domain.proposal import OPEN, Proposal, became
from bot.domain.session import TurnState
from tools.output import lines_of

MOST_EVENTS: Final = 10
_MOST_IMPACT: Final = 3
_CAUSE: Final = re.compile(
    r"\b(?:likely cause|root cause|caused by|trouble seems)\b", re.IGNORECASE
)
_STATE: Final = re.compile(
    r"^(?:yes\b|not over|it is over|nothing is wrong|what (?:moved|changed) in .* is (?:usual again|back to normal)|i cannot say that it is over)",
    re.IGNORECASE,
)
_IMPACT: Final = re.compile(r"\b(?:requests?|latency|errors?|customers|affected)\b", re.IGNORECASE)
_MARKS: Final = re.compile(r"\s*\[E\d+\]|\*\*")


def one_page(dossier: Dossier) -> Iterator[str]:
    """Lines of plain text and Markdown headings; foreign text in them is verbatim."""
    cause = _newest(dossier, _CAUSE)
    yield from ("## Summary", "", *_summary(dossier, cause), "")
    yield from ("## Impact", "", *_impact(cause), "")
    yield from ("## Cause", "", _cause(cause), "")
    yield from ("## Timeline in brief", "", *_events(dossier), "")
    yield from ("## Actions taken", "", *_actions(dossier.proposals), "")
    yield from ("## Open questions", "", *_open(dossier, cause), "")


def _summary(dossier: Dossier, cause: DossierTurn | None) -> Iterator[str]:
    first = next(iter(dossier.turns), None)
    began = first.started_at if first else dossier.session.created_at
    yield f"- First asked {_at(began)} UTC{f': {_flat(first.question)}' if first else ''}"
    yield f"- Cause as answered: {headline(cause) if cause else 'none was named'}"
    done = [row for row in dossier.proposals if row.state not in OPEN and row.decided_at]
    yield f"- Action: {f'{named(done[-1])}: {became(done[-1])}' if done else 'none was carried out'}"
    state = _newest(dossier, _STATE)
    yield f"- Last known state: {_said(state) if state else 'not asked since; ask whether it is over'}"


def _impact(cause: DossierTurn | None) -> Sequence[str]:
    rows = lines_of(cause.answer) if cause else []
    found = [row for row in rows if row.startswith("- ") and _IMPACT.search(row)][:_MOST_IMPACT]
    told = [f"- {_flat(row.removeprefix('- '))}" for row in found]
    return [
        *(told or ["- No figure is on record."]),
        "- Customers and revenue: not measured.",
    ]


def _cause(cause: DossierTurn | None) -> str:
    if cause is None:
        return "No answer named a cause."
    return f"{headline(cause)} As answered {_at(cause.started_at)} UTC; no person confirmed it."


def _events(dossier: Dossier) -> Sequence[str]:
    decided = [event for row in dossier.proposals for event in _of_proposal(row)]
    answers = [
        (turn.started_at, f"asked: {_flat(turn.question)} → {headline(turn) or turn.state}")
        for turn in dossier.turns
    ]
    room = max(0, MOST_EVENTS - len(decided))
    kept = (
        answers
        if len(answers) <= room
        else [*answers[: room // 2], *answers[len(answers) - (room - room // 2) :]]
    )
    events = sorted([*decided[:MOST_EVENTS], *(kept if room else [])])
    return [f"- {_at(at)} {what}" for at, what in events] or ["- Nothing is on record."]


def _of_proposal(row: Proposal) -> Iterator[tuple[datetime, str]]:
    yield row.created_at, f"proposed: {named(row)}"
    if row.decided_at is not None:
        yield row.decided_at, f"{named(row)}: {became(row)}"


def _actions(rows: Sequence[Proposal]) -> Sequence[str]:
    done = [f"- {named(row)}: {became(row)}" for row in rows if row.state not in OPEN]
    return done or ["- None through Kortex. Manual changes are not on record here."]


def _open(dossier: Dossier, cause: DossierTurn | None) -> Sequence[str]:
    found = [
        f"- {named(row)} waits for a decision" for row in dossier.proposals if row.state in OPEN
    ]
    found += [
        f"- Not answered ({turn.state}): {_flat(turn.question)}"
        for turn in dossier.turns
        if turn.state != TurnState.ANSWERED.value
    ]
    if cause is None:
        found.append("- What was the cause?")
    else:
        found.append("- Does a person agree with the cause?")
    if _newest(dossier, _STATE) is None:
        found.append("- Is it over?")
    return found


def _newest(dossier: Dossier, words: re.Pattern[str]) -> DossierTurn | None:
    return next(
        (turn for turn in reversed(dossier.turns) if any(map(words.search, _heads(turn)))), None
    )


def headline(turn: DossierTurn) -> str:
    """What the answer says first: the line that names a cause, else its first line."""
    heads = _heads(turn)
    return next((line for line in heads if _CAUSE.search(line)), next(iter(heads), ""))


def _said(turn: DossierTurn) -> str:
    return f"{next(iter(_heads(turn)), '')} ({_at(turn.started_at)} UTC)"


def _heads(turn: DossierTurn) -> Sequence[str]:
    lines = (
        _flat(line) for line in lines_of(turn.answer) if not line.startswith(("- ", "Assumed"))
    )
    return [line for line in lines if line][:4]


def _flat(text: str) -> str:
    return _MARKS.sub("", " ".join(text.split()))


def _at(when: datetime) -> str:
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M}"
