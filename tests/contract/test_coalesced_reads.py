"""An answer that flows is read in even steps; nothing of it is lost, late or left open by that."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx
import pytest

from adapters.arriving import Body
from adapters.http import http_client
from adapters.llm.messages import (
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    TextChunk,
    ToolCallChunk,
)
from adapters.llm.pace import READ_EVERY_S
from tests.fakes.model_server import Call, ModelServer, Round
from tests.fixtures_providers import ASKED, WIRES, everything, serving

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
    body = Body(httpx.Response(200, stream=httpx.ByteStream(b"whole")))

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
