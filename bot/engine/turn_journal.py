"""The journal of a turn: records of our own, each in one transaction with the rows of its step.

The workflow library starts a turn, finds it again after a crash and ends it. A step of its own costs
two transactions and four statements, and knows nothing of our rows; for decisions, which are few, it
keeps them all the same (`bot.engine.library`).
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeVar

from pydantic import JsonValue

from bot.chat.traced import TurnBody
from bot.domain.session import Ask
from bot.engine.library import (
    RETRIES,
    DurableJournal,
    Run,
    all_of,
    given_up,
    is_worth_retrying,
    value_of,
)
from bot.engine.waiting import Entered
from bot.ports.durability import Journal
from bot.ports.failures import StorageUnavailable, SurfaceFailed
from bot.store.step_rows import Entry, StepRows, gathered
from bot.store.tickets import Superseded, Tickets
from bot.store.turn_steps import Step, TurnSteps

DEATHS_AT_A_STEP: Final = 3  # of the process that ran it; then the step is given up
FIRST_WAIT_S: Final = 0.5  # then doubled: half a minute, beside the database's own patience
# What took longer to read is on record at once, and all that was read after this long: a crash costs
# the rest, and the trail tells of a call no later.
READ_AGAIN_S: Final = 2.0
LET_GO_S: Final = 2.0  # for what waits, of the five seconds that a turn has to end
_FAILED: Final = "kortex:failed"

T = TypeVar("T")


class TurnJournals:
    """Of the turns whose tickets are that owner's."""

    def __init__(self, tickets: Tickets, steps: TurnSteps, owner: str) -> None:
        self._tickets = tickets
        self._steps = steps
        self._owner = owner

    async def of(self, turn: str, entered: Entered) -> Journal | None:
        """What it goes on from; None of one that was carried through before its process died.

        A death is counted. Raises StorageUnavailable.
        """
        if entered is Entered.WITH_FIRST_STEP:
            return TurnJournal(
                turn, self._owner, self._steps, entry=Entry(self._tickets.entry(turn, self._owner))
            )
        if entered is Entered.FRESH:
            return TurnJournal(turn, self._owner, self._steps)
        past = await self._steps.past(turn)
        if past.is_over:
            return None
        gives_up = await self._tickets.count_death(turn) >= DEATHS_AT_A_STEP
        if past.in_engine:
            return DurableJournal(gives_up=gives_up)
        return TurnJournal(turn, self._owner, self._steps, past.steps, gives_up=gives_up)


