"""Where migrations come from, and that several replicas may migrate at once."""

import asyncio
from pathlib import Path

import pytest

import bot
from bot.store import schema
from tests.fixtures_database import empty_url

__all__ = ["empty_url"]


def test_a_checkout_uses_its_own_migrations() -> None:
    assert schema.scripts_folder() == Path(__file__).parents[4] / "migrations"


def test_an_installed_package_uses_its_own_migrations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "migrations" / "versions").mkdir(parents=True)  # some other distribution's
    monkeypatch.setattr(bot, "__file__", str(tmp_path / "bot" / "__init__.py"))
    assert schema.scripts_folder() == tmp_path / "bot" / "_migrations"


async def test_replicas_that_start_together_migrate_once(empty_url: str) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(schema.migrate(empty_url)) for _ in range(5)]
    assert {task.result() for task in tasks} == {schema.head()}
    assert (await schema.schema_state_of(empty_url)).problem is None
