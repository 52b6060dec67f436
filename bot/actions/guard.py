"""What a guard is: one check with a verdict, asked between a person's Confirm and the dispatch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from bot.actions.catalog import Action
from bot.domain.proposal import ConfirmedProposal, Proposal


@dataclass(frozen=True, slots=True)
class Subject:
    """What is judged: the proof, the row as stored now, and the action as declared now."""

    confirmed: ConfirmedProposal
    row: Proposal
    action: Action


@dataclass(frozen=True, slots=True)
class Judgement:
    """A guard's word. `reason` empty lets it pass; `facts` go on record with it.

    `outdated` says that the target is no longer the one the card showed.
    """

    reason: str = ""
    facts: Mapping[str, JsonValue] = field(default_factory=dict)
    outdated: bool = False


PASSED = Judgement()


@dataclass(frozen=True, slots=True)
class Refused:
    """A guard's no, in words for people."""

    guard: str
    reason: str
    outdated: bool = False


class Guard(Protocol):
    """One check. It raises what its stores raise, and then nothing is dispatched."""

    name: str

    async def judge(self, subject: Subject) -> Judgement:
        """PASSED, or why not."""
        ...
