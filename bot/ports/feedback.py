"""Votes on answers, as they are stored and counted."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.domain.feedback import Judged, Opinion, Vote
from bot.domain.ids import Person, TurnId
from tools.redactor import Redacted


class Feedback(Protocol):
    """One vote per person and answer, changed by the next one. Every method raises StorageUnavailable."""

    @property
    def keeps_reasons(self) -> bool:
        """Whether reasons are stored; the retention of people's words may exclude it."""
        ...

    async def vote(self, turn: TurnId, person: Person, vote: Vote, key: str) -> bool | None:
        """Whether it changed anything; None for a turn that is not known or not over.

        What changed is on record, once per `key`. A change takes the reason of the vote before with it.
        """
        ...

    async def explain(self, turn: TurnId, person: Person, reason: Redacted, key: str) -> bool:
        """Keep why it was of no help; False where the person's vote is not (any more) that it was."""
        ...

    async def judged(self, days: int) -> Sequence[Judged]:
        """By provider, over the last days, by the database's clock."""
        ...

    async def reasons(self, limit: int) -> Sequence[Opinion]:
        """The latest ones that were given, newest first."""
        ...

    async def between(self, start: datetime, end: datetime) -> Sequence[Opinion]:
        """Votes on answers to questions of that time, oldest first."""
        ...