class TurnJournal(Journal):
    """See `Journal`. `kept` is on record already, by whoever owned the turn before; None: nobody did.

    With `gives_up` the first step that is not on record does not run: it is recorded as given up and
    raised as GivenUp, now and in every replay. Those after it run.

    A turn that others have taken over ends here as if it were cancelled.
    """

    def __init__(
        self,
        turn: str,
        owner: str,
        steps: TurnSteps,
        kept: Sequence[Step] | None = None,
        *,
        gives_up: bool = False,
        entry: Entry | None = None,
    ) -> None:
        self._turn = turn
        self._owner = owner
        self._steps = steps
        self._kept = {step.n: step for step in kept or ()}
        # A process died with it: from now on every step is told from the one before it.
        self._waits = kept is None
        self._gives_up = gives_up
        self._entry = entry
        self._begun = 0
        self._waiting: list[Step] = []
        self._was_read = False  # some of what waits, and is not to wait for long
        self._rows = StepRows()

    async def step(self, name: str, run: Run, *, with_next: bool = False) -> JsonValue:
        """One step, recorded. Raises GivenUp, StorageUnavailable, and what the step raises."""

        async def carried() -> JsonValue:
            return await _patiently(lambda: self._run(run))

        return await self._carried_out(name, carried, lambda: with_next)

    async def _carried_out(self, name: str, run: Run, with_next: Callable[[], bool]) -> JsonValue:
        n, self._begun = self._begun, self._begun + 1
        if (kept := self._kept.get(n)) is not None:
            return _replayed(kept, name)
        try:
            if self._was_read:
                async with self._recording_soon():
                    value = await self._value(name, run)
            else:
                value = await self._value(name, run)
            self._waiting.append(_step(n, name, value))
            if not (with_next() and self._waits):
                await _patiently(self._record)
        except Superseded as error:
            raise asyncio.CancelledError("the turn is somebody else's") from error
        except StorageUnavailable as error:
            # Whoever goes on has to come by here: it failed for them, too.
            self._waiting = [step for step in self._waiting if step.n != n]
            self._waiting.append(_step(n, name, {_FAILED: str(error)}))
            raise
        return value_of(value)

    async def steps(
        self, parts: Sequence[tuple[str, Run]], *, only_read: bool = False
    ) -> Sequence[JsonValue]:
        """All at once, and one record: cut off, all of them run again."""
        began = time.monotonic()

        async def every() -> JsonValue:
            return await all_of(_patiently(run) for _, run in parts)

        def with_next() -> bool:
            return only_read and time.monotonic() - began <= READ_AGAIN_S

        name = _name_of([name for name, _ in parts])
        values = await self._carried_out(name, lambda: self._run(every), with_next)
        self._was_read = bool(self._waiting)
        assert isinstance(values, list)  # noqa: S101 - written three lines up
        return values

    async def let_go(self) -> None:
        """Record what waits, for whoever goes on with the turn; tried once, for `LET_GO_S` at most."""
        if not (self._waiting or self._rows):
            return
        with suppress(StorageUnavailable, Superseded, TimeoutError):
            async with asyncio.timeout(LET_GO_S):
                await self._keep(self._waiting, self._rows)

    async def _value(self, name: str, run: Run) -> JsonValue:
        if self._gives_up:
            self._gives_up = False
            return given_up(name)
        return await run()

    async def _run(self, run: Run) -> JsonValue:
        with gathered(self._entry) as rows:
            try:
                return await run()
            finally:
                self._rows.add(rows)  # what was paid was paid, also where the step fails after it

    @asynccontextmanager
    async def _recording_soon(self) -> AsyncIterator[None]:
        """What was read is on record soon, however long the step within takes."""
        begun: list[asyncio.Task[None]] = []

        def begin() -> None:
            begun.append(asyncio.create_task(self._record_now()))  # noqa: TID251  ended below

        # A task only then: most steps end before.
        soon = asyncio.get_running_loop().call_later(READ_AGAIN_S, begin)
        try:
            yield
        finally:
            soon.cancel()
            for recording in begun:
                recording.cancel()
                await asyncio.wait({recording})

    async def _record_now(self) -> None:
        with suppress(StorageUnavailable):  # then it goes with the step's own
            await self._record()

    async def _record(self) -> None:
        steps, rows = self._waiting, self._rows
        # Others come in meanwhile.
        self._waiting, self._rows = [], StepRows()
        try:
            is_mine = await self._keep(steps, rows)
        except BaseException:
            rows.add(self._rows)
            self._waiting, self._rows = [*steps, *self._waiting], rows
            raise
        if not is_mine:
            raise asyncio.CancelledError("the turn is somebody else's")
        self._was_read = False

    async def _keep(self, steps: Sequence[Step], rows: StepRows) -> bool:
        return await self._steps.keep(self._turn, self._owner, steps, rows, self._entry)


def ends_recorded(body: TurnBody) -> TurnBody:
    """What waits for a record has one when the turn is cancelled: it is handed over, or given up."""

    async def answer(ask: Ask, journal: Journal) -> object:
        try:
            return await body(ask, journal)
        except asyncio.CancelledError:
            if isinstance(journal, TurnJournal):
                await journal.let_go()
            raise

    return answer


def _step(n: int, name: str, value: JsonValue) -> Step:
    # Not orjson: what tools return may hold lone surrogates and integers of any size.
    return Step(n, name, json.dumps(value, separators=(",", ":")))


def _name_of(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


async def _patiently(work: Callable[[], Awaitable[T]]) -> T:
    wait_s = FIRST_WAIT_S
    for _ in range(RETRIES - 1):
        try:
            return await work()
        except (StorageUnavailable, SurfaceFailed) as error:
            if not is_worth_retrying(error):
                raise
        await asyncio.sleep(wait_s)
        wait_s *= 2
    return await work()


def _replayed(kept: Step, name: str) -> JsonValue:
    if kept.name != name:
        raise RuntimeError(f"step {kept.n} is on record as {kept.name}, and is now {name}")
    value: JsonValue = json.loads(kept.value)
    if isinstance(value, dict) and _FAILED in value:
        raise StorageUnavailable(str(value[_FAILED]))
    return value_of(value)
