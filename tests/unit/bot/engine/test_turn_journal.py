"""The journal of a turn, on a real database: what it replays, runs and refuses."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import JsonValue

from bot.engine import journal as journals
from bot.engine.journal import RETRIES, TurnJournal
from bot.ports.failures import StepAbandoned, StorageUnavailable
from bot.store.database import Database
from bot.store.tables import tickets
from bot.store.turn_steps import TurnSteps
from tests.fixtures_database import database, sqlite_url
from tests.held_connection import writing

__all__ = ["database", "sqlite_url"]

TURN = "turn:T1:C1:1.0"
HUGE: JsonValue = {"number": 2**128, "half": "\ud800", "nul": "\x00"}


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    return sqlite_url


@pytest.fixture
async def steps(database: Database) -> TurnSteps:
    async with writing(database) as connection:
        row = {"id": TURN, "thread": "T1:C1:1.0", "ts": "1.0", "state": "running", "owner": "me"}
        await connection.execute(tickets.insert(), row)
    return TurnSteps(database)


def says(value: JsonValue) -> Callable[[], Awaitable[JsonValue]]:
    async def run() -> JsonValue:
        return value

    return run


async def never() -> JsonValue:
    raise AssertionError("a finished step ran again")


async def resumed(steps: TurnSteps, *, gives_up: bool = False) -> TurnJournal:
    return TurnJournal(TURN, "me", steps, (await steps.past(TURN)).steps, gives_up=gives_up)


async def test_a_finished_step_is_answered_from_its_record(steps: TurnSteps) -> None:
    await TurnJournal(TURN, "me", steps).step("round:1", says(HUGE))

    assert await (await resumed(steps)).step("round:1", never) == HUGE


async def test_a_step_marked_with_next_is_recorded_with_the_next(steps: TurnSteps) -> None:
    journal = TurnJournal(TURN, "me", steps)
    await journal.step("open", says("a"), with_next=True)
    assert not (await steps.past(TURN)).steps

    await journal.step("round:1", says("b"))

    again = await resumed(steps)
    assert [await again.step("open", never), await again.step("round:1", never)] == ["a", "b"]


async def test_after_a_death_every_step_has_its_own_record(steps: TurnSteps) -> None:
    await (await resumed(steps)).step("open", says("a"), with_next=True)

    assert [step.name for step in (await steps.past(TURN)).steps] == ["open"]


async def test_parallel_steps_are_one_record_in_the_given_order(steps: TurnSteps) -> None:
    last = asyncio.Event()

    async def slow() -> JsonValue:
        await last.wait()
        return "slow"

    async def quick() -> JsonValue:
        last.set()
        return "quick"

    journal = TurnJournal(TURN, "me", steps)
    values = await journal.steps([("tool:1", slow), ("tool:2", quick)])

    assert list(values) == ["slow", "quick"]
    again = await resumed(steps)
    assert list(await again.steps([("tool:1", never), ("tool:2", never)])) == ["slow", "quick"]


async def test_an_abandoned_step_stays_abandoned_and_later_ones_run(steps: TurnSteps) -> None:
    journal = await resumed(steps, gives_up=True)
    with pytest.raises(StepAbandoned, match="round:1"):
        await journal.step("round:1", never)
    assert await journal.step("keep", says("kept")) == "kept"

    again = await resumed(steps)
    with pytest.raises(StepAbandoned, match="round:1"):
        await again.step("round:1", never)
    assert await again.step("keep", never) == "kept"


async def test_progress_ends_the_trial_and_clears_the_deaths_of_a_suspect(
    steps: TurnSteps,
) -> None:
    done: list[str] = []

    async def clear() -> None:
        done.append("cleared")
        raise StorageUnavailable("gone")

    journal = await resumed(steps)
    await journal.got_on()
    journal.recorded, journal.clear_deaths = lambda: done.append("recorded"), clear
    await journal.got_on()

    assert done == ["recorded", "cleared"]


async def test_a_turn_taken_over_elsewhere_ends_as_cancelled(
    steps: TurnSteps, database: Database
) -> None:
    journal = TurnJournal(TURN, "me", steps)
    async with writing(database) as connection:
        await connection.execute(sa.update(tickets).values(owner="successor"))

    with pytest.raises(asyncio.CancelledError):
        await journal.step("round:1", says("late"))

    assert not (await steps.past(TURN)).steps


async def test_a_step_whose_record_failed_fails_for_the_successor(
    database: Database, steps: TurnSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "FIRST_WAIT_S", 0.0)

    class Full(TurnSteps):
        is_full = True

        async def keep(self, *given: Any) -> bool:
            if self.is_full:
                raise StorageUnavailable("the disk is full")
            return await super().keep(*given)

    full = Full(database)
    journal = TurnJournal(TURN, "me", full)
    with pytest.raises(StorageUnavailable):
        await journal.step("round:1", says("said"))
    full.is_full = False
    await journal.step("keep", says("kept"))

    again = await resumed(steps)
    with pytest.raises(StorageUnavailable, match="full"):
        await again.step("round:1", never)
    assert await again.step("keep", never) == "kept"


async def test_a_step_that_differs_from_the_record_is_refused(steps: TurnSteps) -> None:
    await TurnJournal(TURN, "me", steps).step("round:1", says("a"))

    with pytest.raises(RuntimeError, match=r"round:1.*recap"):
        await (await resumed(steps)).step("recap", never)


async def names(steps: TurnSteps) -> list[str]:
    return [step.name for step in (await steps.past(TURN)).steps]


async def test_a_step_is_recorded_when_the_next_runs(steps: TurnSteps) -> None:
    async def recorded() -> JsonValue:
        return list[JsonValue](await names(steps))

    journal = TurnJournal(TURN, "me", steps)
    await journal.step("round:1", says("a"))
    assert await names(steps) == ["round:1"]

    assert list(await journal.steps([("tool:1", recorded)])) == [["round:1"]]


async def test_pending_steps_are_recorded_at_the_handover(steps: TurnSteps) -> None:
    journal = TurnJournal(TURN, "me", steps)
    await journal.step("open", says("lines"), with_next=True)

    await journal.let_go()

    again = await resumed(steps)
    assert await again.step("open", never) == "lines"


async def test_a_turn_taken_over_elsewhere_records_nothing(
    steps: TurnSteps, database: Database
) -> None:
    journal = TurnJournal(TURN, "me", steps)
    await journal.step("open", says("lines"), with_next=True)
    async with writing(database) as connection:
        await connection.execute(sa.update(tickets).values(owner="successor"))

    await journal.let_go()

    assert await names(steps) == []


async def test_a_turn_is_released_when_the_database_is_silent(
    database: Database, steps: TurnSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck(TurnSteps):
        async def keep(self, *_: Any) -> bool:
            await asyncio.Event().wait()
            return True

    monkeypatch.setattr(journals, "LET_GO_S", 0.05)
    journal = TurnJournal(TURN, "me", Stuck(database))
    await journal.step("open", says("lines"), with_next=True)

    await asyncio.wait_for(journal.let_go(), 5)

    assert await names(steps) == []


async def test_a_database_failure_in_one_of_several_steps_is_reported_once(
    steps: TurnSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "FIRST_WAIT_S", 0.0)
    tries = 0

    async def fails() -> JsonValue:
        nonlocal tries
        tries += 1
        raise StorageUnavailable("the disk is full")

    with pytest.raises(StorageUnavailable, match="full"):
        await TurnJournal(TURN, "me", steps).steps([("tool:1", fails), ("tool:2", says("lines"))])
    assert tries == RETRIES
