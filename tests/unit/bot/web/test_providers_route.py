"""`GET /api/v1/llm/providers`: the state of the backends, for whoever holds the token."""

from collections.abc import Sequence

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.domain.provider_status import ProviderStatus
from bot.web.private import PROVIDERS_PATH as PATH
from bot.web.private import providers_route

TOKEN = "api-token"
LEFT_ALONE = ProviderStatus(
    "anthropic", False, "not asked for 12 s (rate limited)", turn=1, circuit="open", wait_s=12
)


async def report() -> Sequence[ProviderStatus]:
    return [LEFT_ALONE, ProviderStatus("triage", True, turn=2, local=True)]


async def client() -> TestClient[web.Request, web.Application]:
    app = web.Application()
    app.router.add_routes([providers_route(report, TOKEN)])
    return TestClient(TestServer(app))


async def test_it_tells_the_state_of_every_provider() -> None:
    async with await client() as asking:
        answer = await asking.get(PATH, headers={"authorization": f"Bearer {TOKEN}"})
        told = (await answer.json())["providers"]
    assert told[0] == {
        "name": "anthropic",
        "available": False,
        "reason": "not asked for 12 s (rate limited)",
        "turn": 1,
        "model": "",
        "context_tokens": 0,
        "tools": True,
        "local": False,
        "circuit": "open",
        "retry_in_s": 12,
        "failures": 0,
        "answered": False,
    }
    assert [each["available"] for each in told] == [False, True]


@pytest.mark.parametrize(
    "shown", ["", "Bearer ", "Bearer other", f"Basic {TOKEN}", TOKEN, "Bearer é"]
)
async def test_without_the_token_it_tells_nothing(shown: str) -> None:
    async with await client() as asking:
        answer = await asking.get(PATH, headers={"authorization": shown} if shown else {})
        body = await answer.text()
    assert answer.status == 401
    assert "anthropic" not in body


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (LEFT_ALONE, "not available, not asked for 12 s (rate limited)"),
        (ProviderStatus("a", True, turn=1, model="m", answered=True), "ready, asked first, m"),
        (ProviderStatus("a", True, turn=4), "configured, no answer yet, asked 4th"),
        (ProviderStatus("a", True), "configured, no answer yet, not in use"),
        (
            ProviderStatus("a", True, turn=2, circuit="trying", answered=True),
            "ready, asked second, on trial after failures",
        ),
    ],
)
def test_people_read_one_line(status: ProviderStatus, words: str) -> None:
    assert status.as_words() == words
