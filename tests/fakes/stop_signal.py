"""A stop that a test can press."""

import asyncio

from bot.domain.ids import TurnId, UserId


class FakeStop:
    """`bot.ports.StopSignal`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def press(self) -> None:
        self._event.set()


class FakeStops:
    """`bot.ports.Stops` over one process."""

    def __init__(self) -> None:
        self.signals: dict[TurnId, FakeStop] = {}

    async def request(self, turn: TurnId, by: UserId) -> bool:
        self.watch(turn).press()
        return True

    def watch(self, turn: TurnId) -> FakeStop:
        return self.signals.setdefault(turn, FakeStop())
