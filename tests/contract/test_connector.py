"""Our connections give what aiohttp's give: all of an answer, however fast it comes, and its silence."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import ClientSession, ClientTimeout, TCPConnector, web
from aiohttp.client_exceptions import SocketTimeoutError
from aiohttp.test_utils import TestServer

from adapters.connector import Connection, Connector
from adapters.http import http_client, ssl_context

Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


@asynccontextmanager
async def answering(handler: Handler) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/", handler)
    async with TestServer(app) as server:
        yield str(server.make_url("/"))


def ours() -> TCPConnector:
    return Connector(ssl_context)


@asynccontextmanager
async def session(
    kind: Callable[[], TCPConnector], silence_s: float = 5.0
) -> AsyncIterator[ClientSession]:
    timeout = ClientTimeout(sock_read=silence_s)
    async with ClientSession(connector=kind(), timeout=timeout) as client:
        yield client


def pieces(count: int, size: int, rest_s: float = 0.0) -> Handler:
    """So many chunks of that size, each another letter, with rests between."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(count):
            await response.write(piece(number, size))
            if rest_s:
                await asyncio.sleep(rest_s)
        await response.write_eof()
        return response

    return answer


def piece(number: int, size: int) -> bytes:
    return bytes([ord("a") + number % 26]) * size


@pytest.mark.parametrize("kind", [TCPConnector, ours])
@pytest.mark.parametrize(("count", "size"), [(40, 100_000), (60_000, 1), (500, 150), (1, 3)])
async def test_an_answer_that_comes_faster_than_it_is_read_comes_whole(
    kind: Callable[[], TCPConnector], count: int, size: int
) -> None:
    """Forty at once is more than aiohttp keeps; so are sixty thousand chunks."""
    read = bytearray()
    async with (
        answering(pieces(count, size)) as url,
        session(kind) as client,
        client.get(url) as answer,
    ):
        while data := await answer.content.readany():
            read += data
            await asyncio.sleep(0.005 if len(read) < 500_000 else 0)

    assert bytes(read) == b"".join(piece(number, size) for number in range(count))


async def test_connections_are_used_again_after_they_were_held() -> None:
    async with answering(pieces(40, 100_000)) as url, session(ours) as client:
        for _ in range(3):
            async with client.get(url) as answer:
                await asyncio.sleep(0.02)
                assert len(await answer.read()) == 4_000_000
        connections = [len(each) for each in client.connector._conns.values()]  # type: ignore[union-attr]

    assert connections == [1]


async def test_silence_is_counted_from_the_last_piece() -> None:
    """Pieces for longer than the limit are no silence; then one is."""
    never = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = await pieces_then(request, 30, 0.02)
        await never.wait()
        return response

    told = 0
    async with answering(answer) as url, session(ours, 0.2) as client, client.get(url) as got:
        while told < 30:
            told += len(await got.content.readany())
        since = asyncio.get_running_loop().time()
        with pytest.raises(SocketTimeoutError):
            await got.content.readany()
        waited_s = asyncio.get_running_loop().time() - since
        never.set()

    assert 0.1 < waited_s < 0.4


async def pieces_then(request: web.Request, count: int, rest_s: float) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for number in range(count):
        await response.write(piece(number, 1))
        await asyncio.sleep(rest_s)
    return response


async def test_our_clients_connect_so() -> None:
    """aiohttp names what makes a connection only for itself."""
    async with (
        answering(pieces(3, 3, rest_s=0.01)) as url,
        http_client() as client,
        client.stream("GET", url) as response,
    ):
        assert response.wire is not None
        assert response.wire.connection is not None
        protocol = response.wire.connection.protocol
        assert b"".join([part async for part in response.aiter_raw()]) == b"aaabbbccc"

    assert isinstance(protocol, Connection)
