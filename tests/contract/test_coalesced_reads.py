"""An answer that flows is read in even steps; nothing of it is lost, late or left open by that."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from adapters.arriving import Body
from adapters.http import http_client
from adapters.http_answer import Answer, Request
from adapters.http_client import HttpClient, times_of
from adapters.llm.messages import (
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    TextChunk,
    ToolCallChunk,
)
from adapters.llm.pace import READ_EVERY_S
from tests.fakes.http_answers import Given, opened
from tests.fakes.model_server import Call, ModelServer, Round
from tests.fixtures_http import Handler
from tests.fixtures_providers import ASKED, WIRES, everything, serving
from tests.fixtures_tls import certificate, serving_tls

WORDS = tuple(f"word{n} " for n in range(300))
CALLS = (Call("core__get_logs", {"product": "checkout", "limit": 5}),)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_fast_answer_comes_whole_in_few_pieces(wire: str) -> None:
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
async def test_a_fast_answer_that_is_cut_tells_all_that_came(wire: str) -> None:
    async with serving(wire, [Round(text=WORDS, pace_s=0.001, cut_at=200)]) as (provider, _):
        chunks = await everything(provider, ASKED)

    texts = [chunk.text for chunk in chunks if isinstance(chunk, TextChunk)]
    assert "".join(WORDS).startswith("".join(texts))
    assert isinstance(chunks[-1], ErrorChunk)
    assert chunks[-1].kind in {ErrorKind.CUT, ErrorKind.UNREACHABLE}


@pytest.mark.parametrize("wire", WIRES)
async def test_who_leaves_while_a_read_waits_hangs_up_within_100_ms(wire: str) -> None:
    script = [Round(text=WORDS * 10, pace_s=0.001)]
    async with serving(wire, script) as (provider, server):
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
            task.cancel()
            async with asyncio.timeout(0.1):
                await server.disconnected.wait()


@pytest.mark.parametrize("wire", WIRES)
async def test_connections_of_fast_answers_are_used_again(wire: str) -> None:
    script = [Round(text=WORDS, pace_s=0.001)] * 2
    async with serving(wire, script) as (provider, server):
        first = await everything(provider, ASKED)
        second = await everything(provider, ASKED)

    assert [type(chunks[-1]) for chunks in (first, second)] == [DoneChunk, DoneChunk]
    assert server.connections == 1


async def rest_of(body: Body) -> bytes:
    return b"".join([part async for part in _parts(body)])


async def _parts(body: Body) -> AsyncIterator[bytes]:
    while part := await body.more():
        yield part


async def test_what_comes_during_a_rest_is_read_after_it() -> None:
    """The socket is left alone, not only the reader: that is what wakes nobody."""
    on = asyncio.Event()
    round_ = Round(text=("one ", "two ", "three"), hold=on, hold_at=3)
    async with ModelServer([round_]) as server, http_client() as client:
        url = f"{server.url}/v1/chat/completions"
        async with client.stream("POST", url, json={"model": "m"}) as response:
            body = Body(response)
            read = await body.more()
            await server.started.wait()
            async with asyncio.TaskGroup() as tasks:
                reader = tasks.create_task(body.more(2 * READ_EVERY_S))
                on.set()
                await asyncio.sleep(READ_EVERY_S)
                while_resting = reader.done()
            read += reader.result()
            read += await rest_of(body)

    assert not while_resting
    assert read.endswith(b"data: [DONE]\n\n")


async def test_an_answer_without_a_connection_is_read_at_once() -> None:
    body = Body(opened(Request("GET", URL(), {}, None, times_of(1, 1)), Given(200, b"whole")))

    assert [await body.more(60.0), await body.more(60.0)] == [b"whole", b""]


async def test_a_rest_ends_with_who_waits_for_it() -> None:
    never = asyncio.Event()
    round_ = Round(text=("one ", "two ", "three"), hold=never, hold_at=2)
    async with ModelServer([round_]) as server, http_client() as client:
        url = f"{server.url}/v1/chat/completions"
        async with client.stream("POST", url, json={"model": "m"}) as response:
            body = Body(response)
            await body.more()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await body.more(60.0)
            never.set()
            read = await rest_of(body)

    assert read.endswith(b"data: [DONE]\n\n")


STEPS = 60


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


def transport_of(answer: Answer) -> Any:
    assert answer.wire is not None
    assert answer.wire.connection is not None
    return answer.wire.connection.transport


ALL = b"".join(b"%d," % number for number in range(STEPS))


async def read_in_rests(client: HttpClient, url: str) -> tuple[bytes, int, bool]:
    """What came, in how many reads, and whether its connection heard of what comes at the end."""
    async with client.stream("GET", url) as response, aclosing(Body(response)) as body:
        transport = transport_of(response)
        raw = transport._ssl_protocol._transport if url.startswith("https") else transport
        read, reads = b"", 0
        try:
            while part := await body.more(0.02):
                read, reads = read + part, reads + 1
        except aiohttp.ClientPayloadError:
            return read, reads, raw.is_reading()
        return read, reads, raw.is_reading()


async def test_an_answer_is_read_whole_where_nobody_waits_for_its_socket() -> None:
    async with TestServer(stepping()) as server, http_client() as client:
        read, reads, hears = await read_in_rests(client, str(server.make_url("/")))

    assert read == ALL
    assert reads < STEPS / 3
    assert hears, "a connection that is kept could not be closed"


async def test_one_over_tls_too(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    file = certificate(tmp_path, "localhost")
    trust = ssl.create_default_context(cafile=str(file))
    async with serving_tls(file, in_steps) as url, http_client(tls=trust) as client:
        found = [await read_in_rests(client, f"{url}/{n}") for n in range(2)]

    assert [(read, hears) for read, _, hears in found] == [(ALL, True)] * 2
    assert all(reads < STEPS / 3 for _, reads, _ in found)


async def test_one_that_breaks_off_tells_all_that_came() -> None:
    async with TestServer(stepping()) as server, http_client() as client:
        read, _, hears = await read_in_rests(client, str(server.make_url("/cut")))

    assert read == ALL
    assert not hears


async def test_while_it_flows_its_socket_is_left_alone_between_reads_too() -> None:
    async with (
        TestServer(stepping()) as server,
        http_client() as client,
        client.stream("GET", str(server.make_url("/"))) as response,
        aclosing(Body(response)) as body,
    ):
        transport = transport_of(response)
        read = await body.more()
        read += await body.more(0.02)
        left_alone = not transport.is_reading()
        read += await body.more()
        hears = transport.is_reading()
        read += await rest_of(body)

    assert left_alone
    assert hears
    assert read == ALL


async def test_a_rest_without_anything_is_followed_by_a_wait() -> None:
    """What comes after it is given when it comes."""

    async def late(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"first")
        await asyncio.sleep(0.1)
        await response.write(b"second")
        return response

    async with (
        TestServer(stepping(late)) as server,
        http_client() as client,
        client.stream("GET", str(server.make_url("/"))) as response,
        aclosing(Body(response)) as body,
    ):
        began = asyncio.get_running_loop().time()
        read = [await body.more(), await body.more(0.01), await body.more(60.0)]
        took_s = asyncio.get_running_loop().time() - began

    assert read == [b"first", b"second", b""]
    assert took_s < 1.0


def stepping(handler: Handler = in_steps) -> web.Application:
    app = web.Application()
    app.router.add_get("/{tail:.*}", handler)
    return app
