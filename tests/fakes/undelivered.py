"""Ends of turns that could not be shown, in memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bot.domain.ids import TurnId
from bot.domain.session import Ask
from bot.domain.turn_events import TurnFinished
from bot.ports.sessions import HeldBack


@dataclass
class MemoryUndelivered:
    """`bot.ports.sessions.Undelivered`; everything is due whenever it is asked for."""

    now: Callable[[], datetime]
    rows: dict[TurnId, tuple[Ask, TurnFinished, datetime]] = field(default_factory=dict)

    async def keep(self, ask: Ask, final: TurnFinished) -> None:
        self.rows.setdefault(ask.turn_id, (ask, final, self.now()))

    async def claim(self, limit: int, age_s: float) -> Sequence[HeldBack]:
        return [held for held in self._held() if held.age_s < age_s][:limit]

    async def overdue(self, limit: int, age_s: float) -> Sequence[HeldBack]:
        return [held for held in self._held() if held.age_s >= age_s][:limit]

    async def settle(self, turn: TurnId) -> None:
        self.rows.pop(turn, None)

    def _held(self) -> list[HeldBack]:
        return [
            HeldBack(ask, final, (self.now() - since).total_seconds())
            for ask, final, since in self.rows.values()
        ]
