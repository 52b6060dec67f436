"""Stops that a test can press."""

from bot.chat.stopping import Signal
from bot.domain.ids import TurnId, UserId


class FakeStops:
    """`bot.ports.durability.Stops` over one process."""

    def __init__(self) -> None:
        self.signals: dict[TurnId, Signal] = {}

    async def request(self, turn: TurnId, by: UserId) -> bool:
        self.watch(turn).set(by)
        return True

    def watch(self, turn: TurnId) -> Signal:
        return self.signals.setdefault(turn, Signal())
