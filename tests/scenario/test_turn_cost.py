"""What a turn of three rounds and four queries asks of the database, counted."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bot.engine.dbos_setup import MillisecondClock
from bot.store.database import Database
from bot.store.sealing import SEALING
from bot.store.tickets import workflow_status
from tests.fakes.model_server import Call, Round
from tests.fixtures_database import new_database
from tests.fixtures_service import on_stage
from tests.held_connection import reading

MOST_STATEMENTS = {"sqlite": 44, "postgresql": 50}
MOST_TRANSACTIONS = {"sqlite": 11, "postgresql": 10}
# The engine's end of a workflow is an UPDATE within a WITH.
_WRITES = re.compile(r"\s*(WITH \w+ AS \()?(INSERT|UPDATE|DELETE)")
# What goes on beside every turn: leases, looks for stops and for what is due, and what the outlets of
# the audit log read.
_BESIDE = re.compile(
    r"under_way|replicas|workflow_status\.queue_name =|stop_by IS NOT NULL|AS threads$"
    r"|audit_(sinks|checkpoints)|audit\.at AS at_us|^BEGIN"
)


def _logs(product: str) -> Call:
    return Call("core__get_logs", {"product": product, "time_range": "last 30m"})


SCRIPT = [
    Round(text=("Hello.",)),
    Round(text=("First.",), calls=(_logs("checkout"), _logs("payments"))),
    Round(text=("Then.",), calls=(_logs("checkout"), _logs("payments"))),
    Round(text=("The new version leaks.",)),
]


@dataclass
class Asked:
    """Of the database, for a turn."""

    statements: list[str] = field(default_factory=list)
    transactions: int = 0  # that wrote


@contextmanager
def counted() -> Iterator[Asked]:
    asked = Asked()
    wrote: set[int] = set()

    def executed(connection: Any, _cursor: Any, statement: str, given: object, *_: object) -> None:
        if _BESIDE.search(statement) or (_is_engine(connection) and "turn:" not in repr(given)):
            return
        asked.statements.append(statement)
        if _WRITES.match(statement):
            wrote.add(id(connection))

    def committed(connection: sa.Connection) -> None:
        asked.transactions += id(connection) in wrote
        wrote.discard(id(connection))

    sa.event.listen(sa.Engine, "before_cursor_execute", executed)
    sa.event.listen(sa.Engine, "commit", committed)
    try:
        yield asked
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", executed)
        sa.event.remove(sa.Engine, "commit", committed)


def _is_engine(connection: sa.Connection) -> bool:
    raw = connection.connection.dbapi_connection
    return isinstance(raw, MillisecondClock) or SEALING not in connection.get_execution_options()


async def _over(database: Database) -> None:
    """Until no turn is under way. Raises TimeoutError."""
    status = workflow_status(database.dialect).c.status
    busy = sa.select(sa.func.count().label("under_way")).where(status.not_in(["SUCCESS"]))
    async with asyncio.timeout(10), reading(database) as connection:
        while await connection.scalar(busy):  # noqa: ASYNC110 - the engine's threads write
            await asyncio.sleep(0.01)


pytestmark = pytest.mark.may_block_the_loop


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_turn_needs_few_database_statements(kind: str, tmp_path: Path) -> None:
    async with (
        new_database(kind, tmp_path) as url,
        on_stage(tmp_path, SCRIPT, {"database": {"url": url}}) as stage,
    ):
        database = await Database.open(url)
        await stage.answered("@kortex hello")
        await _over(database)
        with counted() as asked:
            await stage.answered("@kortex why is checkout slow")
            await _over(database)
        await database.close()
    found = "\n".join(asked.statements)
    assert len(asked.statements) <= MOST_STATEMENTS[kind], found
    assert asked.transactions <= MOST_TRANSACTIONS[kind], found
