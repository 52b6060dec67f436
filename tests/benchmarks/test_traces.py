"""What traces cost: whole turns of one running bot, traced and not, in turns."""

import asyncio
import gc
import time
from pathlib import Path

import pytest
from aiohttp import web

from bot.telemetry.export import Export
from tests.benchmarks.figures import ratios, show, spread
from tests.fakes.collector import FakeCollector, collecting
from tests.fakes.model_server import Recorded, Round
from tests.fakes.model_wires import Call
from tests.fixtures_service import on_stage
from tests.stage import Stage, turn_of

pytestmark = pytest.mark.benchmark

PAIRS = 20
TURNS = 10  # of a side, in each pair
CALL = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"})


def script(request: Recorded) -> Round:
    """One query, then an answer."""
    asked = len(turn_of(request)) > 1
    return Round(text=("The pool is full.",)) if asked else Round(calls=(CALL,))


async def test_traced_turns_against_untraced_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Spans and their sending, the collector left out; target: at most 3 % of a turn's CPU."""
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    traced = False

    def takes(_export: Export, _: bytes) -> bool:
        return traced

    monkeypatch.setattr(Export, "takes", takes)
    found: dict[bool, list[float]] = {True: [], False: []}
    async with collecting() as collector:
        monkeypatch.setattr(FakeCollector, "handle", _nothing_decoded)
        otel = {"endpoint": collector.url, "metrics": False}
        async with on_stage(tmp_path, script, {"otel": otel}) as bot:
            await _cpu_ms(bot)
            traced = True
            await _cpu_ms(bot)  # imports, connections, caches
            for pair in range(2 * PAIRS):
                traced = pair % 4 in (1, 2)  # A B B A: a drift is no one's
                found[traced].append(await _cpu_ms(bot))
    show(
        "whole turns traced over not traced, one process with all servers (target 1.03)",
        traced_over_not=spread(ratios(found[True], found[False])),
        sum_over_sum=f"{sum(found[True]) / sum(found[False]):.3f}",
        traced_ms=spread(found[True], 1),
        not_traced_ms=spread(found[False], 1),
    )

    assert len(collector.headers) > 0


async def _nothing_decoded(self: FakeCollector, request: object) -> web.Response:
    assert isinstance(request, web.Request)
    await request.read()
    self.headers.append({})
    return web.Response()


async def _cpu_ms(bot: Stage) -> float:
    """Of one turn, all that its process does."""
    gc.collect()
    begun = time.process_time()
    asked = [await bot.ask("@kortex why is checkout slow?", bot.newcomer()) for _ in range(TURNS)]
    await asyncio.gather(*(bot.answer(each) for each in asked))
    return (time.process_time() - begun) / TURNS * 1e3
