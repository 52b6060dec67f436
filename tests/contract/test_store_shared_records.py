"""Records of several turns that are ready at the same time: one transaction, separate fates."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.store.database import POSTGRESQL_CONNECTIONS, Database
from bot.store.dialect import Work, lock_audit
from bot.store.sessions import StoredSessions
from bot.store.step_rows import StepRows
from bot.store.tables import audit, tickets
from bot.store.tickets import Tickets
from bot.store.turn_steps import MOST_TOGETHER, Step, TurnSteps
from tests.fixtures_database import database, database_url, other
from tests.held_connection import reading, writing
from tools.redactor import Redacted

__all__ = ["database", "database_url", "other"]

AT = datetime(2026, 11, 28, tzinfo=UTC)
STEP = Step(0, "round:1", "1")


@dataclass
class Writer:
    """A record whose rows are written once `go` is set; `began` is set as it is written."""

    began: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)

    async def write(self, _connection: AsyncConnection) -> None:
        self.began.set()
        await self.go.wait()


def ask(number: int) -> Ask:
    ts = MessageTs(f"17000000{number:02}.000100")
    place = Place(TeamId("T1"), ChannelId("C1"), ts)
    return Ask(place, ts, Person(TeamId("T1"), UserId("U1")), Redacted("why?"))


def paid(turn: str) -> AuditEvent:
    return AuditEvent(AuditKind.MODEL_CALL, "U1", {"turn": turn}, key=turn)


@pytest.fixture
async def steps(database: Database) -> TurnSteps:
    return TurnSteps(database)


async def hold(database: Database, *turns: str) -> None:
    rows = [
        {"id": turn, "thread": turn, "ts": "1", "state": "running", "owner": "me"} for turn in turns
    ]
    async with writing(database) as connection:
        await connection.execute(tickets.insert(), rows)


async def written(database: Database, steps: TurnSteps, turns: list[str]) -> list[str]:
    """Those of the turns that have their step and their row of the audit log; neither alone is right."""
    async with reading(database) as connection:
        told = set(await connection.scalars(sa.select(audit.c.key)))
    kept = {turn for turn in turns if (await steps.past(turn)).steps}
    assert kept == told & set(turns)
    return sorted(kept)


@contextmanager
def commits() -> Iterator[list[sa.Connection]]:
    seen: list[sa.Connection] = []

    def committed(connection: sa.Connection) -> None:
        seen.append(connection)

    sa.event.listen(sa.Engine, "commit", committed)
    try:
        yield seen
    finally:
        sa.event.remove(sa.Engine, "commit", committed)


async def test_records_ready_during_a_write_share_a_transaction(
    database: Database, steps: TurnSteps
) -> None:
    turns = [f"t{number:02}" for number in range(2 + MOST_TOGETHER)]
    await hold(database, *turns)
    first = Writer()
    with commits() as seen:
        async with asyncio.TaskGroup() as group:
            rows = StepRows([first.write], [paid(turns[0])])
            tasks = [group.create_task(steps.keep(turns[0], "me", [STEP], rows))]
            await first.began.wait()
            tasks += [
                group.create_task(steps.keep(turn, "me", [STEP], StepRows([], [paid(turn)])))
                for turn in turns[1:]
            ]
            await asyncio.sleep(0)
            first.go.set()
    assert all(task.result() for task in tasks)
    assert await written(database, steps, turns) == turns
    assert len(seen) == 3


async def test_turns_that_record_shortly_after_another_share_a_transaction(
    database: Database, steps: TurnSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.turn_steps.SHARE_S", 2.0)
    turns = ["t1", "t2", "t3"]
    await hold(database, *turns)
    with commits() as seen:
        assert await steps.keep("t1", "me", [STEP], StepRows([], [paid("t1")]))
        kept = await asyncio.gather(
            *(steps.keep(turn, "me", [STEP], StepRows([], [paid(turn)])) for turn in turns[1:])
        )
    assert kept == [True, True]
    assert len(seen) == 2
    assert await written(database, steps, turns) == turns


async def test_a_turn_that_records_alone_never_waits(
    database: Database, steps: TurnSteps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.store.turn_steps.SHARE_S", 3600.0)
    await hold(database, "t1")
    async with asyncio.timeout(30):
        for n in range(3):
            assert await steps.keep("t1", "me", [Step(n, "round", "1")], StepRows())


@pytest.mark.parametrize("error", [ValueError("a bug"), sa.exc.InvalidRequestError("no table")])
async def test_a_record_that_cannot_be_written_fails_alone(
    database: Database, steps: TurnSteps, error: Exception
) -> None:
    async def fails(_connection: AsyncConnection) -> None:
        raise error

    turns = ["t1", "t2", "t3", "t4"]
    await hold(database, *turns)
    works: dict[str, list[Work[None]]] = {"t3": [fails]}
    found = await asyncio.gather(
        *(steps.keep(t, "me", [STEP], StepRows(works.get(t, []), [paid(t)])) for t in turns),
        return_exceptions=True,
    )
    assert found == [True, True, error, True]
    assert await written(database, steps, turns) == ["t1", "t2", "t4"]


async def test_a_turn_that_lost_its_ticket_writes_nothing_and_the_other_turns_do(
    database: Database, steps: TurnSteps
) -> None:
    turns = ["t1", "t2", "t3"]
    await hold(database, "t1", "t3")
    kept = await asyncio.gather(
        *(steps.keep(turn, "me", [STEP], StepRows([], [paid(turn)])) for turn in turns)
    )
    assert kept == [True, False, True]
    assert await written(database, steps, turns) == ["t1", "t3"]


@pytest.mark.parametrize("cancelled", [0, 1], ids=["it writes", "it waits"])
async def test_a_cancelled_turn_leaves_the_records_of_other_turns(
    database: Database, steps: TurnSteps, cancelled: int
) -> None:
    turns = ["t0", "t1", "t2", "t3"]
    await hold(database, *turns)
    first = Writer()
    rows = {"t0": StepRows([first.write], [paid("t0")])}
    async with asyncio.TaskGroup() as group:
        tasks = []
        for turn in turns:
            given = rows.get(turn) or StepRows([], [paid(turn)])
            tasks.append(group.create_task(steps.keep(turn, "me", [STEP], given)))
            await first.began.wait()
        tasks[cancelled].cancel()
        await asyncio.wait({tasks[cancelled]})
        first.go.set()
    others = [turn for number, turn in enumerate(turns) if number != cancelled]
    assert tasks[cancelled].cancelled()
    assert await written(database, steps, turns) == others


async def test_a_question_is_looked_up_while_many_turns_wait_for_the_audit_log(
    database: Database, other: Database, steps: TurnSteps
) -> None:
    turns = [f"t{number:02}" for number in range(POSTGRESQL_CONNECTIONS)]
    await hold(database, *turns)
    sessions, asked = StoredSessions(database), [ask(number) for number in range(len(turns))]
    async with asyncio.TaskGroup() as group, writing(other) as connection:
        await lock_audit(connection)
        for turn, each in zip(turns, asked, strict=True):
            rows = StepRows([], [paid(turn)])
            group.create_task(steps.keep(turn, "me", [STEP], rows))
            group.create_task(sessions.begin_turn(each, "incident", AT))
        async with asyncio.timeout(5):
            for each in asked:
                assert not await Tickets(database).is_started(each.turn_id)
    assert await written(database, steps, turns) == turns
