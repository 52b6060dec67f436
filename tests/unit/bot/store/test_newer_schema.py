"""A database that a newer version has migrated, seen by this one: served, refused, and in words."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import sqlalchemy as sa
from aiohttp.test_utils import TestClient, TestServer

from bot.app.stores import open_stores
from bot.cli import main as cli
from bot.ports.failures import StorageUnavailable
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store import schema
from bot.store.database import Database
from bot.web.server import create_web_app
from tests.fixtures_database import empty_url, postgres_url
from tests.fixtures_migrations import migrations_in
from tests.held_connection import writing
from tests.plain_logging import logging_put_back

__all__ = ["empty_url", "postgres_url"]

SCRIPT = """
import sqlalchemy as sa
from alembic import op
revision = "{revision}"
down_revision = "{before}"
contracts = {contracts}
def upgrade():
    op.add_column("replicas", sa.Column("added_{revision}", sa.Text, nullable=True))
"""


async def migrated_by_newer(url: str, folder: Path, *contracts: bool) -> None:
    """What releases to come do: each adds a column, and some say that they take something away."""
    newer = folder / "newer"
    await asyncio.to_thread(shutil.copytree, schema.scripts_folder(), newer)
    before = schema.head()
    for number, takes_away in enumerate(contracts):
        script = SCRIPT.format(revision=f"9{number}", before=before, contracts=takes_away)
        (newer / "versions" / f"9{number}.py").write_text(script)
        before = f"9{number}"
    with migrations_in(newer):
        assert await schema.migrate(url) == before


pytestmark = pytest.mark.may_block_the_loop


@pytest.mark.parametrize("contracts", [(False,), (False, False)])
async def test_an_expanded_schema_serves_the_previous_version(
    empty_url: str, tmp_path: Path, contracts: tuple[bool, ...]
) -> None:
    await schema.migrate(empty_url)
    await migrated_by_newer(empty_url, tmp_path, *contracts)

    at = await schema.schema_state_of(empty_url)

    assert at.revision == f"9{len(contracts) - 1}"
    assert at.problem is None
    assert await schema.migrate(empty_url) == at.revision


@pytest.mark.parametrize("contracts", [(True,), (False, True), (True, False)])
async def test_a_contracted_schema_is_refused_with_the_version_to_start(
    empty_url: str, tmp_path: Path, contracts: tuple[bool, ...]
) -> None:
    await migrated_by_newer(empty_url, tmp_path, *contracts)

    problem = (await schema.schema_state_of(empty_url)).problem

    assert "start the newer version" in str(problem)
    assert "kortex migrate" not in str(problem)
    with pytest.raises(schema.SchemaUnserved, match="start the newer version"):
        await schema.migrate(empty_url)


async def test_foreign_migrations_serve_no_version(empty_url: str) -> None:
    database = await Database.open(empty_url)
    async with writing(database) as connection:
        await connection.execute(sa.text("CREATE TABLE alembic_version (version_num TEXT)"))
        await connection.execute(sa.text("INSERT INTO alembic_version VALUES ('5f2a')"))
    problem = (await schema.schema_state(database)).problem
    await database.close()

    assert "5f2a" in str(problem)


@pytest.mark.parametrize(("contracts", "status"), [(False, 200), (True, 503)])
async def test_readiness_distinguishes_an_expanded_from_a_contracted_schema(
    empty_url: str, tmp_path: Path, contracts: bool, status: int
) -> None:
    await migrated_by_newer(empty_url, tmp_path, contracts)
    database = await Database.open(empty_url)

    async with TestClient(TestServer(create_web_app(database=database))) as client:
        ready = await client.get("/readyz")
        said = (await ready.json())["parts"]["schema"]
    await database.close()

    assert (ready.status, said["ok"]) == (status, not contracts)


async def test_the_previous_version_restarts_on_an_expanded_schema(
    empty_url: str, tmp_path: Path
) -> None:
    await migrated_by_newer(empty_url, tmp_path, False)
    async with AsyncExitStack() as stack:
        settings = Settings.model_validate({"database": {"url": empty_url}})
        stores = await open_stores(settings, stack)
        assert await stores.audit_reader.newest() is None


async def test_the_previous_version_does_not_start_on_a_contracted_schema(
    empty_url: str, tmp_path: Path
) -> None:
    await migrated_by_newer(empty_url, tmp_path, True)
    async with AsyncExitStack() as stack:
        settings = Settings.model_validate({"database": {"url": empty_url}})
        with pytest.raises(ConfigurationError, match=r"database\.url: .*start the newer version"):
            await open_stores(settings, stack)


@pytest.mark.parametrize(
    ("contracts", "code", "words"),
    [(False, 0, "this version works with it"), (True, 2, "start the newer version")],
)
async def test_kortex_migrate_of_the_previous_version_prints_a_message(
    empty_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    contracts: bool,
    code: int,
    words: str,
) -> None:
    await migrated_by_newer(empty_url, tmp_path, contracts)
    config = tmp_path / "kortex.toml"
    config.write_text(f'[database]\nurl = "{empty_url}"\n')

    def main() -> object:
        with logging_put_back(), pytest.raises(SystemExit) as ended:
            cli.main(["migrate", "--config", str(config)])
        return ended.value.code

    assert await asyncio.to_thread(main) == code
    told = capsys.readouterr()
    assert words in told.out + told.err
    assert "Traceback" not in told.out + told.err


async def test_a_migration_does_not_block_other_sessions_behind_a_dump(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "LOCK_WAIT_S", 0.05)
    database = await Database.open(postgres_url)
    async with writing(database) as dump:
        await dump.execute(sa.text("LOCK TABLE replicas IN ACCESS SHARE MODE"))
        with pytest.raises(StorageUnavailable, match="nothing was changed"):
            await migrated_by_newer(postgres_url, tmp_path, False)

    assert await database.schema_head() == schema.head()
    await database.close()
