"""What an answer claims, sentence by sentence, and how far its evidence carries it."""

from dataclasses import dataclass
from enum import StrEnum

from pydantic import JsonValue


class ClaimState(StrEnum):
    """`unchecked` is left alone and counted; the last two are marked where they stand."""

    SUPPORTED = "supported"
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
