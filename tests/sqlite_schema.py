"""What the migrations make of a SQLite file without tables, and `migrations/sqlite.sql` of it.

`python -m tests.sqlite_schema` writes that file (`make schema`).
"""

import asyncio
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bot.store import new_file, schema
from bot.store.address import addressed

_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY rowid"
Object = tuple[str, str, str, str | None]


async def migrate_one_by_one(file: Path) -> None:
    """Every migration in turn, as a file of an older version gets those that it has not."""
    await asyncio.to_thread(schema._scripts)
    threads = schema._threads(addressed(f"sqlite:///{file}"))
    await schema._patiently(threads)
    await threads.close()


def objects(connection: sqlite3.Connection) -> list[Object]:
    """Tables, indexes and triggers in the order in which they were made."""
    return list(connection.execute(_OBJECTS))


def _own(connection: sqlite3.Connection) -> list[Object]:
    """Without those that SQLite makes itself: of a constraint, behind a virtual table."""
    found = objects(connection)
    virtual = tuple(f"{each[1]}_" for each in found if str(each[3]).startswith("CREATE VIRTUAL"))
    return [each for each in found if each[3] and not each[1].startswith(virtual)]


def rows(connection: sqlite3.Connection) -> Iterator[str]:
    """Those of every table, each as a statement."""
    for kind, table, _, sql in _own(connection):
        if kind != "table" or str(sql).startswith("CREATE VIRTUAL"):
            continue
        columns = [each[1] for each in connection.execute(f"PRAGMA table_info({table})")]
        quoted = ", ".join(f"quote({column})" for column in columns)
        query = f"SELECT {quoted} FROM {table} ORDER BY rowid"  # noqa: S608 - names of our tables
        for row in connection.execute(query):
            yield f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join(row)})"  # noqa: S608 - its own words


async def script() -> str:
    """The text of `migrations/sqlite.sql`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kortex.db"
        await migrate_one_by_one(file)
        with sqlite3.connect(file) as connection:
            made = [str(each[3]) for each in _own(connection)] + list(rows(connection))
        connection.close()
    return "\n".join([new_file.heading(schema.head()), *(f"{each};" for each in made), ""])


if __name__ == "__main__":
    (schema.scripts_folder() / new_file.FILE).write_text(asyncio.run(script()), encoding="utf-8")
