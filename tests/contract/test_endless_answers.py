"""A model's answer that does not end, in bytes, in calls, in text or in time: every provider cuts it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing

import pytest

from adapters.llm import exchange, framing
from adapters.llm.framing import MAX_TEXT_CHARS
from adapters.llm.messages import ErrorChunk, ErrorKind, StreamChunk, TextChunk, Usage
from adapters.llm.registry import create
from tests.fakes import aws_frames
from tests.fakes.model_server import Call, Round
from tests.fixtures_providers import ASKED, WIRES, config_for, everything, serving

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
# What each wire sends that means nothing.
PINGS = {
    "anthropic": b'event: ping\ndata: {"type": "ping"}\n\n',
    "openai": b": OPENROUTER PROCESSING\n\n",
    "openai-responses": b'data: {"type": "keepalive"}\n\n',
    "ollama": b'{"message": {"content": ""}}\n',
    "bedrock": aws_frames.event("ping", {}),
    "nirmata": b'{"type": "ping"}\n',
}


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback needs no time to be reached."""
    monkeypatch.setattr(exchange, "_CONNECT_S", 0.0)


@asynccontextmanager
async def speaking(write: Write) -> AsyncIterator[str]:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            await reader.readuntil(b"\r\n\r\n")
            try:
                await write(writer)
            except ConnectionError:
                return

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def answer(wire: str, write: Write, timeout_s: float = 5.0) -> list[StreamChunk]:
    async with speaking(write) as url:
        provider = create(config_for(wire, url, timeout_s=timeout_s))
        try:
            async with asyncio.timeout(10):
                return await everything(provider, ASKED)
        finally:
            await provider.aclose()


def forever(piece: bytes, pause_s: float = 0.0) -> Write:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause_s)

    return write


def cut_for(chunks: list[StreamChunk], kind: ErrorKind, words: str) -> None:
    end = chunks[-1]
    assert isinstance(end, ErrorChunk)
    assert (end.kind, words in end.message, end.began) == (kind, True, True), end


@pytest.mark.parametrize("byte", [b" ", b"\n", b"x"])
@pytest.mark.parametrize("wire", WIRES)
async def test_incomplete_bytes_do_not_keep_a_round_alive(wire: str, byte: bytes) -> None:
    chunks = await answer(wire, forever(byte, 0.01), timeout_s=0.1)

    assert len(chunks) == 1
    end = chunks[0]
    assert isinstance(end, ErrorChunk)
    assert end.kind in {ErrorKind.TIMEOUT, ErrorKind.PROTOCOL}


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_byte_by_byte_is_cut_by_the_configured_timeout(
    wire: str,
) -> None:
    """One byte at a time: its first event would take minutes."""
    event = PINGS[wire]

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        for at in range(len(event)):
            writer.write(event[at : at + 1])
            await writer.drain()
            await asyncio.sleep(0.05)

    cut_for(await answer(wire, write, timeout_s=0.5), ErrorKind.TIMEOUT, "nothing whole for")


async def test_a_head_byte_by_byte_is_cut_by_the_timeout() -> None:
    (end,) = await answer("anthropic", _endless_head, timeout_s=0.1)
    assert isinstance(end, ErrorChunk)
    assert (end.kind, end.began) == (ErrorKind.TIMEOUT, False)


async def _endless_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nx: ")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("wire", WIRES)
async def test_pings_keep_an_answer_alive_until_the_round_limit(
    monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    monkeypatch.setattr(framing, "ROUND_LIMIT_S", 0.5)
    chunks = await answer(wire, forever(PINGS[wire], 0.01), timeout_s=0.4)
    cut_for(chunks, ErrorKind.TIMEOUT, "did not come to an end")


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_of_too_many_bytes_is_cut(
    monkeypatch: pytest.MonkeyPatch, wire: str
) -> None:
    monkeypatch.setattr(exchange, "MAX_ANSWER_BYTES", 1024 * 1024)
    chunks = await answer(wire, forever(PINGS[wire] * 1000))
    cut_for(chunks, ErrorKind.PROTOCOL, "more than 1048576 bytes")


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_of_too_much_text_is_cut_at_the_limit(wire: str) -> None:
    async with serving(wire, [Round(text=("word " * 50_000,) * 8)]) as (provider, _):
        chunks = await everything(provider, ASKED)

    said = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
    assert len(said) == MAX_TEXT_CHARS
    cut_for(chunks, ErrorKind.PROTOCOL, f"more than {MAX_TEXT_CHARS} characters")


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_of_too_many_calls_makes_none(wire: str) -> None:
    calls = (Call("core__get_current_time", {}),) * 200
    async with serving(wire, [Round(calls=calls)]) as (provider, _):
        chunks = await everything(provider, ASKED)

    assert len(chunks) == 1
    cut_for(chunks, ErrorKind.PROTOCOL, "more than 128 tool calls")


def whole(wire: str) -> bytes:
    """The beginning of an answer that is not streamed and never ends."""
    return json.dumps({"content": wire}).encode()[:-2]


@pytest.mark.parametrize("wire", ["anthropic", "openai", "openai-responses"])
async def test_a_complete_answer_without_an_end_is_cut(wire: str) -> None:
    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + whole(wire))
        while True:
            writer.write(b"x" * 100_000)
            await writer.drain()

    cut_for(await answer(wire, write), ErrorKind.PROTOCOL, "more than 8388608 bytes")


@pytest.mark.parametrize(
    ("wire", "usage"), [("anthropic", Usage(100, 0, 0, 1)), ("openai", None), ("bedrock", None)]
)
async def test_an_answer_cut_before_its_first_word_reports_its_usage(
    wire: str, usage: Usage | None
) -> None:
    async with serving(wire, [Round(text=("a",), cut_at=1)]) as (provider, _):
        (end,) = await everything(provider, ASKED)

    assert isinstance(end, ErrorChunk)
    assert end.usage == usage
    assert end.began
