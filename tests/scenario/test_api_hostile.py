"""The chat API under attack: what is another's stays so, and no request is answered with a bug."""

from collections.abc import AsyncIterator
from datetime import datetime

import aiohttp
import pytest
import pytest_asyncio

from tests.fixtures_api import Api, caller
from tests.fixtures_service import shared_stage
from tests.scenario.test_api_chat import SCRIPT, SETTINGS
from tests.stage import Stage

__all__ = ["SCRIPT", "SETTINGS", "shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def alice(shared_stage: Stage) -> AsyncIterator[Api]:
    async with aiohttp.ClientSession() as http:
        yield await caller(shared_stage, http, "alice", "responder")


async def test_two_questions_of_one_moment_in_one_channel_are_two(
    shared_stage: Stage, alice: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 1_790_000_000_000_000

    def frozen(_at: datetime) -> int:
        return moment

    mallory = await caller(shared_stage, alice.http, "mallory", "responder")
    of_alice, of_mallory = await alice.open(), await mallory.open()
    monkeypatch.setattr("bot.store.chats.to_micros", frozen)
    looked = await alice.ask(of_alice, "why?")
    message = looked[0].data["message_id"]
    path = f"/chat/v1/sessions/{{}}/messages/{message}/evidence/E1"
    assert (await alice.call("GET", path.format(of_alice)))[0] == 200
    assert (await mallory.call("GET", path.format(of_mallory)))[0] == 404

    answered = await mallory.ask(of_mallory, "propose a way out")
    assert answered[0].data["message_id"] == message
    assert answered[-1].name == "done"
    assert "proposal" in [event.name for event in answered]
