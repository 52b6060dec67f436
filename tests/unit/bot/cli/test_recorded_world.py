"""A case in a Loki says what its files say."""

from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp.test_utils import TestServer

from adapters.recorded.packs.archive import case_files
from adapters.recorded.packs.recording import Recording, read_recording
from bot.app.backend_selection import RecordedWorld
from bot.cli.eval.cases import with_logs_at, world_of
from tests.evals.signals import NOW
from tests.evals.stacks import write
from tests.fakes.loki_server import LokiServer
from tools.capabilities import Interval, LogSweepQuery


async def said(world: RecordedWorld) -> dict[str, list[tuple[int, str, str]]]:
    """By product, every line of the last half hour."""
    assert world.observed.logs is not None
    window = Interval(NOW - timedelta(minutes=30), NOW)
    swept = await world.observed.logs.sweep(LogSweepQuery(["gateway", "orders", "mailer"], window))
    return {
        product: sorted((line.ts_ns, line.level, line.message) for line in lines)
        for product, lines in swept.lines.items()
    }


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    write(tmp_path, "logs-only")
    (found,) = case_files([tmp_path])
    return read_recording(found)


async def test_lines_are_the_same_from_files_and_from_loki(recording: Recording) -> None:
    packed = world_of(recording)
    server = LokiServer([])

    async with AsyncExitStack() as stack:
        serving = await stack.enter_async_context(TestServer(server.app()))
        address = str(serving.make_url("/"))
        await with_logs_at(address, recording, packed, stack)  # an earlier run on the same server
        loaded = await with_logs_at(address, recording, packed, stack)
        from_loki, from_files = await said(loaded), await said(packed)

    assert from_files.keys() == {"gateway", "orders", "mailer"}
    assert from_loki == from_files
