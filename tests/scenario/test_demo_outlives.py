"""A demo on a database of its own, as deploy/compose.yaml has one: it goes on where it was."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.cli.main import main
from bot.demo.running import AUDIT_KEY, DATABASE_URL, demo_running
from bot.store.database import Database
from bot.store.tables import audit
from tests.fixtures_database import new_database
from tests.held_connection import reading
from tests.plain_logging import logging_put_back

pytestmark = pytest.mark.may_block_the_loop


async def test_a_demo_on_postgresql_continues_its_audit_log(
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


@pytest.mark.parametrize(
    "url",
    [
        "garbage",
        "mysql://a:secret-pw@b/c",
        "postgresql+asyncpg://a:secret-pw@b:c/d",
        "sqlite+aiosqlite://",
    ],
)
def test_an_invalid_database_url_is_reported_without_its_password(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv(DATABASE_URL, url)
    config = tmp_path / "kortex.toml"
    config.write_text(f'[database]\nurl = "${{{DATABASE_URL}}}"\n')
    with logging_put_back():
        assert (ran("demo", "--port", "0"), ran("migrate", "--config", str(config))) == (2, 2)
    told = capsys.readouterr().err
    assert f"{DATABASE_URL}: is not the address of a database" in told
    assert "kortex.toml:2: database.url: is not the address of a database" in told
    assert "secret-pw" not in told


def ran(*arguments: str) -> int:
    """The exit code of `kortex ...`."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(str(ended.value.code))


async def _rows(url: str) -> int:
    database = await Database.open(url)
    try:
        async with reading(database) as connection:
            count = sa.select(sa.func.count()).select_from(audit)
            return int((await connection.execute(count)).scalar_one())
    finally:
        await database.close()
