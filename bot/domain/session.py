"""A session (one thread), its turns, and the ask that starts one."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.ids import MessageTs, Person, Place, SessionId, TurnId, turn_of
from tools.attached import AttachedFile
from tools.redactor import Redacted


@dataclass(frozen=True, slots=True)
class Ask:
    """One message to the bot. (team, channel, ts) identifies it across retries and replicas.

    `channel_name` is read when its turn begins, not when it is asked.
    """

    place: Place
    ts: MessageTs
    asker: Person
    text: Redacted  # without the bot's own mention
    channel_name: str = ""
    files: tuple[AttachedFile, ...] = ()  # attached to the message, in their order

    @property
    def turn_id(self) -> TurnId:
        """The same for every delivery of the message."""
        return turn_of(self.place, self.ts)


# What a summary of earlier turns is the answer to, in the history of the later ones.
SUMMARY_REQUEST = "Summarise what was said here so far."


@dataclass(frozen=True, slots=True)
class Summary:
    """Replaces the oldest `turns` of a session from now on."""

    turns: int
    text: str


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. `name` is what plugin and policy globs match.

    `resumed_by` is the turn that reopened it after too long an idle time. `summary` replaces the
    turns up to the message `summary_ts`. `is_new`: no other turn began in it.
    """

    id: SessionId
    place: Place
    name: str
    created_at: datetime
    active_at: datetime
    resumed_by: TurnId | None = None
    summary: str = ""
    summary_ts: str = ""
    is_new: bool = field(default=False, compare=False)


class TurnState(StrEnum):
    """Where a turn is; all but the first are final."""

    RUNNING = "running"
    ANSWERED = "answered"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Turn:
    """One ask and what became of it. `answer_ts` is the message that is edited."""

    id: TurnId
    session_id: SessionId
    asked_by: Person
    state: TurnState
    started_at: datetime
    answer_ts: MessageTs | None = None
    ended_at: datetime | None = None
