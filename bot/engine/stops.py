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
    """One a turn. Nothing is looked for while there is none.

    `alone`: nobody else is asked, so that nothing is looked for either unless something was asked for,
    here or by the process before; what comes before its turn has a signal is found so.
    """

    def __init__(self, tickets: Tickets, owner: str, *, alone: bool = False) -> None:
        self._tickets = tickets
        self._owner = owner
        self._alone = alone
        self._may_be_some = True
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
        try:
            asked = await self._tickets.request_stop(turn, by)
        finally:
            self._may_be_some = True
        if signal := self._signals.get(turn):
            signal.set(by)
        return asked

    async def watch(self) -> None:
        """Pass on what other processes were asked for, and what came too early, until cancelled."""
        while True:
            await self._any.wait()
            await asyncio.sleep(POLL_S)
            if not self._signals:
                self._any.clear()
                continue
            if self._may_be_some or not self._alone:
                with suppress(StorageUnavailable):
                    await self._look()

    async def _look(self) -> None:
        self._may_be_some = False  # but for what is asked for meanwhile
        try:
            asked = await self._tickets.stops_for(self._owner)
        except BaseException:
            self._may_be_some = True
            raise
        self._may_be_some |= bool(asked)
        for turn, by in asked.items():
            if signal := self._signals.get(TurnId(turn)):
                signal.set(by)
