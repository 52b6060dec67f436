"""Two processes write one chain; one of them is killed in the middle, and it stays whole."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from bot.audit.chain import AuditKeys
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.database import Database
from tests.fixtures_database import database_url

__all__ = ["database_url"]

ROOT = Path(__file__).parents[2]
KEYS = AuditKeys("1", {"1": b"a" * 32})
ENDLESS, SOME = 1_000_000, 60


async def writer(url: str, name: str, count: int) -> Process:
    script = str(ROOT / "tests" / "audit_writer.py")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(
        sys.executable, script, url, name, str(count), stdout=PIPE, env=environment
    )


async def committed(process: Process, count: int) -> list[int]:
    """The numbers of its first rows."""
    assert process.stdout is not None
    return [int(await process.stdout.readline()) for _ in range(count)]


async def test_a_killed_writer_leaves_a_valid_chain_to_the_other(database_url: str) -> None:
    async with asyncio.timeout(50):
        doomed = await writer(database_url, "doomed", ENDLESS)
        other = await writer(database_url, "other", SOME)
        of_doomed = await committed(doomed, 20)
        doomed.kill()
        of_other = await committed(other, SOME)
        assert await other.wait() == 0
        await doomed.communicate()
    database = await Database.open(database_url)
    audit_log = StoredAuditReader(database)
    found = await verify(audit_log, KEYS)
    entries = await audit_log.entries()
    await database.close()
    assert found.bad is None
    assert [each.seq for each in entries] == list(range(1, found.rows + 1))
    assert [each.seq for each in entries if each.actor == "other"] == of_other
    assert [each.seq for each in entries if each.actor == "doomed"][:20] == of_doomed
