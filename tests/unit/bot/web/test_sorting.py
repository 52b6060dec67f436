"""One port, two event loops: the urgent are answered while the loop of everything else is held."""

import asyncio
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass

import pytest
from aiohttp import web
from blockbuster import BlockBuster

from bot.ports.loops import OtherLoop
from bot.service.loop_thread import loop_thread
from bot.web.front import Limits
from bot.web.server import create_events_app
from bot.web.sorting import Apart, serving_apart

URGENT = b"POST /slack/events HTTP/1.1\r\nHost: kortex\r\nContent-Length: 2\r\n\r\n{}"
OTHER = b"GET /work HTTP/1.1\r\nHost: kortex\r\n\r\n"
LAST = b"GET /work HTTP/1.1\r\nHost: kortex\r\nConnection: close\r\n\r\n"
MOST = 4


@dataclass
class Site:
    """Answers by name who answered."""

    port: int = 0

    def exchange(self, *parts: bytes, awaited: bytes = b"") -> bytes:
        """Everything that comes back for those parts; between two of them `awaited` has come."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            heard = b""
            for part in parts:
                connection.sendall(part)
                while awaited not in heard:
                    heard += connection.recv(1 << 16)
            while more := connection.recv(1 << 16):
                heard += more
            return heard


async def urgent(request: web.Request) -> web.Response:
    return web.Response(text=f"urgent {await request.text()}")


async def work(_request: web.Request) -> web.Response:
    return web.Response(text="worked")


@pytest.fixture(params=[Limits(idle_s=60, connections=MOST)])
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    app = web.Application()
    app.router.add_get("/work", work)
    app.router.add_post("/slack/events", work)
    async with loop_thread("urgent") as loop:
        apart = Apart(loop, create_events_app(urgent), b"POST /slack/events")
        async with serving_apart(app, apart, "127.0.0.1", 0, request.param) as port:
            yield Site(port)


@pytest.fixture
def may_block(_nothing_blocks_the_loop: BlockBuster) -> None:
    """The test holds its loop on purpose."""
    _nothing_blocks_the_loop.deactivate()


@pytest.mark.usefixtures("may_block")
async def test_the_urgent_are_answered_while_the_other_loop_is_held(site: Site) -> None:
    with ThreadPoolExecutor(1) as client:
        heard = client.submit(site.exchange, URGENT).result(timeout=10)
    assert heard.endswith(b"urgent {}")


@pytest.mark.parametrize("cut", [1, 5, len(b"POST /slack/events"), 40])
async def test_a_request_in_pieces_is_sorted_by_what_it_is(site: Site, cut: int) -> None:
    for whole, end in ((URGENT, b"urgent {}"), (LAST, b"worked")):
        heard = await asyncio.to_thread(site.exchange, whole[:cut], whole[cut:])
        assert heard.endswith(end)


async def test_an_urgent_request_is_its_connections_last(site: Site) -> None:
    heard = await asyncio.to_thread(site.exchange, URGENT + LAST)
    assert heard.count(b"HTTP/1.1 200") == 1
    assert b"Connection: close" in heard


async def test_a_connection_of_other_requests_is_kept_and_takes_any(site: Site) -> None:
    parts = (OTHER, URGENT, LAST)
    heard = await asyncio.to_thread(site.exchange, *parts, awaited=b"worked")
    assert heard.count(b"worked") == len(parts)


async def test_of_too_many_that_say_nothing_the_oldest_go(site: Site) -> None:
    silent = [await asyncio.open_connection("127.0.0.1", site.port) for _ in range(2 * MOST)]
    async with asyncio.timeout(5):
        for reader, _ in silent[:MOST]:
            assert await reader.read() == b""
    heard = await asyncio.to_thread(site.exchange, URGENT)
    assert heard.endswith(b"urgent {}")
    for _, writer in silent:
        writer.close()


@pytest.mark.parametrize("site", [Limits(idle_s=0.05)], indirect=True)
@pytest.mark.parametrize("sent", [b"", b"POST /slack"])
async def test_a_connection_that_is_never_sorted_is_ended(site: Site, sent: bytes) -> None:
    assert await asyncio.to_thread(site.exchange, sent) == b""


async def test_nobody_is_left_connected_when_it_closes() -> None:
    async with loop_thread("urgent") as loop:
        apart = Apart(loop, create_events_app(urgent), b"POST /slack/events")
        async with serving_apart(web.Application(), apart, "127.0.0.1", 0) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"POST /sl")
            await writer.drain()
            await asyncio.to_thread(Site(port).exchange, URGENT)
        assert await reader.read() == b""
        writer.close()


@pytest.mark.usefixtures("may_block")
async def test_who_connects_while_it_closes_is_not_left_connected() -> None:
    loop = asyncio.get_running_loop()
    apart = Apart(OtherLoop(loop), create_events_app(urgent), b"POST /slack/events")
    limits = Limits(idle_s=60)
    with socket.socket() as late:
        async with serving_apart(web.Application(), apart, "127.0.0.1", 0, limits) as port:
            late.connect(
                ("127.0.0.1", port)
            )  # taken when the loop comes round, which closes by then
        late.setblocking(False)
        async with asyncio.timeout(5):
            with suppress(ConnectionResetError):
                assert await loop.sock_recv(late, 1) == b""
