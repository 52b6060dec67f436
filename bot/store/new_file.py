"""A SQLite file without tables gets the newest schema at once, not migration by migration.

`migrations/sqlite.sql` is what the migrations make of nothing (docs/adr/0035-new-files-at-once.md);
`make schema` writes it.
"""

import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from bot.store.database import Database
from bot.store.dialect import Connection

FILE = "sqlite.sql"
_HEADING = "-- revision "


def heading(revision: str) -> str:
    """The first line of the file for the schema at that revision."""
    return f"{_HEADING}{revision}"


def statements(folder: Path, revision: str) -> tuple[str, ...]:
    """What makes the schema at that revision; none where `folder` has the file of another, or none.

    Blocks. Raises OSError for a file that cannot be read.
    """
    file = folder / FILE
    if not file.is_file():
        return ()
    first, _, rest = file.read_text(encoding="utf-8").partition("\n")
    return tuple(_split(rest)) if first == heading(revision) else ()


def _split(script: str) -> Iterator[str]:
    whole = ""
    for line in script.splitlines(keepends=True):
        whole += line
        if sqlite3.complete_statement(whole):
            yield whole.rstrip().removesuffix(";")
            whole = ""


async def create(database: Database, script: tuple[str, ...]) -> bool:
    """Run it in one transaction on a SQLite file that no schema was made in; whether it was.

    Another process that makes it at the same time is waited for. Raises StorageUnavailable.
    """
    return await database.transact(partial(_create, script))


async def _create(script: tuple[str, ...], connection: Connection) -> bool:
    plain = connection.sync_connection
    if sa.inspect(plain).has_table("alembic_version"):
        return False
    for statement in script:
        plain.exec_driver_sql(statement)
    return True
