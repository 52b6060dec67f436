"""What a turn waits for before it runs: its start, its place in the thread, a slot.

Places are kept over all replicas, the oldest message of a thread first; the rest is this process's.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, Final, TypeVar

import structlog

from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.domain.ids import TurnId
from bot.domain.session import Ask
from bot.ports.durability import StopSignal
from bot.ports.failures import StorageUnavailable
from bot.store.accepted import Taken
from bot.store.tickets import Tickets

Begin = Callable[[], Coroutine[Any, Any, Exception | None]]

T = TypeVar("T")
log = structlog.get_logger(__name__)
# For what others did: one reading query for all that wait here, and none while nobody does.
LOOK_AGAIN_S: Final = 0.25
RETRY_S: Final = 1.0
ENTERING: Final = 4  # at once: more would take the database from turns that are under way
MAX_LIVE_TURNS: Final = 512
# One writer, and a turn takes about eight transactions.
MAX_LIVE_TURNS_SQLITE: Final = 50
ShowWaiting = Callable[[Ask], Coroutine[Any, Any, None]]


class Starts:
    """Starts by the id of what is started."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Task[Exception | None]] = {}

    async def once(
        self,
        name: str,
        is_started: Callable[[str], Awaitable[bool]],
        begin: Begin,
        background: asyncio.TaskGroup,
    ) -> None:
        """Begin it, unless it is started, or join a start of it that is under way.

        Raises what `is_started` raises and `begin` returns.
        """
        if name not in self._under_way and await is_started(name):
            return
        if (failure := await asyncio.shield(self.join(name, begin, background))) is not None:
            raise failure

    def join(
        self, name: str, begin: Begin, background: asyncio.TaskGroup
    ) -> asyncio.Task[Exception | None]:
        """The start of it that is under way, else a new one in `background`."""
        if (begun := self._under_way.get(name)) is None:
            # In a task of its own: a start that is cancelled half-way leaves work that nobody runs.
            begun = self._under_way[name] = background.create_task(begin())
            begun.add_done_callback(lambda _task: self._under_way.pop(name))
        return begun

    @property
    def under_way(self) -> bool:
        """Whether anything is being begun."""
        return bool(self._under_way)

    async def none(self) -> None:
        """Wait until every one has ended."""
        while self._under_way:
            await asyncio.wait(self._under_way.values())


@dataclass(frozen=True, slots=True)
class _Waiting:
    ask: Ask
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Entered(Enum):
    """How a turn came to its place in its thread."""

    WITH_FIRST_STEP = auto()  # it will, with its first transaction; nobody was here before
    FRESH = auto()  # nobody was here before
    AGAIN = auto()


class ThreadOrder:
    """The waiting turns of one replica, the owner of their tickets."""

    def __init__(self, tickets: Tickets, owner: str) -> None:
        self._tickets = tickets
        self._owner = owner
        self._entering = asyncio.Semaphore(ENTERING)
        self._waiting: dict[TurnId, _Waiting] = {}
        self._anybody = asyncio.Event()
        self._first_attempts: set[TurnId] = set()
        self._expected: set[TurnId] = set()
        self._unstarted: Collection[str] = ()

    async def drop_unstarted(self) -> None:
        """Free threads of turns that nobody will begin. Raises StorageUnavailable.

        Such a one is left alone once: it may be in the midst of its start.
        """
        self._unstarted = await self._tickets.drop_unstarted(self._unstarted)

    def expect(self, ask: Ask, taken: Taken) -> None:
        """It was accepted just now. With its thread's slot, its first transaction may enter."""
        if taken is Taken.FIRST:
            self._expected.add(ask.turn_id)

    async def enter(
        self,
        ask: Ask,
        waits: Callable[[Ask], None] = lambda _ask: None,
        *,
        at_once: bool = False,
    ) -> Entered:
        """Wait until this turn is the oldest of its thread.

        It was promised, so it waits for a database that is busy or gone, too. `waits` is called when
        a first attempt has to wait for others of its thread. `at_once`: it waits for nothing else. Raises Superseded.
        """
        if at_once and ask.turn_id in self._expected:
            self._first_attempts.add(ask.turn_id)
            return Entered.WITH_FIRST_STEP
        is_fresh = await self.patiently(ask, lambda: self._entered(ask, waits))
        return Entered.FRESH if is_fresh else Entered.AGAIN

    @staticmethod
    async def patiently(ask: Ask, work: Callable[[], Awaitable[T]]) -> T:
        """What it returns, as soon as the database can be used."""
        while True:
            try:
                return await work()
            except StorageUnavailable as error:
                log.warning("turn_waits_for_database", turn=ask.turn_id, error=str(error))
                await asyncio.sleep(RETRY_S)

    async def leave(self, ask: Ask) -> bool:
        """Let the next one in; see `Tickets.leave`. Raises StorageUnavailable."""
        left = await self._tickets.leave(ask.turn_id, self._owner)
        here = [each for each in self._waiting.values() if each.ask.place.key == ask.place.key]
        if here:
            min(here, key=lambda each: (each.ask.ts, each.ask.turn_id)).woken.set()
        return left

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
        self._expected.discard(turn)

    async def _entered(self, ask: Ask, waits: Callable[[Ask], None]) -> bool:
        thread = ask.place.key
        with self._listed(ask) as woken:
            async with self._entering:
                if fresh := await self._tickets.is_fresh(ask.turn_id):
                    self._first_attempts.add(ask.turn_id)
                entered = await self._tickets.try_enter(ask.turn_id, thread, ask.ts, self._owner)
            if fresh and not entered:
                waits(ask)
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


class TurnSlots:
    """Slots, given in the order of asking. `show_waiting` tells people of a wait; it never raises."""

    def __init__(self, limit: int, show_waiting: ShowWaiting) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._show_waiting = show_waiting
        self._waiting: set[asyncio.Task[object]] = set()

    @property
    def are_taken(self) -> bool:
        """Whether who comes now has to wait."""
        return self._slots.locked()

    @asynccontextmanager
    async def hold(self, ask: Ask, stop: StopSignal) -> AsyncIterator[None]:
        """Wait for a slot and keep it; a turn that is asked to stop needs none to end."""
        if not self._slots.locked():
            async with self._slots:
                yield
            return
        taken = False

        async def take() -> None:
            nonlocal taken
            await self._slots.acquire()
            taken = True

        # May go on into the turn, which then waits for what is being posted and posts it no more.
        showing = asyncio.create_task(self._show_waiting(ask))  # noqa: TID251  ended below
        try:
            with self._noted(), suppress(StoppedByPerson):
                await unless_stopped(stop, take())
            yield
        finally:
            if taken:
                self._slots.release()
            showing.cancel()
            await asyncio.wait({showing})

    def let_go(self) -> int:
        """Cancel the turns that wait, for whoever resumes them; how many it was."""
        for task in self._waiting:
            task.cancel()
        return len(self._waiting)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a workflow is always run by one
        self._waiting.add(task)
        try:
            yield
        finally:
            self._waiting.discard(task)
