"""Requests written on aiohttp's connections: what aiohttp would send, and sent again only where it would."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from adapters.errors import BadRequest, Unreachable
from adapters.http import http_client, mapped_errors
from adapters.http_client import HttpClient
from tests.fixtures_http import serving

Peer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
NOTHING = b"HTTP/1.1 204 No Content\r\n\r\n"
TOO_LARGE = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[str]:
    async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await peer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(behave, "127.0.0.1", 0)
    # What a server has not read does not go where nobody sees it.
    server.sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@asynccontextmanager
async def asking(peer: Peer) -> AsyncIterator[HttpClient]:
    async with listening(peer) as url, http_client(base_url=url, read_s=5) as client:
        yield client


def as_set(head: bytes) -> tuple[str, set[str]]:
    first, *lines = head.decode().split("\r\n")
    return first, {line.partition(":")[0].lower() + line.partition(":")[2] for line in lines}


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
@pytest.mark.parametrize("body", [None, b"", b"some", "\u00fc".encode() * 100_000])
@pytest.mark.parametrize("path", ["/", "/a%20b/\u00fc?q=1&q=%2F+#f", "?x"])
async def test_a_request_is_what_aiohttp_would_send(
    method: str, body: bytes | None, path: str
) -> None:
    heads, bodies = [], []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            heads.append(await reader.readuntil(b"\r\n\r\n"))
            _, lines = as_set(heads[-1])
            length = next(
                (int(x.split(" ")[1]) for x in lines if x.startswith("content-length")), 0
            )
            bodies.append(await reader.readexactly(length))
            writer.write(NOTHING)

    async with asking(peer) as client, aiohttp.ClientSession() as session:
        request = client.build_request(method, path, content=body, headers={"X-\u00c5": "\u00e5"})
        headers = dict(request.headers)
        answer = await client.send(request)
        await answer.aclose()
        async with session.request(method, request.url, headers=headers, data=body or None):
            pass
    assert as_set(heads[0]) == as_set(heads[1])
    assert bodies == [body or b""] * 2


@pytest.mark.parametrize(
    ("method", "asked"), [("GET", 2), ("PUT", 2), ("DELETE", 2), ("POST", 1), ("PATCH", 1)]
)
async def test_what_may_have_taken_effect_is_not_asked_again(method: str, asked: int) -> None:
    heard = 0

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        await reader.readuntil(b"\r\n\r\n")
        heard += 1

    async with asking(peer) as client:
        with pytest.raises(Unreachable), mapped_errors():
            await client.request(method, "/")
    assert heard == asked


async def test_a_connection_is_used_again_only_if_its_request_was_taken() -> None:
    ports: list[int] = []

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ports.append(writer.get_extra_info("peername")[1])
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            writer.write(TOO_LARGE if b"content-length: 3" in head.lower() else NOTHING)

    async with asking(peer) as client:
        for body in (b"", b"", b"x" * 3_000_000, b""):
            await client.post("/", content=body)
    assert len(ports) == 2


async def test_what_has_no_body_leaves_its_connection_to_the_next() -> None:
    ports: set[int] = set()

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        ports.add(request.transport.get_extra_info("peername")[1])
        return web.Response(status=204 if request.path == "/none" else 200, text=None)

    async with serving(handler) as url, http_client(base_url=url) as client:
        for method, path in (("GET", "/none"), ("GET", "/"), ("POST", "/none"), ("POST", "/")):
            await client.request(method, path)
    assert len(ports) == 1


async def test_many_at_once_have_each_their_own_answer() -> None:
    async def handler(request: web.Request) -> web.Response:
        await asyncio.sleep(0.01)
        return web.Response(body=await request.read())

    async with serving(handler) as url, http_client(base_url=url) as client:
        said = [f"{number}".encode() for number in range(50)]
        answers = await asyncio.gather(*(client.post("/", content=each) for each in said))
    assert [answer.content for answer in answers] == said


async def test_an_address_that_would_begin_another_line_is_not_sent() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise AssertionError("it was sent")

    async with asking(peer) as client:
        request = client.build_request("GET", "/")
        request.url = request.url.with_path("/\r\nx: y", encoded=True)
        with pytest.raises(BadRequest):
            await client.send(request)
