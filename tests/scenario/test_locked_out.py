"""Slack refuses our token for a while, in mid-sentence: no answer and no question is lost."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from bot.app.worker import Times
from bot.demo.workspace.errors import SlackRefused
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_service import shared_stage
from tests.slack_request_gate import SlackRequestGate
from tests.stage import Stage, turn_of

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELD: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
TIMES = Times(tick_s=0.1, probe_s=0.1)  # a tick of five seconds would be most of these tests
WHOLE = "The pool is exhausted since v2.4.0."


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    question = str(turn_of(request)[0]["content"]).split("\n")[0]
    return Round(text=("The pool is exhausted ", "since v2.4.0."), hold=HELD[question], hold_at=2)


class Locked(SlackRequestGate):
    """Slack's request gate; while `code` is set every method of the bot's token is answered by it.

    `app_code` is the same of the app's own token, which opens connections.
    """

    def __init__(self) -> None:
        super().__init__()
        self.code = ""
        self.app_code = ""

    def take(self, method: str, tier: int | None, channel: str) -> None:
        super().take(method, tier, channel)
        code = self.app_code if method == "apps.connections.open" else self.code
        if code:
            raise SlackRefused(code)


@pytest_asyncio.fixture(loop_scope="module")
async def request_gate(shared_stage: Stage) -> AsyncIterator[Locked]:
    request_gate = Locked()
    shared_stage.workspace.request_gate = request_gate
    yield request_gate
    request_gate.code = request_gate.app_code = ""


async def ready(stage: Stage) -> tuple[int, bool]:
    status, parts = await looked_at(stage)
    return status, parts["slack token"]["ok"]


async def looked_at(stage: Stage) -> tuple[int, dict[str, Any]]:
    url = f"http://127.0.0.1:{stage.service.http_port}/readyz"
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return response.status, (await response.json())["parts"]


async def until_slack_is(stage: Stage, word: str) -> tuple[int, bool]:
    async with asyncio.timeout(25):  # its library looks every ten seconds
        while word not in (found := await looked_at(stage))[1]["slack"]["detail"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return found[0], found[1]["slack"]["ok"]


async def until_ready(stage: Stage, status: int) -> tuple[int, bool]:
    async with asyncio.timeout(10):
        while (found := await ready(stage))[0] != status:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        return found


@pytest.mark.parametrize("code", ["invalid_auth", "token_revoked", "account_inactive"])
async def test_answers_and_questions_of_a_lock_out_are_complete_afterwards(
    shared_stage: Stage, request_gate: Locked, code: str
) -> None:
    stage = shared_stage
    running = await stage.ask(f"@kortex {code}", stage.newcomer())
    await stage.live(running, "The pool is")
    assert await ready(stage) == (200, True)

    request_gate.code = code
    HELD[code].set()
    assert await until_ready(stage, 503) == (503, False)
    meanwhile = await stage.ask(f"@kortex during {code}", stage.newcomer())
    HELD[f"during {code}"].set()
    await held_back(stage, 2)

    request_gate.code = ""
    assert WHOLE in await stage.answer(running)
    assert WHOLE in await stage.answer(meanwhile)
    assert (len(stage.parts(running)), len(stage.parts(meanwhile))) == (1, 1)
    assert await until_ready(stage, 200) == (200, True)
    await held_back(stage, 0)
    evidence = "SELECT answer_ts FROM turns WHERE id = ?"
    ts = stage.parts(meanwhile)[0].ts
    assert stage.query(evidence, meanwhile.turn_in(stage.workspace)) == [(ts,)]


async def held_back(stage: Stage, count: int) -> None:
    """Wait until so many answers are kept."""
    async with asyncio.timeout(15):
        while len(stage.query("SELECT turn_id FROM undelivered")) != count:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_a_slack_outage_keeps_the_page_and_the_api_open(
    shared_stage: Stage, request_gate: Locked
) -> None:
    request_gate.app_code = "internal_error"
    await shared_stage.workspace.sockets.drop()
    assert await until_slack_is(shared_stage, "retrying") == (200, True)

    request_gate.app_code = "invalid_auth"
    assert await until_slack_is(shared_stage, "invalid_auth") == (503, False)
