"""An answer that flows is read in even steps; nothing of it is lost, late or left open by that."""

import asyncio
import ssl
import time
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest
from aiohttp import web

from adapters.http.client import http_client
from adapters.http.gathered import GatheredBody
from adapters.llm.exchange import READ_EVERY_S
from adapters.llm.messages import (
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    TextChunk,
    ToolCallChunk,
)
from tests.fakes.model_server import Call, Round
from tests.fixtures_http import serving as serving_http
from tests.fixtures_providers import ASKED, WIRES, everything, serving
from tests.fixtures_tls import certificate, serving_tls

WORDS = tuple(f"word{n} " for n in range(300))
CALLS = (Call("core__get_logs", {"product": "checkout", "limit": 5}),)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_fast_answer_is_complete_in_few_pieces(wire: str) -> None:
    async with serving(wire, [Round(text=WORDS, calls=CALLS, pace_s=0.001)]) as (provider, _):
        chunks = await everything(provider, ASKED)

    texts = [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)]
    assert "".join(texts) == "".join(WORDS)
    assert [type(chunk) for chunk in chunks[len(texts) :]] == [ToolCallChunk, DoneChunk]
    assert len(texts) < len(WORDS) / 2


@pytest.mark.parametrize("wire", WIRES)
async def test_silence_after_a_fast_answer_is_a_timeout(wire: str) -> None:
    never = asyncio.Event()
    script = [Round(text=WORDS, pace_s=0.001, hold=never, hold_at=200)]
    async with serving(wire, script, timeout_s=0.2) as (provider, _):
        chunks = await everything(provider, ASKED)

    assert isinstance(chunks[-1], ErrorChunk)
    assert chunks[-1].kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("wire", WIRES)
async def test_a_fast_answer_that_is_cut_shows_everything_received(wire: str) -> None:
    async with serving(wire, [Round(text=WORDS, pace_s=0.001, cut_at=200)]) as (provider, _):
        chunks = await everything(provider, ASKED)

    texts = [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)]
    assert "".join(WORDS).startswith("".join(texts))
    assert isinstance(chunks[-1], ErrorChunk)
    assert chunks[-1].kind in {ErrorKind.CUT, ErrorKind.UNREACHABLE}


async def leaving_s(wire: str) -> float:
    """Seconds from the reader's cancellation, while a read waits, to the end of the connection."""
    async with serving(wire, [Round(text=WORDS * 10, pace_s=0.001)]) as (provider, server):
        reading = asyncio.Event()

        async def read() -> None:
            said = 0
            async with aclosing(provider.stream(ASKED)) as chunks:  # type: ignore[type-var]
                async for chunk in chunks:
                    said += len(chunk.text) if isinstance(chunk, TextChunk) else 0
                    if said > 1_000:
                        reading.set()

        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(read())
            await reading.wait()
            await asyncio.sleep(READ_EVERY_S / 4)
            left = time.monotonic()
            task.cancel()
            await server.disconnected.wait()
            return time.monotonic() - left


@pytest.mark.parametrize("wire", WIRES)
async def test_leaving_during_a_delayed_read_hangs_up_within_100_ms(wire: str) -> None:
    # A busy machine delays one of them; a wait of the product's would delay each.
    assert min([await leaving_s(wire) for _ in range(3)]) < 0.1


@pytest.mark.parametrize("wire", WIRES)
async def test_connections_of_fast_answers_are_reused(wire: str) -> None:
    script = [Round(text=WORDS, pace_s=0.001)] * 2
    async with serving(wire, script) as (provider, server):
        first = await everything(provider, ASKED)
        second = await everything(provider, ASKED)

    assert [type(chunks[-1]) for chunks in (first, second)] == [DoneChunk, DoneChunk]
    assert server.connections == 1


STEPS = 60
ALL = b"".join(b"%d," % number for number in range(STEPS))


async def in_steps(request: web.Request) -> web.StreamResponse:
    """A piece every 2 ms; the last one ends the answer, or breaks it off."""
    response = web.StreamResponse()
    await response.prepare(request)
    for number in range(STEPS):
        await response.write(b"%d," % number)
        await asyncio.sleep(0.002)
    if request.path == "/cut" and request.transport is not None:
        request.transport.abort()
    return response


async def read_in_steps(client: httpx.AsyncClient, url: str) -> tuple[bytes, int]:
    """The bytes that came, and the number of reads."""
    async with client.stream("GET", url) as response, aclosing(GatheredBody(response)) as body:
        body.pause(0.5)  # many times a step, also where a busy machine stretches those
        read, reads = b"", 0
        try:
            while part := await body.more():
                read, reads = read + part, reads + 1
        except httpx.ReadError:
            read += b"broken"
        return read, reads


async def test_a_paused_answer_is_complete_in_few_reads() -> None:
    async with serving_http(in_steps) as url, http_client() as client:
        read, reads = await read_in_steps(client, url)

    assert read == ALL
    assert reads < STEPS / 3


async def test_a_paused_answer_over_tls_is_complete_in_few_reads(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, "localhost")
    trust = ssl.create_default_context(cafile=str(file))
    async with serving_tls(file, in_steps) as url, http_client(tls=trust) as client:
        found = [await read_in_steps(client, f"{url}/{n}") for n in range(2)]

    assert [read for read, _ in found] == [ALL] * 2
    assert all(reads < STEPS / 3 for _, reads in found)


async def test_a_broken_answer_gives_everything_received() -> None:
    async with serving_http(in_steps) as url, http_client() as client:
        read, _ = await read_in_steps(client, f"{url}/cut")

    assert read == ALL + b"broken"


async def test_an_answer_without_a_connection_is_read_at_once() -> None:
    body = GatheredBody(httpx.Response(200, stream=httpx.ByteStream(b"whole")))
    body.pause(60.0)

    assert [await body.more(), await body.more()] == [b"whole", b""]


@pytest.mark.parametrize(("count", "size"), [(40, 100_000), (60_000, 1), (500, 150), (1, 3)])
async def test_an_answer_that_arrives_faster_than_it_is_read_is_complete(
    count: int, size: int
) -> None:
    async def pieces(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(count):
            await response.write(bytes([ord("a") + number % 26]) * size)
        return response

    read = bytearray()
    async with (
        serving_http(pieces) as url,
        http_client() as client,
        client.stream("GET", url) as response,
        aclosing(GatheredBody(response)) as body,
    ):
        while data := await body.more():
            read += data
            await asyncio.sleep(0.005 if len(read) < 500_000 else 0)

    assert bytes(read) == b"".join(bytes([ord("a") + n % 26]) * size for n in range(count))


async def test_a_pause_ends_when_the_reader_needs_data() -> None:
    on = asyncio.Event()

    async def late(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await on.wait()
        await response.write(b"second")
        return response

    async with (
        serving_http(late) as url,
        http_client() as client,
        client.stream("GET", url) as response,
        aclosing(GatheredBody(response)) as body,
        asyncio.timeout(5),
    ):
        read = [await body.more()]
        body.pause(60.0)
        on.set()
        body.pause(0)
        read += [await body.more(), await body.more()]

    assert read == [b"first", b"second", b""]
