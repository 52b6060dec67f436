"""Other migrations than this checkout's: of a release before, or of one to come."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bot.store import schema


@contextmanager
def migrations_in(folder: Path) -> Iterator[None]:
    """What this version of the program knows."""
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(schema, "scripts_folder", lambda: folder)
            schema.revisions.cache_clear()
            schema._scripts.cache_clear()
            yield
    finally:
        schema.revisions.cache_clear()
        schema._scripts.cache_clear()


async def migrated_to(revision: str, url: str, folder: Path) -> None:
    """Bring an empty database to that revision, as a release that knew no newer one did."""
    before = folder / "before"
    await asyncio.to_thread(_copy_until, revision, before)
    with migrations_in(before):
        assert await schema.migrate(url) == revision


def _copy_until(revision: str, folder: Path) -> None:
    def newer(_folder: str, names: list[str]) -> set[str]:
        return {name for name in names if name.endswith(".py") and revision < name[:4] < "a"}

    shutil.copytree(schema.scripts_folder(), folder, ignore=newer)
