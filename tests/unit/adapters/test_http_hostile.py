"""The HTTP client against servers that break the protocol: it ends in time, with an error of ours."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from adapters.errors import AdapterError, BadAnswer, BadRequest, TimedOut
from adapters.http.body import read_capped
from adapters.http.client import http_client
from adapters.http.errors import check_status, mapped_errors
from tests.fixtures_peers import OK, Peer, listening

CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
EARLY = b"HTTP/1.1 103 Early Hints\r\n\r\n"
EMPTY = b"content-length: 0\r\n\r\n"


@asynccontextmanager
async def asking(peer: Peer, read_s: float = 0.1) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        listening(peer) as url,
        http_client(base_url=url, connect_s=1, read_s=read_s, max_connections=1) as client,
    ):
        yield client


def sending(first: bytes, again: bytes = b"", every_s: float = 0.0) -> Peer:
    """One answer, and something for as long as the client stays."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        await writer.drain()
        while again and not writer.is_closing():
            writer.write(again)
            await writer.drain()
            await asyncio.sleep(every_s)
        await reader.read()  # until the client leaves

    return peer


def whole(body: bytes, encoding: str) -> bytes:
    return (
        OK + f"content-encoding: {encoding}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
    )


async def read_from(client: httpx.AsyncClient) -> bytes:
    async with asyncio.timeout(3):
        with mapped_errors():
            async with client.stream("GET", "/") as answer:
                check_status(answer)
                return await read_capped(answer, 1_000_000)


@pytest.mark.parametrize(
    "peer",
    [
        sending(OK, b"x: y\r\n", 0.03),
        sending(EARLY),
        sending(b"", EARLY, 0.03),
        sending(b"", EARLY * 1000),
        sending(CHUNKED + b"3;a=", b"b" * 1000, 0.03),
    ],
    ids=["endless head", "interim, then silence", "interim", "many interim", "endless chunk head"],
)
async def test_bytes_that_resemble_an_answer_are_silence(peer: Peer) -> None:
    async with asking(peer) as client:
        with pytest.raises((TimedOut, BadAnswer)):
            await read_from(client)


async def test_an_interim_answer_is_skipped() -> None:
    async with asking(sending(EARLY + OK + b"content-length: 2\r\n\r\n{}")) as client:
        assert await read_from(client) == b"{}"


async def test_a_body_may_take_longer_than_the_silence_timeout() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(CHUNKED)
        for _ in range(8):
            await asyncio.sleep(0.1)
            writer.write(b"1\r\na\r\n")
        writer.write(b"0\r\n\r\n")
        await reader.read()

    async with asking(peer, read_s=0.4) as client:
        assert await read_from(client) == b"a" * 8


@pytest.mark.parametrize("taken", [0, 700_000], ids=["nothing", "all"])
async def test_a_server_that_is_silent_after_a_request_times_out(taken: int) -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if taken:
            await reader.readexactly(taken)
            await reader.read()
        await asyncio.sleep(2)

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"a" * 100_000

    body = b"a" * taken or parts()
    async with asking(peer) as client, asyncio.timeout(1.5):
        with pytest.raises(TimedOut), mapped_errors():
            await client.post("/", content=body)


async def test_a_slowly_produced_request_body_is_not_the_servers_silence() -> None:
    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(3_000_001)
        writer.write(OK + EMPTY)

    async def slowly() -> AsyncIterator[bytes]:
        yield b"a" * 3_000_000
        await asyncio.sleep(0.4)
        yield b"b"

    async with asking(peer) as client, asyncio.timeout(3):
        headers = {"content-length": "3000001"}
        assert (await client.post("/", content=slowly(), headers=headers)).is_success


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
async def test_a_truncated_compressed_answer_is_refused(encoding: str) -> None:
    lines = b'{"line":1}\n' * 1000
    pressed = gzip.compress(lines) if encoding == "gzip" else zlib.compress(lines)
    async with asking(sending(whole(pressed[:-9], encoding))) as client:
        with pytest.raises(BadAnswer):
            await read_from(client)


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "GZIP"])
async def test_every_member_of_a_compressed_answer_is_read(encoding: str) -> None:
    members = gzip.compress(b"first\n") + gzip.compress(b"second\n") + b"\0" * 8
    async with asking(sending(whole(members, encoding))) as client:
        assert await read_from(client) == b"first\nsecond\n"


async def test_a_repeatedly_compressed_answer_is_refused() -> None:
    body = b"{}"
    for _ in range(1200):
        body = gzip.compress(body)
    async with asking(sending(whole(body, ",".join(["gzip"] * 1200)))) as client:
        with pytest.raises(BadAnswer):
            await read_from(client)


@pytest.mark.parametrize("status", ["000", "099", "101"])
async def test_an_interim_status_is_not_a_success(status: str) -> None:
    head = f"HTTP/1.1 {status} x\r\nupgrade: x\r\nconnection: upgrade\r\n".encode()
    async with asking(sending(head + EMPTY)) as client:
        with pytest.raises(BadAnswer):
            await read_from(client)


@pytest.mark.parametrize("text", ["a\r\nb: c", "a\nb", "a\0", "a\ud800"])
async def test_a_header_that_cannot_be_sent_is_not_sent(text: str) -> None:
    async with asking(sending(OK + EMPTY)) as client:
        for headers in ({"authorization": text}, {text: "a"}):
            with pytest.raises(BadRequest) as caught, mapped_errors():
                await client.get("/", headers=headers)
            assert text not in str(caught.value)
        assert (await client.get("/")).is_success  # the one connection is still free


@pytest.mark.parametrize(
    "host", ["a..b", "..", "a" * 64 + ".example", "xn--127-", "xn--a-.example", "xn--0.xn--"]
)
async def test_an_invalid_host_name_raises_our_error(host: str) -> None:
    async with asking(sending(OK + EMPTY)) as client:
        with pytest.raises(AdapterError), mapped_errors():
            await client.get(f"http://{host}/")


async def test_a_lone_surrogate_in_a_query_raises_our_error() -> None:
    async with asking(sending(OK + EMPTY)) as client:
        with pytest.raises(BadRequest), mapped_errors():
            await client.get("/", params={"q": "a\ud800"})
