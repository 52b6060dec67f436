"""The clock closes long unused sessions, once, and records it."""

from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from bot.domain.audit import AuditKind
from bot.store.database import Database
from bot.store.sessions import StoredSessions
from bot.store.tables import audit
from tests.fixtures_database import database, database_url
from tests.fixtures_turn import ASK, LATER
from tests.held_connection import reading

__all__ = ["database", "database_url"]


async def test_an_idle_session_is_closed_once_and_reopened_by_the_next_message(
    database: Database,
) -> None:
    sessions = StoredSessions(database, timedelta(hours=1))
    now = datetime.now(UTC)
    await sessions.begin_turn(ASK, "ops", now - timedelta(hours=2))

    closed = [await sessions.close_idle(), await sessions.close_idle()]
    # A clock behind the database's does not keep it closed.
    back = await sessions.begin_turn(LATER, "ops", now - timedelta(hours=2))
    await sessions.begin_turn(ASK, "ops", now)

    assert (closed, back.resumed_by) == ([1, 0], LATER.turn_id)
    assert await sessions.close_idle() == 0
    async with reading(database) as connection:
        kinds = await connection.scalars(sa.select(audit.c.kind))
        assert list(kinds).count(AuditKind.SESSION_CLOSED) == 1
