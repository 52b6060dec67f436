"""A thread of two hundred turns is read by its index, in order, without a sort."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pytest
import sqlalchemy as sa

from bot.app.rules import engine_database
from bot.domain.ids import SessionId, TurnId
from bot.store.database import Database
from bot.store.sessions import StoredSessions
from bot.store.tables import messages, sessions, turns
from tests.fixtures_database import database, database_url
from tests.grown import analyse, fill
from tests.plans import in_postgresql, in_sqlite, readings
from tests.statements import Statements, noted

__all__ = ["database", "database_url"]

TURNS: Final = 200
EACH: Final = 8
EXPLAINED: Final = {"sqlite": ("pysqlite", in_sqlite), "postgresql": ("psycopg", in_postgresql)}
AT: Final = datetime(2026, 11, 23, tzinfo=UTC)


def _thread(connection: sa.Connection) -> None:
    values = {"team": "T0", "channel": "C1", "thread_ts": "1", "name": "n"}
    times = {"created_at": AT, "active_at": AT}
    connection.execute(sessions.insert().values(id="long", **values, **times))
    numbers = range(TURNS + 1)
    asked = {"session_id": "long", "asker_team": "T0", "asker_user": "U1", "state": "answered"}
    rows = [
        {**asked, "id": f"turn:{n}", "ts": f"17{n:06}.0", "started_at": AT, "ended_at": AT}
        for n in numbers
    ]
    connection.execute(turns.insert(), rows)
    said = [
        {"turn_id": f"turn:{turn}", "n": n, "body": f'{{"role":"user","text":"{turn} {n}"}}'}
        for turn in reversed(numbers)  # stored in another order than it is read
        for n in reversed(range(EACH))
    ]
    connection.execute(messages.insert(), said)


def _readings(connection: sa.Connection, statements: Statements) -> list[Any]:
    driver, explain = EXPLAINED[connection.dialect.name]
    return list(readings(connection, statements.of(driver), explain))


@pytest.mark.may_block_the_loop
@pytest.mark.parametrize("statistics", [[], [analyse]], ids=["as it grew", "analysed"])
async def test_a_long_thread_is_read_in_the_order_of_its_index(
    database: Database, database_url: str, statistics: Sequence[Callable[[sa.Connection], None]]
) -> None:
    engine = sa.create_engine(engine_database(database_url))
    with engine.begin() as connection:
        for each in (fill, _thread, *statistics):
            each(connection)

    with noted() as statements:
        read = await StoredSessions(database).history(SessionId("long"), TurnId(f"turn:{TURNS}"))

    assert [message.text for message in read] == [
        f"{turn} {n}" for turn in range(TURNS) for n in range(EACH)
    ]
    with engine.connect() as asking:
        assert _readings(asking, statements) == []
    engine.dispose()
