"""Answers that never end, trickle, lie or stop half-way, through a plugin and the runner."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from adapters.plugins.manifest import checked
from adapters.plugins.yaml_source import parse_yaml
from bot.app.operator_tools import open_plugin
from tests.fakes.plugin_bridge import NAME, TOKEN, manifest
from tests.fakes.tools import bench
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy
from tools.records import ToolOutcome

POLICY = ToolPolicy(toolsets={"investigate": ("plugin__*",)})
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Write = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(write: Write) -> AsyncIterator[str]:
    """A server that sends exactly what `write` writes."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await write(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"\r\n")
    while True:
        writer.write(b"x" * 65_536)
        await writer.drain()


async def trickle(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"\r\n[")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def short_of_its_length(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b'Content-Length: 1000\r\n\r\n{"tickets": []}')
    await writer.drain()


async def stalled(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b'Content-Length: 1000\r\n\r\n{"tickets": [')
    await writer.drain()
    await asyncio.Event().wait()


async def never(writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


SOON = "100ms"  # for what never comes; the rest may take a busy machine's time


async def asked(url: str, monkeypatch: pytest.MonkeyPatch, limit: str = "10s") -> ToolOutcome:
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    async with AsyncExitStack() as stack:
        text = manifest(url).replace("timeout: 2s", f"timeout: {limit}")
        tool = open_plugin(checked(parse_yaml(text, "ticket.yaml")), stack)
        return await bench([tool], POLICY).run('{"product": "checkout"}', NAME)


@pytest.mark.parametrize(
    ("write", "limit", "code", "words"),
    [
        (endless, "10s", ToolErrorCode.UPSTREAM, "more than 524288 bytes"),
        (trickle, SOON, ToolErrorCode.TOOL_TIMEOUT, "ticket_search"),
        (short_of_its_length, "10s", ToolErrorCode.UNAVAILABLE, "ReadError"),
        (stalled, SOON, ToolErrorCode.TOOL_TIMEOUT, "ticket_search"),
        (never, SOON, ToolErrorCode.TOOL_TIMEOUT, "ticket_search"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_an_endless_answer_is_cut_at_a_limit(
    monkeypatch: pytest.MonkeyPatch, write: Write, limit: str, code: ToolErrorCode, words: str
) -> None:
    async with raw_server(write) as url:
        outcome = await asked(url, monkeypatch, limit)

    assert outcome.record.error_code is code
    assert words in outcome.content


def body(text: bytes) -> Write:
    async def write(writer: asyncio.StreamWriter) -> None:
        length = f"Content-Length: {len(text)}\r\n\r\n".encode()
        writer.write(HEAD + length + text)
        await writer.drain()

    return write


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"tickets": 1e999}', "not JSON"),
        (b'{"tickets": -Infinity}', "not JSON"),
        (b'{"tickets": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe{\x00}\x00", "not JSON"),
        (b'{"tickets": "\\ud800"}', "not JSON"),
        (b'{"tickets": [{"key": "first"}], "tickets": [{"key": "last"}]}', "last"),
        (b'{"tickets": [{"key": 1180591620717411303424}]}', "1.18059162"),
    ],
    ids=["1e999", "infinity", "5000 digits", "depth", "UTF-16", "surrogate", "twice", "2**70"],
)
async def test_invalid_json_is_returned_as_text_with_a_note(
    monkeypatch: pytest.MonkeyPatch, text: bytes, words: str
) -> None:
    async with raw_server(body(text)) as url:
        outcome = await asked(url, monkeypatch)

    assert outcome.record.ok
    assert words in outcome.content
    json.loads(outcome.content, parse_constant=pytest.fail)


async def test_one_hanging_backend_does_not_block_another(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        raw_server(never) as hung,
        raw_server(body(b'{"tickets": []}')) as well,
        asyncio.TaskGroup() as group,
    ):
        slow = group.create_task(asked(hung, monkeypatch))
        quick = await asked(well, monkeypatch)
        assert not slow.done()
        slow.cancel()

    assert quick.record.ok
