"""Turns of a thread one after the other, the oldest message first, over all replicas."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Final, TypeVar

import structlog

from bot.domain.ids import TurnId
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable
from bot.store.tickets import Tickets

T = TypeVar("T")
log = structlog.get_logger(__name__)

# For what others did: one reading query for all that wait here, and none while nobody does.
LOOK_AGAIN_S: Final = 0.25
RETRY_S: Final = 1.0
ENTERING: Final = (
    4  # at once: more would take the database from starts, which people's platform waits for
)


@dataclass(frozen=True, slots=True)
class _Waiting:
    ask: Ask
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class ThreadOrder:
    """The waiting turns of one replica, the owner of their tickets.

    `starts_first` waits while many turns are being started.
    """

    def __init__(
        self, tickets: Tickets, owner: str, starts_first: Callable[[], Awaitable[None]]
    ) -> None:
        self._tickets = tickets
        self._owner = owner
        self._starts_first = starts_first
        self._entering = asyncio.Semaphore(ENTERING)
        self._waiting: dict[TurnId, _Waiting] = {}
        self._anybody = asyncio.Event()
        self._first_attempts: set[TurnId] = set()
        self._unstarted: Collection[str] = ()

    async def announce(self, ask: Ask) -> bool:
        """Give it its place in line, before anybody is told that it was accepted.

        False when it has been started before. Raises StorageUnavailable.
        """
        return await self._tickets.announce(ask.turn_id, ask.place.key, ask.ts)

    async def drop_unstarted(self) -> None:
        """Free threads of turns that never began. Raises StorageUnavailable.

        Such a one is left alone once: it may be in the midst of its start.
        """
        self._unstarted = await self._tickets.drop_unstarted(self._unstarted)

    async def enter(self, ask: Ask) -> bool:
        """Wait until this turn is the oldest of its thread; whether no attempt was here before.

        It was promised, so it waits for a database that is busy or gone, too. Raises Superseded.
        """
        return await self._patiently(ask, self._entered)

    async def deaths(self, ask: Ask) -> int:
        """How often its process has died with no more of its steps on record than there are now."""

        async def counted(resumed: Ask) -> int:
            return await self._tickets.count_death(resumed.turn_id)

        return await self._patiently(ask, counted)

    @staticmethod
    async def _patiently(ask: Ask, work: Callable[[Ask], Awaitable[T]]) -> T:
        while True:
            try:
                return await work(ask)
            except StorageUnavailable as error:
                log.warning("turn_waits_for_database", turn=ask.turn_id, error=str(error))
                await asyncio.sleep(RETRY_S)

    async def leave(self, ask: Ask) -> None:
        """Let the next one in. Raises StorageUnavailable."""
        await self._tickets.leave(ask.turn_id, self._owner)
        here = [each for each in self._waiting.values() if each.ask.place.key == ask.place.key]
        if here:
            min(here, key=lambda each: (each.ask.ts, each.ask.turn_id)).woken.set()

    async def watch(self) -> None:
        """Wake those whose time came by what was done elsewhere, until cancelled."""
        while True:
            await self._anybody.wait()
            await asyncio.sleep(LOOK_AGAIN_S)
            with suppress(StorageUnavailable):
                blocked = await self._tickets.blocked(self._owner)
                for turn, waiting in self._waiting.items():
                    if turn not in blocked:
                        waiting.woken.set()

    def take_first_look(self, ask: Ask) -> bool:
        """Take the right to post without looking first; whether there was one. It is taken once.

        Only a first attempt has it: nothing can have been posted for its ask yet. Who comes again may
        have sent a post whose answer was lost, and has to look.
        """
        if ask.turn_id not in self._first_attempts:
            return False
        self._first_attempts.discard(ask.turn_id)
        return True

    def forget(self, turn: TurnId) -> None:
        """It is over, or somebody else's."""
        self._first_attempts.discard(turn)

    async def _entered(self, ask: Ask) -> bool:
        thread = ask.place.key
        with self._listed(ask) as woken:
            async with self._entering:
                await self._starts_first()
                if fresh := await self._tickets.is_fresh(ask.turn_id):
                    self._first_attempts.add(ask.turn_id)
                entered = await self._tickets.try_enter(ask.turn_id, thread, ask.ts, self._owner)
            while not entered:
                self._anybody.set()
                await woken.wait()
                woken.clear()
                entered = await self._tickets.try_enter(ask.turn_id, thread, ask.ts, self._owner)
        return fresh

    @contextmanager
    def _listed(self, ask: Ask) -> Iterator[asyncio.Event]:
        """Among the waiting from before its first try: who leaves meanwhile is not missed."""
        waiting = self._waiting[ask.turn_id] = _Waiting(ask)
        try:
            yield waiting.woken
        finally:
            if self._waiting.get(ask.turn_id) is waiting:
                del self._waiting[ask.turn_id]
            if not self._waiting:
                self._anybody.clear()
