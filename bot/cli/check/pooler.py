"""`kortex check` on a connection pooler in front of PostgreSQL, and what Kortex needs behind it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, cast

import sqlalchemy as sa

from bot.reports.finding import Finding
from bot.store.address import is_behind_pgbouncer
from bot.store.database import Database

if TYPE_CHECKING:
    import psycopg

# The limit of the role, whatever this transaction has set.
_IDLE_LIMIT: Final = sa.text(
    "SELECT reset_val FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
)
SET_PGBOUNCER: Final = (
    "add pgbouncer=true behind the ? of [database] url, or connect to PostgreSQL itself"
)
_SET_LIMIT: Final = "run ALTER ROLE … SET idle_in_transaction_session_timeout = '6s' in PostgreSQL"


async def check_pooler(url: str, database: Database) -> Sequence[Finding]:
    """Nothing without a pooler. PgBouncer gives its clients another process number than the server's."""
    if database.dialect == "sqlite":
        return ()
    async with database.read() as connection:
        raw = await connection.get_raw_connection()
        told = cast("psycopg.AsyncConnection[Any]", raw.driver_connection).info.backend_pid
        server = await connection.scalar(sa.select(sa.func.pg_backend_pid()))
        limit = await connection.scalar(_IDLE_LIMIT)
    if told == server:
        return ()
    if not is_behind_pgbouncer(url):
        said = "a connection pooler is in between; in transaction mode, concurrent questions fail"
        return [Finding("pgbouncer", False, said, warning=True, mend=SET_PGBOUNCER)]
    if limit == "0":
        said = "a replica that freezes in a transaction keeps its locks: the role has no idle limit"
        return [Finding("pgbouncer", False, said, warning=True, mend=_SET_LIMIT)]
    return [Finding("pgbouncer", True, "a connection is lent for one transaction at a time")]
