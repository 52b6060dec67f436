"""The turn that the benchmarks replay, made once, so that they go on measuring a whole one."""

from pathlib import Path

import pytest

from tests.benchmarks.ours import ours
from tests.benchmarks.transcript import CALLS, SCRIPT, answer
from tests.fakes.model_server import ModelServer

pytestmark = pytest.mark.may_block_the_loop


async def test_the_replayed_turn_is_complete(tmp_path: Path) -> None:
    async with ModelServer(SCRIPT) as server, ours("openai", server.url, tmp_path) as own:
        talk = await own.turn(0)

    assert talk.text == answer(0)
    assert [outcome.record.ok for outcome in talk.outcomes] == [True] * CALLS
