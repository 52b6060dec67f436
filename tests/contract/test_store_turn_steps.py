"""The records of a running turn: written by its owner alone, with the rows of its steps."""

import asyncio
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask, TurnState
from bot.ports.failures import StorageUnavailable
from bot.store.audit import StoredAudit
from bot.store.database import Database
from bot.store.sessions import StoredSessions
from bot.store.step_rows import StepRows, gathered, write_with_step
from bot.store.tables import audit, messages, tickets
from bot.store.tickets import Tickets, workflow_status, workflow_steps
from bot.store.turn_steps import Step, TurnSteps
from tests.fixtures_database import database, database_url
from tests.held_connection import reading, writing
from tools.redactor import Redacted

__all__ = ["database", "database_url"]

PLACE = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1.0"))
ASK = Ask(PLACE, MessageTs("1.0"), Person(TeamId("T1"), UserId("U1")), Redacted("why?"))
TURN, AT = ASK.turn_id, datetime(2026, 11, 23, tzinfo=UTC)
FIRST, SECOND = Step(0, "open", '["a"]'), Step(1, "round:1", '{"text":"\\ud800"}')
PAID = AuditEvent(AuditKind.MODEL_CALL, "U1", {"round": 1}, key="round:1")
READ = AuditEvent(AuditKind.TOOL_CALL, "U1", {"tool": "logs"}, key="call:1")


@pytest.fixture
async def steps(database: Database) -> TurnSteps:
    await _hold(database, "me")
    return TurnSteps(database)


async def _hold(database: Database, owner: str) -> None:
    async with writing(database) as connection:
        await connection.execute(tickets.delete())
        row = {"id": TURN, "thread": PLACE.key, "ts": "1.0", "state": "running", "owner": owner}
        await connection.execute(tickets.insert(), row)


async def _audit_kinds(database: Database) -> list[str]:
    async with reading(database) as connection:
        return list(await connection.scalars(sa.select(audit.c.kind).order_by(audit.c.seq)))


async def test_steps_are_read_in_order(steps: TurnSteps) -> None:
    assert await steps.keep(TURN, "me", [FIRST], StepRows())
    assert await steps.keep(TURN, "me", [SECOND, Step(2, "keep", "null")], StepRows())

    assert (await steps.past(TURN)).steps == [FIRST, SECOND, Step(2, "keep", "null")]


async def test_a_record_and_its_rows_are_written_together_or_not_at_all(
    steps: TurnSteps, database: Database
) -> None:
    async def fails(connection: AsyncConnection) -> None:
        raise StorageUnavailable("full")

    with pytest.raises(StorageUnavailable):
        await steps.keep(TURN, "me", [FIRST], StepRows([fails], [PAID]))
    assert not (await steps.past(TURN)).steps
    assert await _audit_kinds(database) == []

    assert await steps.keep(TURN, "me", [FIRST], StepRows([], [PAID, READ]))
    assert await _audit_kinds(database) == ["model.call", "tool.call"]


async def test_a_replaced_owner_records_nothing(steps: TurnSteps, database: Database) -> None:
    await _hold(database, "successor")

    assert not await steps.keep(TURN, "me", [FIRST], StepRows([], [PAID]))

    assert not (await steps.past(TURN)).steps
    assert await _audit_kinds(database) == []


async def test_a_repeated_record_is_one(steps: TurnSteps, database: Database) -> None:
    for _ in range(2):
        assert await steps.keep(TURN, "me", [FIRST], StepRows([], [PAID, PAID, READ]))

    assert (await steps.past(TURN)).steps == [FIRST]
    assert await _audit_kinds(database) == ["model.call", "tool.call"]


async def test_steps_are_deleted_when_the_turn_leaves_its_thread(
    steps: TurnSteps, database: Database
) -> None:
    await steps.keep(TURN, "me", [FIRST], StepRows())
    held = Tickets(database)

    assert not await held.leave(TURN, "somebody else")
    assert (await steps.past(TURN)).steps == [FIRST]
    assert await held.leave(TURN, "me")

    assert not (await steps.past(TURN)).steps


async def test_a_turn_that_left_is_over_and_one_that_never_began_is_not(
    steps: TurnSteps, database: Database
) -> None:
    assert not (await steps.past(TURN)).is_over
    sessions = StoredSessions(database)
    await sessions.begin_turn(ASK, "incident", AT)
    assert not (await steps.past(TURN)).is_over

    await sessions.finish_turn(TURN, TurnState.ANSWERED, (), (), AT)

    assert (await steps.past(TURN)).is_over


async def test_a_turn_of_an_earlier_release_has_its_steps_in_the_engine(
    steps: TurnSteps, database: Database
) -> None:
    row = {"workflow_uuid": TURN, "function_id": 1, "function_name": "open"}
    async with writing(database) as connection:
        status = {"workflow_uuid": TURN, "status": "PENDING", "executor_id": "me"}
        await connection.execute(workflow_status(database.dialect).insert(), status)
        await connection.execute(workflow_steps(database.dialect).insert(), row)

    past = await steps.past(TURN)

    assert past.in_engine
    assert not past.is_over


async def test_the_cost_of_an_interrupted_step_is_kept(
    steps: TurnSteps, database: Database
) -> None:
    assert await steps.keep(TURN, "me", [], StepRows([], [PAID]))
    assert not await steps.keep(TURN, "another", [], StepRows([], [READ]))

    assert await _audit_kinds(database) == ["model.call"]


async def test_a_steps_rows_wait_for_it_and_other_rows_do_not(database: Database) -> None:
    sessions, audit_log = StoredSessions(database), StoredAudit(database)
    await sessions.begin_turn(ASK, "incident", AT)
    before = await _audit_kinds(database)

    with gathered() as rows:
        await audit_log.append_with_step(PAID)
        await write_with_step(database, _forget_messages)
        await audit_log.append(READ)
    late = AuditEvent(AuditKind.TOOL_CALL, "U1", {}, key="call:2")
    await audit_log.append_with_step(late)

    assert await _audit_kinds(database) == [*before, "tool.call", "tool.call"]
    assert (len(rows.works), rows.events) == (1, [PAID])


async def test_a_task_that_outlives_its_step_writes_at_once(database: Database) -> None:
    audit_log, over = StoredAudit(database), asyncio.Event()

    async def late() -> None:
        await over.wait()
        await audit_log.append_with_step(PAID)

    async with asyncio.TaskGroup() as group:
        with gathered() as rows:
            group.create_task(late())
        over.set()

    assert rows.events == []
    assert await _audit_kinds(database) == ["model.call"]


async def _forget_messages(connection: AsyncConnection) -> None:
    await connection.execute(messages.delete())
