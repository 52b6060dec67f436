"""Decisions on proposals, here and elsewhere: the only known record of actions."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from adapters.llm.called import called
from adapters.llm.decided import Decided
from adapters.llm.triage.case import Case, plain
from adapters.llm.triage.surroundings import in_code
from adapters.llm.triage.telling import clock

_ASKS_REJECTED: Final = re.compile(
    r"\b(?:why|who|reason)\b.*\b(?:reject\w*|declin\w*|refus\w*|said no)\b"
)


def decision_sentence(decided: Decided, now: datetime | None) -> str:
    """`A rollback of checkout was confirmed by mira at 14:36 UTC, and is done`: a sentence to go on from."""
    then = decided.then.replace("; succeeded", ", and is done").replace(
        "; running", ", and is running"
    )
    what = "A rollback" if "rollback" in decided.action else plain(decided.action).capitalize()
    by = f" by {called(decided.by)}" if decided.by else ""
    return f"{what} of {plain(decided.product)} was {decided.how}{by} at {clock(decided.at, now)}{then}"


def done_lines(case: Case) -> Iterator[str]:
    """The answer to "what was done and who confirmed it?", newest first."""
    about = case.asked.subject
    decided = [one for one in case.decided if about in ("", one.product)]
    still_open = [one for one in case.open_proposals if about in ("", one[2])]
    carried_out = [one for one in decided if one.went_out]
    of = f" for {plain(about)}" if about else ""
    rejected = [one for one in reversed(decided) if not one.went_out]
    if _ASKS_REJECTED.search(case.question.lower()):
        if not rejected:
            yield f"**No proposal{of} was rejected here.**"
        for one in rejected[:1]:
            why = f"Reason: {in_code(one.reason)}." if one.reason else "No reason was given."
            yield f"**{decision_sentence(one, case.now)}.** {why}"
            yield f"Write `propose {plain(one.action)} {plain(one.product)}` for a new card."
        return
    if carried_out:
        yield f"**{decision_sentence(carried_out[-1], case.now)}.**"
    else:
        yield f"**No proposal{of} has been confirmed here.**"
    lines = [
        *(
            f"{decision_sentence(one, case.now)}."
            for one in reversed(decided)
            if one not in carried_out[-1:]
        ),
        *waiting(still_open),
    ]
    if lines:
        yield "\n".join(f"- {line}" for line in lines)
    if still_open:
        yield "Confirm or reject on the card: a message decides nothing."
    if any(not one.by for one in carried_out):
        yield "Only its own channel shows who confirmed an action."
    yield (
        "I only see what went through Kortex: proposals in this thread and channel, and actions "
        "on these products in the last two hours. I cannot see manual changes."
    )


def waiting(found: Sequence[tuple[str, str, str, str]]) -> Iterator[str]:
    """`rollback-deploy of checkout is proposed and waits for a decision.`"""
    for _, action, product, where in found:
        yield f"{plain(action)} of {plain(product)} is proposed{where} and waits for a decision."
