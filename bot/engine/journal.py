"""Durable steps: rows of Kortex for turns, DBOS's own records for decisions.

A step of a turn is recorded in one transaction with the rows that the step wrote. DBOS starts a
turn, finds it again after a crash and ends it. Decisions are few and use DBOS's steps.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple, TypeVar

from dbos import DBOS, StepOptions
from pydantic import JsonValue

from bot.ports.durability import Journal
from bot.ports.failures import StepAbandoned, StorageUnavailable, SurfaceFailed
from bot.store.step_rows import StepRows, gathered
from bot.store.tickets import Tickets
from bot.store.turn_steps import Step, TurnSteps

# Deaths of the process at one step of a turn that ran as the only suspect; then Kortex gives the step up.
# Before each of them the process has to live longer without the turn, which rules out most other causes.
DEATHS_ALONE: Final = 3
RETRIES: Final = 7
FIRST_WAIT_S: Final = 0.5  # doubled each time: half a minute in all
LET_GO_S: Final = 2.0  # of the five seconds that a cancelled turn has to end
_FAILED: Final = "kortex:failed"
_GIVEN_UP: Final = "kortex:given-up"

Run = Callable[[], Awaitable[JsonValue]]
T = TypeVar("T")


class Opened(NamedTuple):
    """A turn's journal. `deaths` of its process make it a suspect: `bot.engine.queue.Trials`."""

    journal: "TurnJournal | DurableJournal"
    deaths: int = 0


class TurnJournals:
    """Opens the journals of turns with tickets of `owner`."""

    def __init__(self, tickets: Tickets, steps: TurnSteps, owner: str) -> None:
        self._tickets = tickets
        self._steps = steps
        self._owner = owner

    async def open(self, turn: str, *, is_first: bool) -> Opened | None:
        """The journal of a turn; None for a turn that ended before its process died.

        `is_first`: no attempt of this turn ran before. Otherwise the death of the last attempt is
        counted. Raises StorageUnavailable.
        """
        if is_first:
            return Opened(TurnJournal(turn, self._owner, self._steps))
        past = await self._steps.past(turn)
        if past.is_over:
            return None
        deaths = await self._tickets.count_death(turn)
        gives_up = deaths.alone >= DEATHS_ALONE
        counted = min(deaths.counted, 1) if gives_up else deaths.counted
        if past.in_engine:
            return Opened(DurableJournal(gives_up=gives_up), counted)
        kept = TurnJournal(turn, self._owner, self._steps, past.steps, gives_up=gives_up)
        return Opened(kept, counted)


class _Progress(Journal):
    """The progress of a turn that may be a suspect, for its trial and for the count of its deaths."""

    def __init__(self) -> None:
        self.recorded: Callable[[], None] = lambda: None  # called after each record
        self.clear_deaths: Callable[[], Awaitable[None]] | None = None  # of a suspect

    async def got_on(self) -> None:
        """See `Journal`. Without the database the crashes still count."""
        self.recorded()
        if self.clear_deaths is not None:
            with suppress(StorageUnavailable):
                await self.clear_deaths()


