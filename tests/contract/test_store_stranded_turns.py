"""Stranded turns, and whether people have seen their end."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask, TurnState
from bot.store.database import Database
from bot.store.sessions import StoredSessions
from bot.store.stranded import StrandedTurn, StrandedTurns, ending_workflow
from bot.store.tickets import workflow_status, workflow_steps
from tests.fixtures_database import database, database_url
from tests.fixtures_stores import stand_in_line
from tests.held_connection import writing
from tools.redactor import Redacted

__all__ = ["database", "database_url"]

TS = MessageTs("1700000000.000100")
ASK = Ask(
    Place(TeamId("T1"), ChannelId("C1"), TS),
    TS,
    Person(TeamId("T1"), UserId("U1")),
    Redacted("why?"),
)
AT = datetime(2026, 11, 21, tzinfo=UTC)
OVER = ["CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED", "ERROR", "SUCCESS"]


@dataclass
class Rows:
    """What the engine and a turn leave behind."""

    database: Database

    async def workflow(self, name: str, status: str, version: str = "1") -> None:
        async with writing(self.database) as connection:
            await connection.execute(
                workflow_status(self.database.dialect)
                .insert()
                .values(workflow_uuid=name, status=status, application_version=version)
            )

    async def delivered(self) -> None:
        async with writing(self.database) as connection:
            await connection.execute(
                workflow_steps(self.database.dialect)
                .insert()
                .values(workflow_uuid=ASK.turn_id, function_id=7, function_name="deliver")
            )

    async def row(self, state: TurnState) -> None:
        sessions = StoredSessions(self.database)
        await sessions.begin_turn(ASK, "n", AT)
        await sessions.finish_turn(ASK.turn_id, state, (), (), AT)

    async def running(self) -> None:
        sessions = StoredSessions(self.database)
        await sessions.begin_turn(ASK, "n", AT)

    async def ticket(self) -> None:
        await stand_in_line(self.database, ASK)

    async def found(self) -> list[StrandedTurn]:
        return list(await StrandedTurns(self.database).find(10))


@pytest.fixture
def rows(database: Database) -> Rows:
    return Rows(database)


def stranded(*, told: bool, open_: bool) -> StrandedTurn:
    return StrandedTurn(ASK.turn_id, ASK.place, ASK.ts, is_told=told, is_open=open_)


@pytest.mark.parametrize(
    ("status", "told"), list(zip(OVER, [False, False, False, True], strict=True))
)
async def test_a_turn_that_never_began_is_reported(rows: Rows, status: str, told: bool) -> None:
    await rows.ticket()
    await rows.workflow(ASK.turn_id, status)
    assert await rows.found() == [stranded(told=told, open_=True)]


@pytest.mark.parametrize(
    ("status", "told"), list(zip(OVER, [False, False, True, True], strict=True))
)
async def test_an_interrupted_turn_is_reported_and_a_failed_one_recorded(
    rows: Rows, status: str, told: bool
) -> None:
    await rows.ticket()
    await rows.running()
    await rows.workflow(ASK.turn_id, status)
    assert await rows.found() == [stranded(told=told, open_=True)]


@pytest.mark.parametrize("status", OVER[:2])
async def test_a_turn_interrupted_before_its_delivery_is_reported(rows: Rows, status: str) -> None:
    await rows.ticket()
    await rows.row(TurnState.ANSWERED)
    await rows.workflow(ASK.turn_id, status)
    assert await rows.found() == [stranded(told=False, open_=False)]
    await rows.delivered()
    assert await rows.found() == [stranded(told=True, open_=False)]


@pytest.mark.parametrize("status", OVER)
async def test_a_turn_without_a_place_is_found_by_its_row_until_it_is_ended(
    rows: Rows, status: str
) -> None:
    await rows.running()
    await rows.workflow(ASK.turn_id, status)
    assert [each.id for each in await rows.found()] == [ASK.turn_id]
    await rows.workflow(ending_workflow(ASK.turn_id), "PENDING")
    assert await rows.found() == []


@pytest.mark.parametrize("status", ["PENDING", "ENQUEUED", "DELAYED"])
async def test_a_running_turn_is_not_stranded(rows: Rows, status: str) -> None:
    await rows.ticket()
    await rows.running()
    await rows.workflow(ASK.turn_id, status)
    assert await rows.found() == []


async def test_a_starting_turn_is_not_stranded(rows: Rows) -> None:
    await rows.ticket()
    assert await rows.found() == []


async def test_work_of_unknown_versions_is_found_while_it_should_continue(rows: Rows) -> None:
    for number, status in enumerate(["PENDING", "ENQUEUED", "DELAYED", *OVER]):
        await rows.workflow(f"w{number}", status, "2")
    await rows.workflow("mine", "PENDING", "1")
    strange = StrandedTurns(rows.database)
    assert await strange.of_other_versions(["1"], 10) == ["w0", "w1", "w2"]
    assert await strange.of_other_versions(["1", "2"], 10) == []
