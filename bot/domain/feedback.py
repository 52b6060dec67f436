"""What people think of answers: one vote each, and why an answer was of no help."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bot.domain.ids import MessageTs, Place, UserId


class Vote(StrEnum):
    UP = "up"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class Opinion:
    """One person's vote on one answer. `reason` is redacted, and empty where none was given.

    `provider` is who gave the answer, empty where that was not kept. `asked` is the question, empty
    once it was deleted.
    """

    turn: str
    place: Place
    answer_ts: MessageTs | None
    provider: str
    vote: Vote
    reason: str
    by: UserId
    at: datetime
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """Answers of one provider that ended in the last `days`, and the votes on them."""

    provider: str
    days: int
    answers: int
    up: int
    down: int