class TurnJournal(_Progress):
    """The steps of one turn. `kept` are those on record; None for a first attempt.

    With `gives_up` the first step that is not on record does not run. It is recorded as given up and
    raises StepAbandoned, now and in every replay. Later steps run.

    The turn is cancelled when another replica has taken it over.
    """

    def __init__(
        self,
        turn: str,
        owner: str,
        steps: TurnSteps,
        kept: Sequence[Step] | None = None,
        *,
        gives_up: bool = False,
    ) -> None:
        super().__init__()
        self._turn = turn
        self._owner = owner
        self._steps = steps
        self._kept = {step.n: step for step in kept or ()}
        # After a crash every step is recorded by itself, to see which step the process dies at.
        self._may_wait = kept is None
        self._gives_up = gives_up
        self._begun = 0
        self._waiting: list[Step] = []
        self._rows = StepRows()

    async def step(self, name: str, run: Run, *, with_next: bool = False) -> JsonValue:
        """One step, recorded. Raises StepAbandoned, StorageUnavailable, and errors of the step."""

        async def carried() -> JsonValue:
            return await _patiently(lambda: self._run(run))

        return await self._carried_out(name, carried, may_wait=with_next and self._may_wait)

    async def steps(self, parts: Sequence[tuple[str, Run]]) -> Sequence[JsonValue]:
        """Several steps at once, as one record: after a crash among them all run again."""

        async def every() -> JsonValue:
            return await all_of(_patiently(run) for _, run in parts)

        name = _name_of([name for name, _ in parts])
        values = await self._carried_out(name, lambda: self._run(every), may_wait=False)
        assert isinstance(values, list)  # noqa: S101 - written four lines up
        return values

    async def let_go(self) -> None:
        """Record the waiting steps and costs of a cancelled turn, once, within `LET_GO_S`."""
        if self._waiting or self._rows:
            with suppress(StorageUnavailable, TimeoutError):
                async with asyncio.timeout(LET_GO_S):
                    await self._steps.keep(self._turn, self._owner, self._waiting, self._rows)

    async def _carried_out(self, name: str, run: Run, *, may_wait: bool) -> JsonValue:
        n, self._begun = self._begun, self._begun + 1
        if (kept := self._kept.get(n)) is not None:
            return _replayed(kept, name)
        try:
            value = await self._value(name, run)
            self._waiting.append(_step(n, name, value))
            if not may_wait:
                await _patiently(self._record)
        except StorageUnavailable as error:
            # Recorded as failed with the next step, so that a replay takes the same way.
            self._waiting = [step for step in self._waiting if step.n != n]
            self._waiting.append(_step(n, name, {_FAILED: str(error)}))
            raise
        return value_of(value)

    async def _value(self, name: str, run: Run) -> JsonValue:
        if self._gives_up:
            self._gives_up = False
            return abandoned(name)
        return await run()

    async def _run(self, run: Run) -> JsonValue:
        with gathered() as rows:
            try:
                return await run()
            finally:
                self._rows.add(rows)  # the cost of a round counts even if the step fails afterwards

    async def _record(self) -> None:
        if not await self._steps.keep(self._turn, self._owner, self._waiting, self._rows):
            raise asyncio.CancelledError("another replica has taken over the turn")
        self._waiting, self._rows = [], StepRows()
        self.recorded()


class DurableJournal(_Progress):
    """`Journal` on DBOS's own steps, inside a workflow; `gives_up` as in `TurnJournal`."""

    def __init__(self, *, gives_up: bool = False) -> None:
        super().__init__()
        self._gives_up = gives_up

    async def step(
        self,
        name: str,
        run: Run,
        *,
        with_next: bool = False,  # noqa: ARG002 - each step has a record of its own
    ) -> JsonValue:
        """One step, recorded. Raises StepAbandoned."""
        value = await DBOS.run_step_async(_options(name), self._body(name, run))
        self.recorded()
        return value_of(value)

    async def steps(self, parts: Sequence[tuple[str, Run]]) -> Sequence[JsonValue]:
        """Several steps at once. Their ids are reserved in order, so that a replay finds each."""
        reserved = [(DBOS.reserve_step(), name, self._body(name, run)) for name, run in parts]
        running = (slot.run_async(_options(name), body) for slot, name, body in reserved)
        return [value_of(value) for value in await all_of(running)]

    async def let_go(self) -> None:
        """Nothing to do: each step was recorded as it ended."""

    def _body(self, name: str, run: Run) -> Callable[[], Coroutine[None, None, JsonValue]]:
        gives_up = self._gives_up  # read once, for all steps that run at once

        async def body() -> JsonValue:
            if gives_up:
                self._gives_up = False
                return abandoned(name)
            return await run()

        return body


async def all_of(running: Iterable[Awaitable[JsonValue]]) -> list[JsonValue]:
    """Their values, in order. Raises the first error once all have ended."""

    async def one(each: Awaitable[JsonValue]) -> JsonValue:
        return await each

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(each)) for each in running]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def abandoned(name: str) -> JsonValue:
    return {_GIVEN_UP: name}


def value_of(recorded: JsonValue) -> JsonValue:
    """The value of a recorded step. Raises StepAbandoned."""
    if isinstance(recorded, dict) and _GIVEN_UP in recorded:
        raise StepAbandoned(str(recorded[_GIVEN_UP]))
    return recorded


def is_worth_retrying(error: BaseException) -> bool:
    """Whether a step that failed with this error is retried."""
    return isinstance(error, StorageUnavailable) or (
        isinstance(error, SurfaceFailed) and error.retryable
    )


def _options(name: str) -> StepOptions:
    return StepOptions(
        name=name,
        retries_allowed=True,
        max_attempts=RETRIES,
        interval_seconds=FIRST_WAIT_S,
        should_retry=is_worth_retrying,
    )


def _step(n: int, name: str, value: JsonValue) -> Step:
    # Not orjson: results of tools may hold lone surrogates and integers of any size.
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
