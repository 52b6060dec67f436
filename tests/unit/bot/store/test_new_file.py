"""A SQLite file made at once is what its migrations would make of it, whoever else makes it too."""

import asyncio
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from blockbuster import BlockBuster

from bot.ports.failures import StorageUnavailable
from bot.store import new_file, schema
from tests.sources import ROOT
from tests.sqlite_schema import Object, migrate_one_by_one, objects, rows, script

MIGRATED = """
import asyncio, sys
from bot.store.schema import migrate
asyncio.run(migrate(f"sqlite+aiosqlite:///{sys.argv[1]}"))
print(*(name for name in ("alembic", "mako") if name in sys.modules))
"""


@pytest.fixture(autouse=True)
def _reads_scripts(_nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()


def url(file: Path) -> str:
    return f"sqlite+aiosqlite:///{file}"


def held_by(file: Path) -> tuple[list[Object], list[str]]:
    with closing(sqlite3.connect(file)) as connection:
        return sorted(objects(connection), key=lambda each: each[:2]), list(rows(connection))


async def test_it_is_what_the_migrations_make_one_by_one(tmp_path: Path) -> None:
    await schema.migrate(url(tmp_path / "at_once.db"))
    await migrate_one_by_one(tmp_path / "one_by_one.db")

    assert held_by(tmp_path / "at_once.db") == held_by(tmp_path / "one_by_one.db")


async def test_the_file_in_the_repository_is_the_newest_schemas() -> None:
    told = (schema.scripts_folder() / new_file.FILE).read_text(encoding="utf-8")
    assert told == await script(), "run `make schema`"


def test_a_new_file_needs_no_migration_library(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-c", MIGRATED, str(tmp_path / "kortex.db")],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert told.stdout.split() == []
    assert held_by(tmp_path / "kortex.db")[0]


@pytest.mark.parametrize("first_line", ["-- revision 0024", "-- revision 00250", ""])
def test_the_schema_of_another_revision_is_not_taken(tmp_path: Path, first_line: str) -> None:
    whole = (schema.scripts_folder() / new_file.FILE).read_text(encoding="utf-8")
    (tmp_path / new_file.FILE).write_text(first_line + whole[whole.index("\n") :])
    assert new_file.statements(tmp_path, "0025") == ()


async def test_without_the_file_the_migrations_are_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "migrations"
    shutil.copytree(schema.scripts_folder(), bare)
    (bare / new_file.FILE).unlink()
    await schema.migrate(url(tmp_path / "at_once.db"))
    monkeypatch.setattr(schema, "scripts_folder", lambda: bare)

    assert await schema.migrate(url(tmp_path / "kortex.db")) == schema.head()
    assert held_by(tmp_path / "kortex.db") == held_by(tmp_path / "at_once.db")


@contextmanager
def transactions_begun() -> Iterator[threading.Event]:
    """Set when somebody here is about to begin one, and so has looked at the file before."""
    begun = threading.Event()

    def tell(_: sa.Connection) -> None:
        begun.set()

    sa.event.listen(sa.Engine, "begin", tell)
    try:
        yield begun
    finally:
        sa.event.remove(sa.Engine, "begin", tell)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"], ids=["made", "killed"])
async def test_one_that_another_process_is_making_is_waited_for(tmp_path: Path, end: str) -> None:
    file, making = (
        tmp_path / "kortex.db",
        new_file.statements(schema.scripts_folder(), schema.head()),
    )
    await schema.migrate(url(tmp_path / "at_once.db"))
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN IMMEDIATE")
        for statement in making:
            other.execute(statement)
        with transactions_begun() as begun:
            async with asyncio.TaskGroup() as group:
                ours = group.create_task(schema.migrate(url(file)))
                assert await asyncio.to_thread(begun.wait, 30)
                other.execute(end)

    assert ours.result() == schema.head()
    assert held_by(file) == held_by(tmp_path / "at_once.db")


async def test_a_strangers_tables_of_our_names_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "kortex.db"
    with closing(sqlite3.connect(file)) as stranger:
        stranger.execute("CREATE TABLE audit (mine TEXT)")
    before = held_by(file)

    with pytest.raises(StorageUnavailable, match="table audit already exists"):
        await schema.migrate(url(file))

    assert held_by(file) == before
