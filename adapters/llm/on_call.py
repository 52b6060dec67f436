"""The people on call, written as a note beside a question and parsed from there."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from adapters.llm.called import called

NO_ROTA: Final = "On call: I have no rota for this channel."
_NOW: Final = "On call now"
_UNREAD: Final = "could not be read just now"
_NOTE: Final = re.compile(rf"^- ((?:{_NOW}|On call): [^\n]*)$", re.MULTILINE)
ASKED: Final = (
    r"\bwho[a-z' ]*\bon[ -]?call\b|^\W*on[ -]?call(?: now| today| tonight| right now)?\W*$|\bon[ -]?call (?:person|engineer|rota)\b"
    r"|\b(?:should|do|can|must|shall) (?:i|we) (?:need to |have to )?(?:page|call|wake|ping|contact|ask|escalate|involve)\b"
    r"|\bwho(?: is|'s|s) on (?:duty|shift|rota)\b"
)
_ASKED: Final = re.compile(ASKED, re.IGNORECASE)


def asks_who_is_on_call(text: str) -> bool:
    return _ASKED.search(text) is not None


def on_call_note(by_role: Mapping[str, Sequence[str] | None]) -> str:
    """One line: the names by role; None if the rota could not be read."""
    if not by_role:
        return NO_ROTA
    parts = []
    for role, names in by_role.items():
        known = [one for name in names or () if (one := called(name))]
        who = ", ".join(known) if known else _UNREAD if names is None else "no person"
        parts.append(f"{who} (role {called(role)})")
    return f"{_NOW}: {'; '.join(parts)}."


def on_call_in(told: str) -> str:
    found = _NOTE.search(told)
    return found[1] if found else ""
