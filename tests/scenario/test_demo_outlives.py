"""A demo on a database of its own, as deploy/compose.yaml has one: it goes on where it was."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from blockbuster import BlockBuster

from bot.demo.running import AUDIT_KEY, DATABASE_URL, demo_running
from bot.store.database import Database
from bot.store.tables import audit
from tests.fixtures_database import new_database


@pytest.fixture(autouse=True)
def of_its_own(_nothing_blocks_the_loop: BlockBuster) -> None:
    """A command may block its own loop."""
    _nothing_blocks_the_loop.deactivate()


async def test_a_demo_on_postgresql_starts_again_on_its_own_trail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    async with new_database("postgresql", tmp_path, migrated=False) as url:
        monkeypatch.setenv(DATABASE_URL, url)
        monkeypatch.setenv(AUDIT_KEY, "5d" * 32)
        async with demo_running(tmp_path / "first", 0):
            begun = await _rows(url)
        async with demo_running(tmp_path / "second", 0):
            went_on = await _rows(url)
    assert 0 < begun < went_on


async def _rows(url: str) -> int:
    database = await Database.open(url)
    try:
        async with database.read() as connection:
            count = sa.select(sa.func.count()).select_from(audit)
            return int((await connection.execute(count)).scalar_one())
    finally:
        await database.close()
