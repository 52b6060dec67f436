"""Sessions, their messages and turns, as they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pydantic import JsonValue

from adapters.llm.messages import Message
from bot.domain.ids import MessageTs, Place, SessionId, TurnId
from bot.domain.session import Ask, Session, Summary, TurnState
from bot.domain.turn_events import Evidence, TurnFinished


class SessionStore(Protocol):
    async def begin_turn(self, ask: Ask, name: str, at: datetime, told: str = "") -> Session:
        """Store the turn and its user message, with its audit row. Idempotent by turn id.

        A session for the ask's place is created if it does not exist, and its `active_at` moves. A
        closed or idle session starts again with this ask. `told` is the text beside the question.
        """
        ...

    async def find(self, place: Place) -> Session | None: ...

    async def get(self, session_id: SessionId) -> Session | None: ...

    async def history(
        self, session: SessionId, before: TurnId, after_ts: str = ""
    ) -> Sequence[Message]:
        """Messages of the session's earlier, finished turns, oldest first.

        Messages from before a restart, and up to `after_ts`, are left out.
        """
        ...

    async def finish_turn(
        self,
        turn: TurnId,
        state: TurnState,
        messages: Sequence[Message],
        evidence: Sequence[Evidence],
        at: datetime,
        summary: Summary | None = None,
        notices: Sequence[str] = (),
        answer: str = "",
    ) -> bool:
        """Store the messages and results of the turn, with its audit row. Idempotent by turn id.

        Later turns read `summary` in place of the oldest turns. Returns whether `answer` is stored.
        """
        ...

    async def answer(self, turn: TurnId) -> str:
        """The whole answer of a finished turn; empty if unknown or not kept."""
        ...

    async def set_answer(self, turn: TurnId, ts: MessageTs) -> None:
        """Remember which message is edited."""
        ...

    async def turn_of_answer(self, place: Place, ts: MessageTs) -> TurnId | None: ...

    async def running_turn(self, place: Place) -> TurnId | None:
        """The turn that is being answered in that place, or waits to be, if any."""
        ...

    async def evidence(self, turn: TurnId, number: int) -> Evidence | None: ...

    async def notices(self, turn: TurnId) -> Sequence[str]:
        """Notices of a finished turn, in order; empty if unknown."""
        ...

    async def consulted(self, turn: TurnId) -> Sequence[tuple[Evidence, Mapping[str, JsonValue]]]:
        """Each result of a finished turn with its call's arguments, by number. Contents are left out."""
        ...

    async def asked(self, turn: TurnId, tool_call_id: str) -> Mapping[str, JsonValue]:
        """The arguments of a call of a finished turn, as they were written; empty if not kept."""
        ...


@dataclass(frozen=True, slots=True)
class HeldBack:
    """The end of a turn that people have not seen, and for how many seconds it has been kept."""

    ask: Ask
    final: TurnFinished
    age_s: float


class Undelivered(Protocol):
    """Ends of turns that could not be shown. Every method raises StorageUnavailable."""

    async def keep(self, ask: Ask, final: TurnFinished) -> None:
        """Until it is settled; a second end of the turn changes nothing."""
        ...

    async def claim(self, limit: int, age_s: float) -> Sequence[HeldBack]:
        """Those due and kept for less, each given to one caller; due again later unless settled."""
        ...

    async def overdue(self, limit: int, age_s: float) -> Sequence[HeldBack]:
        """Claim those kept for longer than `age_s`."""
        ...

    async def settle(self, turn: TurnId) -> None:
        """It was shown, or will never be."""
        ...
