"""Without an end mark, only a transfer with an announced end is trusted."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from adapters.llm.messages import DoneChunk, ErrorChunk, TextChunk
from adapters.llm.registry import create
from tests.fixtures_providers import ASKED, config_for, everything

LINES = b'{"id":"1","type":"Text","data":"half "}\n{"id":"2","type":"Text","data":"whole"}\n'
FIRST = LINES[: LINES.index(b"\n") + 1]


_LENGTH = re.compile(rb"(?i)content-length: (\d+)")


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


@asynccontextmanager
async def answering(headers: bytes, body: bytes) -> AsyncIterator[str]:
    """A server that answers every request with this and hangs up."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int((_LENGTH.search(asked) or [b"", b"0"])[1]))
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + headers + b"\r\n" + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    ("headers", "body", "end"),
    [
        (b"transfer-encoding: chunked\r\n", chunked(FIRST, LINES[len(FIRST) :], b""), DoneChunk),
        (b"content-length: %d\r\n" % len(LINES), LINES, DoneChunk),
        (b"transfer-encoding: chunked\r\n", chunked(FIRST), ErrorChunk),
        (b"content-length: %d\r\n" % len(LINES), FIRST, ErrorChunk),
        (b"", FIRST, ErrorChunk),
    ],
    ids=["chunked", "counted", "chunked and cut", "counted and cut", "ended by hanging up"],
)
async def test_an_answer_without_an_end_marker_is_refused(
    headers: bytes, body: bytes, end: type
) -> None:
    async with answering(headers, body) as url:
        provider = create(config_for("nirmata", url, timeout_s=5.0))
        chunks = await everything(provider, replace(ASKED, tools=()))
        await provider.aclose()

    assert isinstance(chunks[0], TextChunk)
    assert isinstance(chunks[-1], end)
