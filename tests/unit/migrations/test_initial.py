"""The migrations reach the tables' metadata on both databases, and only forwards."""

import io
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from bot.store import schema
from bot.store.columns import metadata
from bot.store.database import Database
from bot.store.tables import is_declared
from tests.fixtures_database import empty_url
from tests.held_connection import reading, writing

__all__ = ["empty_url"]

MIGRATIONS = Path(__file__).parents[3] / "migrations"


async def test_an_empty_database_is_not_current(empty_url: str) -> None:
    at = await schema.schema_state_of(empty_url)
    assert at.revision is None
    assert "kortex migrate" in str(at.problem)


async def test_an_empty_database_reaches_the_head(empty_url: str) -> None:
    assert await schema.migrate(empty_url) == schema.head()
    at = await schema.schema_state_of(empty_url)
    assert (at.revision, at.problem) == (schema.head(), None)


async def test_migrating_again_changes_nothing(empty_url: str) -> None:
    await schema.migrate(empty_url)
    await schema.migrate(empty_url)
    assert (await schema.schema_state_of(empty_url)).problem is None


def _differences(connection: sa.Connection) -> list[object]:
    context = MigrationContext.configure(
        connection,
        opts={
            "compare_type": True,
            "compare_server_default": True,
            "include_name": is_declared,
        },
    )
    return list(compare_metadata(context, metadata))


async def test_the_head_is_the_one_the_code_expects(empty_url: str) -> None:
    await schema.migrate(empty_url)
    database = await Database.open(empty_url)
    async with reading(database) as connection:
        assert await connection.run_sync(_differences) == []
    await database.close()


def _check_with_alembic(connection: sa.Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.check(config)


async def test_alembics_own_check_finds_nothing_to_migrate(empty_url: str) -> None:
    await schema.migrate(empty_url)
    database = await Database.open(empty_url)
    async with writing(database) as connection:
        await connection.run_sync(_check_with_alembic)
    await database.close()


def _condition_of_running(connection: sa.Connection) -> object:
    indexes = {i["name"]: i for i in sa.inspect(connection).get_indexes("tickets")}
    options = indexes["ix_tickets_running"]["dialect_options"]
    return str(options[f"{connection.dialect.name}_where"])


async def test_only_running_tickets_are_unique(empty_url: str) -> None:
    await schema.migrate(empty_url)
    database = await Database.open(empty_url)
    async with reading(database) as connection:
        assert "running" in str(await connection.run_sync(_condition_of_running))
    await database.close()


def _config() -> Config:
    config = Config(stdout=io.StringIO())
    config.set_main_option("script_location", str(MIGRATIONS))
    return config


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def test_revisions_form_one_line() -> None:
    assert _scripts().get_heads() == [schema.head()]
    found = [script.revision for script in _scripts().walk_revisions()]
    assert found == list(schema.revisions())


@pytest.mark.parametrize("revision", [s.revision for s in _scripts().walk_revisions()])
def test_downgrade_is_not_offered(revision: str) -> None:
    with pytest.raises(NotImplementedError, match="backup"):
        _scripts().get_revision(revision).module.downgrade()
