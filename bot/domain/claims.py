"""An answer's claims, sentence by sentence, with their evidence: `[E1]`, or `[E1, E2]`."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

CITATION = re.compile(r"\[E\d{1,4}(?:\s*,\s*E\d{1,4})*\]", re.ASCII)
# A sentence ends with its mark, closing brackets or quotes, and a citation after the mark.
SENTENCE_END = re.compile(
    r"[.!?][\"')*_]{0,4}(?:[ \t]{0,3}\[E\d{1,4}(?:, ?E\d{1,4}){0,9}\]){0,9}\s+(?=[A-Z`*\"(])"
    r"|\][;.]\s+"
)
_NUMBER = re.compile(r"\d+", re.ASCII)


# The note of a sentence whose only source is an attached file, not a measurement.
FROM_ATTACHMENT: Final = "from the attached file"


class ClaimState(StrEnum):
    """What the cited results say about a sentence.

    `supported`: they entail all of it. `contradicted`: they say otherwise, or do not hold what it cites.
    `unchecked`: no rule decides; a mention of the same name or figure is no support.
    """

    SUPPORTED = "supported"
    CONTRADICTED = "contradicted"
    UNCHECKED = "unchecked"


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence. `evidence` are the numbers it was checked against; `note` is the mark it bears."""

    text: str
    evidence: tuple[int, ...]
    state: ClaimState
    note: str = ""

    @property
    def is_doubted(self) -> bool:
        return bool(self.note) and self.note != FROM_ATTACHMENT

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
