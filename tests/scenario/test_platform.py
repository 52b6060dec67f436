"""A developer platform, configured and asked through the running bot, by each with their own token."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from bot.cli.check.parts import examine
from bot.demo.workspace.seeds import CHECKOUT, MEMBER, RESPONDER
from bot.settings.model import Settings
from tests.fakes.model_server import Call, Recorded, Round
from tests.fakes.platform_server import TOKENS, PlatformServer
from tests.fixtures_service import Start, stage
from tests.stage import results

__all__ = ["stage"]

ALICE, EVERYBODY = TOKENS


@pytest.fixture
def server() -> PlatformServer:
    return PlatformServer()


@pytest.fixture
async def url(
    server: PlatformServer, aiohttp_server: Callable[[web.Application], Awaitable[TestServer]]
) -> str:
    return str((await aiohttp_server(server.app())).make_url("/"))


def platform(url: str, **tokens: str) -> dict[str, Any]:
    users = {"mira": [RESPONDER], "everybody": ["*"]}
    connections = {name: {"users": users[name], "token": token} for name, token in tokens.items()}
    return {"platform": {"kind": "http", "url": url, "connections": connections}}


def script(request: Recorded) -> Round:
    if results(request):
        return Round(text=("Checkout uses orders-db [1].",))
    return Round(calls=(Call("core__get_application", {"app_name": "checkout"}),))


async def test_the_platform_is_asked_with_the_askers_own_token(
    stage: Start, server: PlatformServer, url: str
) -> None:
    async with stage(script, platform(url, mira=ALICE, everybody=EVERYBODY)) as running:
        answer = await running.answered("@kortex what does checkout use?", RESPONDER, CHECKOUT)
        await running.answered("@kortex what does checkout use?", MEMBER, CHECKOUT)

        first, second = server.headers
        assert first["Authorization"] == f"Bearer {ALICE}"
        assert first["X-Kortex-Actor"] == RESPONDER
        assert second["Authorization"] == f"Bearer {EVERYBODY}"
        assert second["X-Kortex-Actor"] == MEMBER
        assert "orders-db" in results(running.models.requests[-1])[0]
        assert "orders-db" in answer
        rows = running.query("SELECT * FROM audit")
        told = f"{running.models.requests}{rows}{running.log.getvalue()}"
        assert ALICE not in told
        assert "not-for-you" not in told


async def test_an_expired_token_is_reported_by_the_platform(
    stage: Start, server: PlatformServer, url: str
) -> None:
    async with stage(script, platform(url, everybody="token-that-ended-Pq88Rr77")) as running:
        await running.answered("@kortex what does checkout use?", RESPONDER, CHECKOUT)
        (result,) = results(running.models.requests[-1])
        assert "upstream: 401" in result
        assert "invalid token" in result


async def test_check_tries_every_connection(
    url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    (tmp_path / "pages").mkdir()
    tree = platform(url, mira=ALICE, everybody="token-that-ended-Pq88Rr77")
    tree["patterns"] = {"folder": str(tmp_path / "pages")}
    tree["database"] = {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"}

    found = {one.part: one for one in await examine(Settings.model_validate(tree))}

    assert found["platform mira"].ok
    assert not found["platform everybody"].ok
    assert "invalid token" in found["platform everybody"].detail
    assert found["patterns"].ok


def test_check_reports_a_platform_that_no_one_can_ask(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    tree = {
        **platform("http://platform.internal"),
        "patterns": {"folder": str(tmp_path / "none")},
        "database": {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"},
    }

    found = {one.part: one for one in asyncio.run(examine(Settings.model_validate(tree)))}

    assert "its tools are not offered" in found["platform"].detail
    assert found["platform"].fails
    assert not found["patterns"].ok


def test_an_unused_recorded_platform_fails_no_check(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    tree = {
        "observe": {"logs": {"kind": "recorded"}},
        "database": {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"},
    }

    found = {one.part: one for one in asyncio.run(examine(Settings.model_validate(tree)))}

    assert not found["platform"].fails
