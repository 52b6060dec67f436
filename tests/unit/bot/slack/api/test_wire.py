"""What the wire sends and reads is what aiohttp's own request does."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.slack.api.wire import FORM, JSON, UNTIMED, Answered, Wire

_HEADERS = {"User-Agent": "kortex", "Authorization": "Bearer xoxb-test"}
_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
queries = st.dictionaries(texts.filter(bool), texts, max_size=4)


@dataclass
class _Server:
    """Says what it is told to, in those pieces; keeps what it was asked."""

    answers: Sequence[Sequence[bytes]]
    ends: bool = False
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    connections: int = 0
    address: str = ""

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *rest = head.strip().split("\r\n")
                fields = {
                    name.lower(): value for name, value in (each.split(": ", 1) for each in rest)
                }
                body = await reader.readexactly(int(fields.get("content-length", "0")))
                self.asked.append((line, fields, body))
                pieces = self.answers[min(len(self.asked), len(self.answers)) - 1]
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
                if self.ends or not pieces:
                    return
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            return
        finally:
            writer.close()


@asynccontextmanager
async def _serving(server: _Server) -> AsyncIterator[aiohttp.ClientSession]:
    listening = await asyncio.start_server(server.talk, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    server.address = f"http://127.0.0.1:{port}/api/"
    async with aiohttp.ClientSession() as session:
        yield session
    listening.close()


async def _by_aiohttp(
    session: aiohttp.ClientSession, server: _Server, query: dict[str, str], body: bytes | None
) -> Answered:
    kind = FORM if body is None else JSON
    async with session.request(
        "GET" if body is None else "POST",
        f"{server.address}some.method",
        params=query,
        data=body,
        headers={"Content-Type": kind, **_HEADERS},
        timeout=UNTIMED,
        allow_redirects=False,
    ) as response:
        return Answered(response.status, response.headers, await response.read())


async def _by_wire(
    session: aiohttp.ClientSession, server: _Server, query: dict[str, str], body: bytes | None
) -> Answered:
    wire = Wire(session, server.address, _HEADERS)
    if body is None:
        return await wire.get("some.method", query)
    return await wire.post("some.method", body)


def _told(answered: Answered | aiohttp.ClientError) -> object:
    if isinstance(answered, aiohttp.ClientError):
        return type(answered)
    return answered.status, list(answered.headers.items()), answered.body


async def _outcomes(
    answers: Sequence[Sequence[bytes]], query: dict[str, str], body: bytes | None, *, ends: bool
) -> list[object]:
    told: list[object] = []
    for ask in (_by_aiohttp, _by_wire):
        server = _Server(answers, ends)
        async with _serving(server) as session:
            seen: list[object] = []
            for _ in range(2):
                try:
                    seen.append(_told(await ask(session, server, query, body)))
                except aiohttp.ClientError as error:
                    seen.append(_told(error))
                if ends:
                    await asyncio.sleep(0.01)  # so that it is known to be closed
        asked = [(line, fields | {"host": ""}, sent) for line, fields, sent in server.asked]
        told.append((seen, asked, server.connections))
    return told


@given(queries, st.none() | st.binary(max_size=300))
@settings(max_examples=60)
def test_what_is_asked_is_what_aiohttp_would_ask(query: dict[str, str], body: bytes | None) -> None:
    sent = query if body is None else {}

    theirs, ours = asyncio.run(_outcomes([[_OK]], sent, body, ends=False))

    assert ours == theirs


def _answer(body: bytes, how: str, status: int) -> bytes:
    head = f"HTTP/1.1 {status} Said\r\nX-Slack-Req-Id: é\r\n".encode()
    match how:
        case "length":
            return head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
        case "gzip":
            packed = gzip.compress(body)
            size = f"Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
            return head + size.encode() + packed
        case "chunked":
            rest = f"{len(body):x}\r\n".encode() + body + b"\r\n" if body else b""
            return head + b"Transfer-Encoding: chunked\r\n\r\n" + rest + b"0\r\n\r\n"
        case "close":
            size = f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n"
            return head + size.encode() + body
        case "continue":
            return b"HTTP/1.1 100 Continue\r\n\r\n" + _answer(body, "length", status)
        case "cut":
            return head + f"Content-Length: {len(body) + 1}\r\n\r\n".encode() + body
        case "nothing":
            return b""
        case _:
            return b"nonsense\r\n\r\n"


@given(
    st.binary(max_size=200),
    st.sampled_from(["length", "gzip", "chunked", "close", "continue", "cut", "nothing", "bad"]),
    st.sampled_from([200, 204, 301, 307, 304, 429, 500]),
    st.lists(st.integers(1, 300), max_size=4),
    st.none() | st.just(b"{}"),
)
@settings(max_examples=120, deadline=None)
def test_what_is_answered_is_read_as_aiohttp_reads_it(
    body: bytes, how: str, status: int, cuts: list[int], asked: bytes | None
) -> None:
    whole = _answer(body, how, status)
    marks = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    pieces = [whole[start:end] for start, end in pairwise(marks)]

    theirs, ours = asyncio.run(_outcomes([pieces], {}, asked, ends=how in {"close", "cut"}))

    assert ours == theirs


@pytest.mark.parametrize("body", [None, b"{}"])
async def test_only_a_question_is_asked_again_where_a_kept_connection_is_closed(
    body: bytes | None,
) -> None:
    told = await _outcomes([[_OK], [], [_OK]], {}, body, ends=False)

    theirs, ours = told
    assert ours == theirs


@pytest.mark.parametrize("token", ["x\r\nX-Other: y", "x\ny", "x\0"])
async def test_a_token_is_no_header_of_its_own(token: str) -> None:
    server = _Server([[_OK]])
    async with _serving(server) as session:
        wire = Wire(session, server.address, {"Authorization": f"Bearer {token}"})

        with pytest.raises(ValueError, match="header"):
            await wire.post("chat.update", b"{}")

    assert not server.asked


async def test_a_call_that_is_given_up_leaves_no_connection_behind() -> None:
    server = _Server([[b"HTTP/1.1 200 OK\r\n"], [_OK]])
    async with _serving(server) as session:
        wire = Wire(session, server.address, _HEADERS)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await wire.post("chat.update", b"{}")

        answered = await wire.post("chat.update", b"{}")

    assert (answered.body, server.connections) == (b"{}", 2)
