"""The queues of a turn before it runs: its place in the thread, a slot, and a trial after a crash.

A thread's order holds over all replicas, oldest message first. Slots and trials are per process.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import structlog

from bot.chat.stopping import StoppedByPerson, unless_stopped
from bot.domain.ids import TurnId
from bot.domain.session import Ask
from bot.ports.durability import StopSignal
from bot.ports.failures import StorageUnavailable
from bot.store.tickets import Tickets

T = TypeVar("T")
log = structlog.get_logger(__name__)

# One read for all turns that wait here, and none while no turn waits.
LOOK_AGAIN_S: Final = 0.25
RETRY_S: Final = 1.0
PLACED_S: Final = 1.0
ENTERING: Final = 4  # at once, so that running turns get their share of the database
MAX_LIVE_TURNS: Final = 512
MAX_LIVE_TURNS_SQLITE: Final = 50  # SQLite has one writer; a turn needs five to ten transactions
# After a crash. A suspect that dies again waits before its next trial, and longer each time.
TRIAL_S: Final = 1.0
TRIAL_GROWTH: Final = 8
PAUSE_S: Final = 1.0
PAUSE_GROWTH: Final = 4
LONGEST_TRIAL_S: Final = 60.0
ShowWaiting = Callable[[Ask], Coroutine[Any, Any, None]]
BeginTrial = Callable[[Ask, bool], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Waiting:
    ask: Ask
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class ThreadQueue:
    """The turns of one replica that wait in their threads. `owner` is the replica."""

    def __init__(self, tickets: Tickets, owner: str) -> None:
        self._tickets = tickets
        self._owner = owner
        self._entering = asyncio.Semaphore(ENTERING)
        self._waiting: dict[TurnId, _Waiting] = {}
        self._anybody = asyncio.Event()
        self._first_attempts: set[TurnId] = set()
        self._placed: dict[TurnId, asyncio.Event] = {}

    @contextmanager
    def expected(self, turn: TurnId) -> Iterator[asyncio.Event]:
        """An event that is set when the turn has its place in its thread on this replica."""
        placed = self._placed.setdefault(turn, asyncio.Event())
        try:
            yield placed
        finally:
            self._placed.pop(turn, None)

    async def has_place(self, turn: TurnId, placed: asyncio.Event) -> None:
        """Wait until the turn has its place, here or on another replica, for `PLACED_S` at most."""
        with suppress(TimeoutError, StorageUnavailable):
            async with asyncio.timeout(PLACED_S):
                while not await _is_set(placed, LOOK_AGAIN_S):
                    if await self._tickets.is_placed(turn):
                        return

    async def enter(self, ask: Ask, waits: Callable[[Ask], None] = lambda _ask: None) -> bool:
        """Wait until this turn is the oldest of its thread. True for its first attempt anywhere.

        A database that is busy or gone is waited for, because the turn was accepted. `waits` is
        called when a first attempt has to wait for earlier turns. Raises Superseded.
        """
        return await self.patiently(ask, lambda: self._entered(ask, waits))

    @staticmethod
    async def patiently(ask: Ask, work: Callable[[], Awaitable[T]]) -> T:
        """The result of `work`, which is retried while the database cannot be used."""
        while True:
            try:
                return await work()
            except StorageUnavailable as error:
                log.warning("turn.waits_for_database", turn=ask.turn_id, error=str(error))
                await asyncio.sleep(RETRY_S)

    async def leave(self, ask: Ask) -> None:
        """Free the thread for its next turn. Raises StorageUnavailable."""
        await self._tickets.leave(ask.turn_id, self._owner)
        here = [each for each in self._waiting.values() if each.ask.place.key == ask.place.key]
        if here:
            min(here, key=lambda each: (each.ask.ts, each.ask.turn_id)).woken.set()

    async def watch(self) -> None:
        """Wake the turns that were unblocked on other replicas, until cancelled."""
        while True:
            await self._anybody.wait()
            await asyncio.sleep(LOOK_AGAIN_S)
            with suppress(StorageUnavailable):
                blocked = await self._tickets.blocked(self._owner)
                for turn, waiting in self._waiting.items():
                    if turn not in blocked:
                        waiting.woken.set()

    def take_first_look(self, ask: Ask) -> bool:
        """Whether the turn may post without searching for an earlier post. True once at most.

        Only a first attempt may: an earlier attempt may have posted without seeing the answer.
        """
        if ask.turn_id not in self._first_attempts:
            return False
        self._first_attempts.discard(ask.turn_id)
        return True

    def forget(self, turn: TurnId) -> None:
        """Forget a turn that ended, or that another replica runs."""
        self._first_attempts.discard(turn)

    async def _entered(self, ask: Ask, waits: Callable[[Ask], None]) -> bool:
        given = (ask.turn_id, ask.place.key, ask.ts, self._owner)
        with self._listed(ask) as woken:
            async with self._entering:
                attempt = await self._tickets.try_enter(*given)
            if placed := self._placed.get(ask.turn_id):
                placed.set()
            is_first, entered = attempt.is_first, attempt.entered
            if is_first:
                self._first_attempts.add(ask.turn_id)
                if not entered:
                    waits(ask)
            while not entered:
                self._anybody.set()
                await woken.wait()
                woken.clear()
                entered = (await self._tickets.try_enter(*given)).entered
        return is_first

    @contextmanager
    def _listed(self, ask: Ask) -> Iterator[asyncio.Event]:
        waiting = self._waiting[ask.turn_id] = _Waiting(ask)
        try:
            yield waiting.woken
        finally:
            if self._waiting.get(ask.turn_id) is waiting:
                del self._waiting[ask.turn_id]
            if not self._waiting:
                self._anybody.clear()


async def _is_set(event: asyncio.Event, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await event.wait()
    except TimeoutError:
        return False


class TurnSlots:
    """Slots for running turns, first come first served. `show_waiting` must not raise."""

    def __init__(self, limit: int, show_waiting: ShowWaiting) -> None:
        self._slots = asyncio.Semaphore(limit)
        self._show_waiting = show_waiting
        self._waiting: set[asyncio.Task[object]] = set()

    @asynccontextmanager
    async def hold(self, ask: Ask, stop: StopSignal) -> AsyncIterator[None]:
        """Wait for a slot and keep it. A turn that a person stops ends without one."""
        if not self._slots.locked():
            async with self._slots:
                yield
            return
        taken = False

        async def take() -> None:
            nonlocal taken
            await self._slots.acquire()
            taken = True

        # The notice may still be on its way when the turn begins, which then replaces it.
        showing = asyncio.create_task(self._show_waiting(ask))  # noqa: TID251  ended below
        try:
            with self.noted(), suppress(StoppedByPerson):
                await unless_stopped(stop, take())
            yield
        finally:
            if taken:
                self._slots.release()
            showing.cancel()
            await asyncio.wait({showing})

    def let_go(self) -> int:
        """Cancel the waiting turns, for another replica to resume. Returns how many."""
        for task in self._waiting:
            task.cancel()
        return len(self._waiting)

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note that the current turn only waits, so that `let_go` cancels it."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a workflow always runs in a task
        self._waiting.add(task)
        try:
            yield
        finally:
            self._waiting.discard(task)


class Trials:
    """Starts suspects, turns after a crash of their process, one at a time.

    A suspect's trial ends when its next step is recorded, and at the latest after a time that grows
    with each death. Until then no other turn starts in this process. The suspect is alone as long
    as no other turn runs that has recorded nothing since it began here: a crash then has one
    suspect.
    """

    def __init__(self, slots: TurnSlots, begin: BeginTrial) -> None:
        """`begin` records whether the turn is alone, and that no other one is. It must not raise."""
        self._slots = slots
        self._begin = begin
        self._turns = asyncio.Lock()
        self._no_trial = asyncio.Event()
        self._no_trial.set()
        self._unproven: set[TurnId] = set()  # turns here that have recorded nothing
        self._alone: TurnId | None = None
        self._beginning = asyncio.Lock()

    @asynccontextmanager
    async def of(
        self, ask: Ask, deaths: int, stop: StopSignal
    ) -> AsyncIterator[Callable[[], None]]:
        """Wait until this turn may start; yields the call that ends its trial.

        A turn that a person stops starts at once, to end.
        """
        timer: asyncio.TimerHandle | None = None
        held = False

        async def may_start() -> None:
            nonlocal held
            if not deaths:
                await self._no_trial.wait()
                return
            await asyncio.sleep(_pause_s(deaths))
            await self._turns.acquire()
            held = True
            self._no_trial.clear()

        def end() -> None:
            nonlocal held
            if held:
                held = False
                self._no_trial.set()
                self._turns.release()

        def recorded() -> None:
            self._unproven.discard(ask.turn_id)
            if self._alone == ask.turn_id:
                self._alone = None
            end()

        try:
            if deaths or not self._no_trial.is_set():
                with self._slots.noted(), suppress(StoppedByPerson):
                    await unless_stopped(stop, may_start())
            await self._began(ask, is_suspect=held)
            if held:
                loop = asyncio.get_running_loop()
                timer = loop.call_later(_trial_s(deaths), end)
            yield recorded
        finally:
            if timer is not None:
                timer.cancel()
            recorded()

    async def _began(self, ask: Ask, *, is_suspect: bool) -> None:
        async with self._beginning:
            self._unproven.add(ask.turn_id)
            if not (is_suspect or self._alone):
                return
            is_alone = is_suspect and len(self._unproven) == 1
            await self._begin(ask, is_alone)
            self._alone = ask.turn_id if is_alone else None


def _trial_s(deaths: int) -> float:
    return _growing(TRIAL_S, TRIAL_GROWTH, deaths)


def _pause_s(deaths: int) -> float:
    return _growing(PAUSE_S, PAUSE_GROWTH, deaths - 1) if deaths > 1 else 0.0


def _growing(first_s: float, growth: int, times: int) -> float:
    grown: float = first_s * growth ** min(times - 1, 9)
    return min(grown, LONGEST_TRIAL_S)
