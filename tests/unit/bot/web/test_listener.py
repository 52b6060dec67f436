"""Connections that say nothing are ended, and never shut anybody out."""

import asyncio
import errno
import gzip
import socket
import zlib
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from bot.web import listener
from bot.web.listener import Limits, serving, when_free

GET = b"GET /work HTTP/1.1\r\nHost: kortex\r\n\r\n"
HEAD_ONLY = b"GET /work HTTP/1.1\r\nHost: kortex\r\nX-Slow: 1"
MOST = 4
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Site:
    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()
        self.started = asyncio.Semaphore(0)
        self.port = 0
        self._open: list[Streams] = []

    async def work(self, _request: web.Request) -> web.Response:
        self.started.release()
        await self.free.wait()
        return web.Response(text="done")

    async def send(self, data: bytes) -> Streams:
        streams = await asyncio.open_connection("127.0.0.1", self.port)
        streams[1].write(data)
        self._open.append(streams)
        return streams

    async def status(self) -> bytes:
        reader, _ = await self.send(GET)
        return (await reader.read(12))[9:]

    def close(self) -> None:
        for _, writer in self._open:
            writer.close()


@pytest.fixture(params=[Limits(idle_s=60, connections=MOST)])
async def site(request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    """With room for few."""
    site = Site()
    app = web.Application()
    app.router.add_get("/work", site.work)
    async with serving(app, "127.0.0.1", 0, request.param) as site.port:
        yield site
        site.free.set()
        site.close()


in_haste = pytest.mark.parametrize("site", [Limits(idle_s=0.05)], indirect=True)


@in_haste
@pytest.mark.parametrize("sent", [b"", b"G", HEAD_ONLY, GET + HEAD_ONLY], ids=range(4))
async def test_a_connection_without_a_complete_request_is_ended(site: Site, sent: bytes) -> None:
    reader, _ = await site.send(sent)
    async with asyncio.timeout(5):
        rest = await reader.read()
    assert rest.count(b"HTTP/1.1 200") == sent.count(GET)


@in_haste
async def test_a_running_request_may_take_longer(site: Site) -> None:
    site.free.clear()
    silent, _ = await site.send(b"")
    reader, _ = await site.send(GET)
    await site.started.acquire()
    await silent.read()
    site.free.set()
    assert (await reader.read(12)).endswith(b"200")


async def test_a_thousand_silent_connections_exclude_no_one(site: Site) -> None:
    first, _ = await site.send(HEAD_ONLY)
    for _ in range(50 * MOST):
        await site.send(HEAD_ONLY)
    async with asyncio.timeout(5):
        assert await first.read() == b""
        assert await site.status() == b"200"


async def test_a_running_request_is_never_dropped_to_make_room(site: Site) -> None:
    site.free.clear()
    reader, _ = await site.send(GET)
    await site.started.acquire()
    for _ in range(3 * MOST):
        await site.send(HEAD_ONLY)
    site.free.set()
    assert (await reader.read(12)).endswith(b"200")


async def test_when_all_connections_are_busy_the_next_is_refused_and_later_accepted(
    site: Site,
) -> None:
    site.free.clear()
    busy = [await site.send(GET) for _ in range(MOST)]
    for _ in busy:
        await site.started.acquire()
    refused, _ = await site.send(GET)
    assert await refused.read() == b""
    site.free.set()
    assert [(await reader.read(12))[9:] for reader, _ in busy] == [b"200"] * MOST
    assert await site.status() == b"200"


async def test_a_port_that_is_released_soon_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as before:
        port = before.getsockname()[1]
        asyncio.get_running_loop().call_later(0.3, before.close)

        async with serving(web.Application(), "127.0.0.1", port) as bound:
            assert bound == port


async def test_a_port_that_stays_in_use_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listener, "RESTART_S", 0.2)
    tried = 0

    async def bind() -> None:
        nonlocal tried
        tried += 1
        raise OSError(errno.EADDRINUSE, "in use")

    with pytest.raises(OSError, match="in use"):
        await when_free(bind)
    assert tried > 1


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", gzip.compress(bytes(4 << 20)), b"415"),
        ("GZIP", gzip.compress(b"") * 1_000, b"415"),
        ("deflate", zlib.compress(bytes(4 << 20)), b"415"),
        ("br", b"\x06" * 1_000, b"415"),
        ("gzip, identity", gzip.compress(b"{}"), b"415"),
        ("identity", b"{}", b"200"),
    ],
    ids=["gzip", "empty-members", "deflate", "brotli", "two", "none"],
)
async def test_a_compressed_body_is_refused_and_never_unpacked(
    site: Site, encoding: str, body: bytes, status: bytes
) -> None:
    head = f"Content-Encoding: {encoding}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    reader, _ = await site.send(GET[:-2] + head + body)

    assert (await reader.read(12))[9:] == status
    assert site.started.locked() is (status == b"415")
