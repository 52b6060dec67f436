"""Turns of a thread one after the other, the oldest message first, over all replicas."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final, TypeVar

import structlog

from bot.domain.ids import TurnId
from bot.domain.session import Ask
from bot.ports.failures import StorageUnavailable
from bot.store.tickets import Tickets

T = TypeVar("T")
log = structlog.get_logger(__name__)

POLL_BUSY_THREAD_S: Final = 0.25  # for turns that end on other replicas
RETRY_S: Final = 1.0
ENTERING: Final = (
    4  # at once: more would take the database from starts, which people's platform waits for
)


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
        self._left: dict[str, asyncio.Event] = {}
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
        if waiting := self._left.pop(ask.place.key, None):
            waiting.set()

    def is_first_look(self, ask: Ask) -> bool:
        """Whether nothing can have been posted for this ask yet: true once, on a first attempt.

        Only asked for a second time when a post may have been sent and its answer lost.
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
        async with self._entering:
            await self._starts_first()
            if fresh := await self._tickets.is_fresh(ask.turn_id):
                self._first_attempts.add(ask.turn_id)
            entered = await self._tickets.try_enter(ask.turn_id, thread, ask.ts, self._owner)
        while not entered:
            left = self._left.setdefault(thread, asyncio.Event())
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_BUSY_THREAD_S):
                    await left.wait()
            entered = await self._tickets.try_enter(ask.turn_id, thread, ask.ts, self._owner)
        return fresh
