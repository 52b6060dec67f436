"""A backend that hangs, breaks off or is gone becomes a tool's failure, and never holds a caller."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.backend import Backend
from tools.errors import CapabilityUnavailable, UpstreamFailed


@pytest.fixture
async def client(
    aiohttp_server: Callable[[web.Application], Awaitable[TestServer]],
) -> AsyncIterator[httpx.AsyncClient]:
    release = asyncio.Event()

    async def hang(_request: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    async def break_off(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "100"})
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.close()
        return response

    async def words(_request: web.Request) -> web.Response:
        return web.Response(status=500, text="line one\n  line two\x00" + "x" * 2000)

    app = web.Application()
    app.router.add_get("/hang", hang)
    app.router.add_get("/break", break_off)
    app.router.add_get("/words", words)
    server = await aiohttp_server(app)
    async with http_client(base_url=str(server.make_url("/"))) as opened:
        yield opened
        release.set()


async def test_silence_is_cut_after_the_timeout(client: httpx.AsyncClient) -> None:
    with pytest.raises(UpstreamFailed, match="Loki did not answer in time"):
        await Backend("Loki", client, timeout_s=0.05).get("/hang", {})


async def test_cancellation_passes_within_100_ms(client: httpx.AsyncClient) -> None:
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(Backend("Loki", client).get("/hang", {}))
        await asyncio.sleep(0.05)
        before_s = time.monotonic()
        asking.cancel()
    assert asking.cancelled()
    assert time.monotonic() - before_s < 0.1


async def test_answer_that_breaks_off_is_unavailable(client: httpx.AsyncClient) -> None:
    with pytest.raises(CapabilityUnavailable, match="cannot be reached"):
        await Backend("Loki", client).get("/break", {})


async def test_error_text_is_one_short_line(client: httpx.AsyncClient) -> None:
    answer = await Backend("Loki", client).get("/words", {})
    assert not answer.ok
    assert answer.words().startswith("line one line two")
    assert len(answer.words()) == 500


async def test_host_outside_the_allowed_ones_is_refused() -> None:
    async with http_client(
        base_url="http://loki.example", allowed_hosts=frozenset({"other.example"})
    ) as client:
        with pytest.raises(UpstreamFailed, match="egress"):
            await Backend("Loki", client).get("/x", {})
