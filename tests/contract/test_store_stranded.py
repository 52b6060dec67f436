"""Confirmed proposals without a running decision, on SQLite and on PostgreSQL."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.audit import AuditEvent, AuditKind
from bot.domain.ids import ProposalId, UserId
from bot.domain.proposal import ProposalState
from bot.ports.proposals import Decision
from bot.store.database import Database
from bot.store.proposals import StoredProposals
from bot.store.stranded import StrandedProposals
from bot.store.tickets import workflow_status
from tests.fixtures_database import database, database_url, other
from tests.held_connection import writing
from tests.slack_ingress import proposal

__all__ = ["database", "database_url", "other"]

S = ProposalState
ALIVE = ["PENDING", "ENQUEUED", "DELAYED"]
OVER = ["ERROR", "CANCELLED", "SUCCESS", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"]
Engine = Callable[[str, str], Awaitable[None]]


@pytest.fixture
async def engine(database: Database) -> Engine:
    """Puts a decision's workflow into the engine's table, in that state."""
    table = workflow_status(database.dialect)

    async def has(key: str, status: str) -> None:
        async with writing(database) as connection:
            await connection.execute(
                table.insert().values(workflow_uuid=f"decision:{key}", status=status)
            )

    return has


async def _advance(
    store: StoredProposals,
    row: ProposalId,
    before: ProposalState,
    after: ProposalState,
    event: AuditEvent,
) -> None:
    if after is S.DISPATCHING:
        assert (await store.begin_dispatch(row, event)).is_ours
    else:
        assert await store.advance(row, before, after, "", event)


async def confirmed(database: Database, name: str, *path: ProposalState) -> ProposalId:
    """A proposal confirmed under the key `name`, and advanced along the path."""
    store = StoredProposals(database)
    row = replace(
        proposal(),
        id=ProposalId(name),
        expires_at=datetime.now(UTC) + timedelta(minutes=10),
        state=S.PENDING,
        digest=name.encode().hex(),  # an order of its own
    )
    event = AuditEvent(AuditKind.DISPATCH_INTENT, "U1", {})
    await store.create(row, event)
    await store.decide(row.id, Decision(S.CONFIRMED, UserId("U1"), name), event)
    for before, after in zip((S.CONFIRMED, *path), path, strict=False):
        await _advance(store, row.id, before, after, event)
    return row.id


@pytest.mark.parametrize("path", [(), (S.DISPATCHING,)], ids=["confirmed", "dispatching"])
@pytest.mark.parametrize("status", OVER)
async def test_a_decision_abandoned_by_a_dead_process_is_found(
    database: Database, engine: Engine, status: str, path: tuple[ProposalState, ...]
) -> None:
    left = await confirmed(database, "p1", *path)
    await engine("p1", status)

    assert await StrandedProposals(database).find(10) == [left]


@pytest.mark.parametrize("status", ALIVE)
async def test_a_decision_that_still_runs_is_left_alone(
    database: Database, engine: Engine, status: str
) -> None:
    await confirmed(database, "p1", S.DISPATCHING)
    await engine("p1", status)

    assert await StrandedProposals(database).find(10) == []


@pytest.mark.parametrize("end", [S.SUCCEEDED, S.FAILED, S.UNKNOWN])
async def test_a_finished_decision_is_left_alone(
    database: Database, engine: Engine, end: ProposalState
) -> None:
    await confirmed(database, "p1", S.DISPATCHING, end)

    assert await StrandedProposals(database).find(10) == []


async def test_the_oldest_decisions_come_first_up_to_the_limit(
    database: Database, engine: Engine
) -> None:
    left = [await confirmed(database, f"p{n}") for n in range(3)]

    assert await StrandedProposals(database).find(2) == left[:2]
