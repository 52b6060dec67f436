"""The journal of a turn: records of our own, each in one transaction with the rows of its step.

The workflow library starts a turn, finds it again after a crash and ends it. A step of its own costs
two transactions and four statements, and knows nothing of our rows; for decisions, which are few, it
keeps them all the same (`bot.engine.library`).
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from pydantic import JsonValue

from bot.engine.library import (
    RETRIES,
    DurableJournal,
    Run,
    given_up,
    is_worth_retrying,
    value_of,
)
from bot.ports.durability import Journal
from bot.ports.failures import StorageUnavailable, SurfaceFailed
from bot.store.step_rows import StepRows, gathered
from bot.store.tickets import Tickets
from bot.store.turn_steps import Step, TurnSteps

DEATHS_AT_A_STEP: Final = 3  # of the process that ran it; then the step is given up
FIRST_WAIT_S: Final = 0.5  # then doubled: half a minute, beside the database's own patience
_FAILED: Final = "kortex:failed"

T = TypeVar("T")


class TurnJournals:
    """Of the turns whose tickets are that owner's."""

    def __init__(self, tickets: Tickets, steps: TurnSteps, owner: str) -> None:
        self._tickets = tickets
        self._steps = steps
        self._owner = owner

    async def of(self, turn: str, *, fresh: bool) -> Journal | None:
        """What it goes on from; None of one that was carried through before its process died.

        `fresh`: nobody was here before. A death is counted. Raises StorageUnavailable.
        """
        if fresh:
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
    ) -> None:
        self._turn = turn
        self._owner = owner
        self._steps = steps
        self._kept = {step.n: step for step in kept or ()}
        # A process died with it: from now on every step is told from the one before it.
        self._waits = kept is None
        self._gives_up = gives_up
        self._begun = 0
        self._waiting: list[Step] = []
        self._rows = StepRows()

    async def step(self, name: str, run: Run, *, with_next: bool = False) -> JsonValue:
        """One step, recorded. Raises GivenUp, StorageUnavailable, and what the step raises."""
        n, self._begun = self._begun, self._begun + 1
        if (kept := self._kept.get(n)) is not None:
            return _replayed(kept, name)
        try:
            value = await self._value(name, run)
            self._waiting.append(_step(n, name, value))
            if not (with_next and self._waits):
                await _patiently(self._record)
        except StorageUnavailable as error:
            # Whoever goes on has to come by here: it failed for them, too.
            self._waiting = [step for step in self._waiting if step.n != n]
            self._waiting.append(_step(n, name, {_FAILED: str(error)}))
            raise
        return value_of(value)

    async def steps(self, parts: Sequence[tuple[str, Run]]) -> Sequence[JsonValue]:
        """All at once, and one record: cut off, all of them run again."""

        async def every() -> JsonValue:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_patiently(run)) for _, run in parts]
            return [task.result() for task in tasks]

        values = await self.step(_name_of([name for name, _ in parts]), every)
        assert isinstance(values, list)  # noqa: S101 - written three lines up
        return values

    async def _value(self, name: str, run: Run) -> JsonValue:
        if self._gives_up:
            self._gives_up = False
            return given_up(name)
        return await _patiently(lambda: self._run(run))

    async def _run(self, run: Run) -> JsonValue:
        with gathered() as rows:
            try:
                return await run()
            finally:
                self._rows.add(rows)  # what was paid was paid, also where the step fails after it

    async def _record(self) -> None:
        if not await self._steps.keep(self._turn, self._owner, self._waiting, self._rows):
            raise asyncio.CancelledError("the turn is somebody else's")
        self._waiting, self._rows = [], StepRows()


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
