"""What an answer claims, sentence by sentence, by which evidence: `[E1]`, or `[E1, E2]`."""

import re
from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue

CITATION = re.compile(r"\[E\d{1,4}(?:\s*,\s*E\d{1,4})*\]", re.ASCII)
_NUMBER = re.compile(r"\d+", re.ASCII)


class ClaimState(StrEnum):
    """`unchecked` is left alone and counted; the last two are marked where they stand.

    `attached` stands in a file that somebody attached and in nothing that was measured; it is marked as
    theirs.
    """

    SUPPORTED = "supported"
    ATTACHED = "attached"
    UNCHECKED = "unchecked"
    UNSUPPORTED = "unsupported"
    CONTRADICTED = "contradicted"


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence. `evidence` are the numbers it was checked against; `note` is the mark it bears."""

    text: str
    evidence: tuple[int, ...]
    state: ClaimState
    note: str = ""

    def as_json(self) -> JsonValue:
        """One entry of `claims` of `kortex ask --json`."""
        return {
            "text": self.text,
            "evidence": [f"E{number}" for number in self.evidence],
            "state": self.state.value,
            "note": self.note,
        }


def cited(text: str) -> tuple[int, ...]:
    """The numbers a text cites, each once, in the order of their first mention."""
    found = (int(n) for each in CITATION.findall(text) for n in _NUMBER.findall(each))
    return tuple(dict.fromkeys(found))
