"""What became of proposals: as it stands beside a question, and read back from there."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_STANDS: Final = "Do not propose it again unless something was deployed since."
ELSEWHERE: Final = " in another thread of this channel"
# The words of people and of control planes stand behind these.
_NOTE: Final = re.compile(
    r"^- Proposal ([\w-]+) \(([\w-]+) ([\w./-]+) .*?\)(?:"
    + re.escape(ELSEWHERE)
    + r")?: (confirmed|rejected) by ([^\n:(){}]{1,80}?) at "
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)([^\n]*?)\.(?: ("
    + re.escape(_STANDS)
    + r"))?(?: Told: .*)?$",
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
    """`how` is "confirmed" or "rejected", `then` what came of it, with what joins it (", nothing was run").

    `stands`: it is not to be proposed again for what was deployed before. What was carried out from
    another channel has no id, nobody who decided it, and those words as `how`.
    """

    id: str
    action: str
    product: str
    how: str
    by: str
    at: datetime
    then: str
    stands: bool

    @property
    def went_out(self) -> bool:
        """Whether somebody confirmed it, here or in another channel."""
        return self.how != "rejected"


def decision_time(at: datetime) -> str:
    """As a note has it, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def decision_note(became: str, told: str, *, stands: bool) -> str:
    """The end of a note: what became of it, whether that stands, and at last others' words on one line."""
    words = " ".join(told.split())
    return f"{became}.{f' {_STANDS}' if stands else ''}{f' Told: {words}' if words else ''}"


def carried_out_note(action: str, product: str, at: datetime, became: str, *, stands: bool) -> str:
    """All that is told of it where it was not asked for; `became` without who decided."""
    again = f" {_STANDS}" if stands else ""
    return f"{action} of {product} was {_CARRIED_OUT} at {decision_time(at)}; {became}.{again}"


def decided_in(told: str) -> tuple[Decided, ...]:
    """Of what stands beside a question, in the order in which it was decided."""
    here = (match.groups() for match in _NOTE.finditer(told))
    others = (
        ("", action, product, _CARRIED_OUT, "", at, then, stands)
        for action, product, at, then, stands in _OF_OTHERS.findall(told)
    )
    found = []
    for name, action, product, how, by, at, then, stands in (*here, *others):
        try:
            when = datetime.fromisoformat(at)
        except ValueError:
            continue
        found.append(Decided(name, action, product, how, by, when, then, bool(stands)))
    return tuple(sorted(found, key=lambda one: one.at))


def decisions_said(told: str) -> str:
    """The same as words that an answer may repeat: who decided what, and when."""
    return "\n".join(
        f"{one.action} of {one.product} {one.how}{f' by {one.by}' if one.by else ''} "
        f"at {one.at:%Y-%m-%d %H:%M} UTC{one.then}"
        for one in decided_in(told)
    )
