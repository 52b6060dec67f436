"""The stop signals of the turns that run here, and what was asked for elsewhere."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from bot.chat.stopping import Signal
from bot.domain.ids import TurnId, UserId
from bot.ports.durability import StopSignal
from bot.ports.failures import StorageUnavailable
from bot.store.tickets import Tickets

POLL_S: Final = 0.3


class StopSignals:
    """One a turn. Nothing is looked for while there is none."""

    def __init__(self, tickets: Tickets, owner: str) -> None:
        self._tickets = tickets
        self._owner = owner
        self._signals: dict[TurnId, Signal] = {}
        self._any = asyncio.Event()

    @contextmanager
    def of(self, turn: TurnId) -> Iterator[Signal]:
        """A new one, the turn's until the context ends."""
        signal = self._signals[turn] = Signal()
        self._any.set()
        try:
            yield signal
        finally:
            if self._signals.get(turn) is signal:
                del self._signals[turn]

    def watched(self, turn: TurnId) -> StopSignal:
        """That of a turn that runs here, or will."""
        self._any.set()
        return self._signals.setdefault(turn, Signal())

    async def request(self, turn: TurnId, by: UserId) -> bool:
        """Ask a turn to stop, wherever it runs; whether there was one. Raises StorageUnavailable."""
        asked = await self._tickets.request_stop(turn, by)
        if signal := self._signals.get(turn):
            signal.set(by)
        return asked

    async def watch(self) -> None:
        """Pass on what other processes were asked for, until cancelled."""
        while True:
            await self._any.wait()
            await asyncio.sleep(POLL_S)
            if not self._signals:
                self._any.clear()
                continue
            with suppress(StorageUnavailable):
                for turn, by in (await self._tickets.stops_for(self._owner)).items():
                    if signal := self._signals.get(TurnId(turn)):
                        signal.set(by)
