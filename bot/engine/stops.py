"""Stop signals of the turns that run here, including stops requested on other replicas."""

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
    """One signal per turn. The database is polled only while there are signals.

    `alone`: this process is the only one, so it polls only after a request, or after its start for
    requests that the last process received.
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
        """A new signal for a turn, until the context ends."""
        signal = self._signals[turn] = Signal()
        self._any.set()
        try:
            yield signal
        finally:
            if self._signals.get(turn) is signal:
                del self._signals[turn]

    def watched(self, turn: TurnId) -> StopSignal:
        """The signal of a turn that runs here or is about to."""
        self._any.set()
        return self._signals.setdefault(turn, Signal())

    async def request(self, turn: TurnId, by: UserId) -> bool:
        """Ask a turn to stop, on any replica. False if it does not run. Raises StorageUnavailable."""
        try:
            asked = await self._tickets.request_stop(turn, by)
        finally:
            self._may_be_some = True
        if signal := self._signals.get(turn):
            signal.set(by)
        return asked

    async def watch(self) -> None:
        """Set signals for stops requested elsewhere, or before the signal existed, until cancelled."""
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
        self._may_be_some = False  # a request may set it during the read
        try:
            asked = await self._tickets.stops_for(self._owner)
        except BaseException:
            self._may_be_some = True
            raise
        self._may_be_some |= bool(asked)
        for turn, by in asked.items():
            if signal := self._signals.get(TurnId(turn)):
                signal.set(by)
