"""Decisions on proposals, written as notes beside a question and parsed from there."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_STANDS: Final = "Do not propose it again unless something was deployed since."
ELSEWHERE: Final = " in another thread of this channel"
# Words of people and of control planes follow these.
_NOTE: Final = re.compile(
    r"^- Proposal ([\w-]+) \(([\w-]+) ([\w./-]+) .*?\)(?:"
    + re.escape(ELSEWHERE)
    + r")?: (confirmed|rejected) by ([^\n:(){}]{1,80}?) at "
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)([^\n]*?)\.(?: ("
    + re.escape(_STANDS)
    + r"))?(?: Told: (.*))?$",
    re.MULTILINE,
)
_CARRIED_OUT: Final = "carried out from another channel"
_OF_OTHERS: Final = re.compile(
    rf"^- ([\w-]+) of ([\w./-]+) was {_CARRIED_OUT} at "
    rf"(\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ)([^\n]*?)\.(?: ({re.escape(_STANDS)}))?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Decided:
    """One decided proposal. `how` is "confirmed" or "rejected"; `then` is the outcome with its
    separator, `reason` the words that were typed beside a rejection.

    `stands`: do not propose it again for the version deployed before. A decision from another
    channel has no id, no author and a different `how`.
    """

    id: str
    action: str
    product: str
    how: str
    by: str
    at: datetime
    then: str
    stands: bool
    reason: str = ""

    @property
    def went_out(self) -> bool:
        """Whether a person confirmed it, here or in another channel."""
        return self.how != "rejected"


def decision_time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def decision_note(became: str, told: str, *, stands: bool) -> str:
    """The end of a note: the outcome, whether it stands, and the quoted words on one line."""
    words = " ".join(told.split())
    return f"{became}.{f' {_STANDS}' if stands else ''}{f' Told: {words}' if words else ''}"


def carried_out_note(action: str, product: str, at: datetime, became: str, *, stands: bool) -> str:
    """The whole note in a thread that did not ask; `became` excludes the approver."""
    again = f" {_STANDS}" if stands else ""
    return f"{action} of {product} was {_CARRIED_OUT} at {decision_time(at)}; {became}.{again}"


def decided_in(told: str) -> tuple[Decided, ...]:
    """The decisions noted beside a question, in the order of deciding."""
    here = (match.groups() for match in _NOTE.finditer(told))
    others = (
        ("", action, product, _CARRIED_OUT, "", at, then, stands, "")
        for action, product, at, then, stands in _OF_OTHERS.findall(told)
    )
    found = []
    for name, action, product, how, by, at, then, stands, words in (*here, *others):
        try:
            when = datetime.fromisoformat(at)
        except ValueError:
            continue
        reason = words if how == "rejected" else ""
        found.append(Decided(name, action, product, how, by, when, then, bool(stands), reason))
    return tuple(sorted(found, key=lambda one: one.at))


def decisions_said(told: str) -> str:
    """The decisions as text that an answer may repeat: who decided what, and when."""
    return "\n".join(
        f"{one.action} of {one.product} {one.how}{f' by {one.by}' if one.by else ''} "
        f"at {one.at:%Y-%m-%d %H:%M} UTC{one.then}{f': {one.reason}' if one.reason else ''}"
        for one in decided_in(told)
    )
