"""Servers that break HTTP, against every kind of client: each answer belongs to its own request,
and a fault ends within the deadline with an error, after which the next call works."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace

import httpx2
import pytest

from adapters.audit.http import AuditHttp
from adapters.control_plane.client import HttpControlPlane
from adapters.control_plane.port import ControlOrder, Endpoint
from adapters.errors import AdapterError
from adapters.http.client import http_client
from adapters.http.errors import mapped_errors
from adapters.http.transport import Route
from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.llm.messages import Message, Role, TextChunk
from adapters.llm.registry import create
from adapters.mcp.http_transport import sdk_client
from adapters.observe.backend import Backend
from adapters.platform.http_platform import HttpPlatform
from bot.ports.failures import SurfaceFailed
from bot.slack.api.web_api import create_api, slack_session
from tests.fakes.capabilities import call_context
from tests.fixtures_peers import OK, Peer, listening
from tests.fixtures_providers import ASKED, config_for, everything, joined
from tools.errors import CapabilityUnavailable, InvalidArguments, UpstreamFailed

READ_S = 0.8  # the deadline of the faulty calls
FAILED = "failed"
Ask = Callable[[str], Awaitable[str]]
"""Asks about a word; gives the word that the answer is about, or FAILED."""


@dataclass(frozen=True)
class Kind:
    """A kind of client, and how its server answers about a word."""

    opened: Callable[[str, float], AbstractAsyncContextManager[Ask]]
    answer: Callable[[bytes], bytes]


def sized(body: bytes, status: bytes = b"200 OK", more: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\n%scontent-length: %d\r\n\r\n%s" % (status, more, len(body), body)


def zipped(body: bytes, layers: int = 1) -> bytes:
    return sized(body, more=b"content-encoding: " + b", ".join([b"gzip"] * layers) + b"\r\n")


def chunked(body: bytes) -> bytes:
    return OK + b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


CHUNKS = OK + b"transfer-encoding: chunked\r\n\r\n"


def about(word: bytes) -> bytes:
    return sized(b'{"name": "%s", "app_name": "%s"}' % (word, word))


@asynccontextmanager
async def model(url: str, read_s: float) -> AsyncIterator[Ask]:
    provider = create(config_for("openai", url, timeout_s=read_s))

    async def ask(word: str) -> str:
        question = replace(ASKED, messages=(Message(Role.USER, f"word{word}word"),))
        first = joined(await everything(provider, question))[0]
        return first.text if isinstance(first, TextChunk) else FAILED

    try:
        yield ask
    finally:
        await provider.aclose()


def model_answer(word: bytes) -> bytes:
    delta = {"choices": [{"index": 0, "delta": {"content": word.decode()}}]}
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    events = "".join(f"data: {json.dumps(each)}\n\n" for each in (delta, end))
    return chunked(f"{events}data: [DONE]\n\n".encode())


@asynccontextmanager
async def backend(url: str, read_s: float) -> AsyncIterator[Ask]:
    async with http_client(base_url=url, connect_s=0.5, read_s=read_s) as client:
        loki = Backend("Loki", client)

        async def ask(word: str) -> str:
            try:
                return str(json.loads((await loki.get("/", {"q": f"word{word}word"})).body)["name"])
            except (UpstreamFailed, CapabilityUnavailable, json.JSONDecodeError):
                return FAILED

        yield ask


@asynccontextmanager
async def platform(url: str, read_s: float) -> AsyncIterator[Ask]:
    async with http_client(base_url=url, connect_s=0.5, read_s=read_s) as client:
        made = HttpPlatform(client, {"platform:all": "token"}.__getitem__)
        call = call_context(connection_ids=frozenset({"platform:all"}))

        async def ask(word: str) -> str:
            try:
                return (await made.application(f"word{word}word", call)).name
            except (UpstreamFailed, CapabilityUnavailable):
                return FAILED

        yield ask


@asynccontextmanager
async def control_plane(url: str, read_s: float) -> AsyncIterator[Ask]:
    async with http_client(connect_s=0.5, read_s=read_s) as client:
        plane = HttpControlPlane(client, {"": ""}.__getitem__)
        endpoint = Endpoint(url=f"{url}/{{product}}", timeout_s=2 * read_s)

        async def ask(word: str) -> str:
            order = ControlOrder(endpoint, f"word{word}word", "restart", "checkout", {}, "U1")
            body = (await plane.send(order)).body
            return str(body["name"]) if isinstance(body, dict) else FAILED

        yield ask


@asynccontextmanager
async def outgoing(url: str, read_s: float) -> AsyncIterator[Ask]:
    """The audit log's sink says nothing but a status: about odd sizes it says 409."""
    sink = AuditHttp(f"{url}/word{{size}}word", Route(connect_s=0.5, read_s=read_s))

    async def ask(word: str) -> str:
        try:
            await sink.put_checkpoint(int(word), "line")
        except AdapterError as error:
            return word if error.status == 409 and int(word) % 2 else FAILED
        return FAILED if int(word) % 2 else word

    try:
        yield ask
    finally:
        await sink.aclose()


def outgoing_answer(word: bytes) -> bytes:
    return sized(b"ok", b"409 Conflict" if int(word) % 2 else b"200 OK")


@asynccontextmanager
async def slack(url: str, read_s: float) -> AsyncIterator[Ask]:
    async with slack_session() as session:
        api = create_api("xoxb-1", f"{url}/", session, timeout_s=read_s)

        async def ask(word: str) -> str:
            try:
                return str((await api.call("users.info", user=f"word{word}word")).get("name"))
            except SurfaceFailed:
                return FAILED

        yield ask


@asynccontextmanager
async def mcp(url: str, read_s: float) -> AsyncIterator[Ask]:
    """The client that the MCP SDK is given. It speaks httpx2, over ours."""
    async with http_client(connect_s=0.5, read_s=read_s) as client, sdk_client(client, "x") as sdk:

        async def ask(word: str) -> str:
            try:
                return str((await sdk.post(f"{url}/", json=f"word{word}word")).json()["name"])
            except (AdapterError, httpx2.HTTPError, json.JSONDecodeError, KeyError):
                return FAILED

        yield ask


@asynccontextmanager
async def kubernetes(url: str, _read_s: float) -> AsyncIterator[Ask]:
    api = KubernetesApi(Access(url, None, str))

    async def ask(word: str) -> str:
        try:
            return str(json.loads(await api.get(f"/word{word}word"))["name"])
        except (UpstreamFailed, InvalidArguments, CapabilityUnavailable, json.JSONDecodeError):
            return FAILED

    try:
        yield ask
    finally:
        await api.aclose()


def slack_answer(word: bytes) -> bytes:
    return sized(b'{"ok": true, "name": "%s"}' % word, more=b"content-type: application/json\r\n")


KINDS = {
    "model": Kind(model, model_answer),
    "backend": Kind(backend, about),
    "platform": Kind(platform, about),
    "control plane": Kind(control_plane, about),
    "outgoing": Kind(outgoing, outgoing_answer),
    "MCP": Kind(mcp, about),
}
SLACK = Kind(slack, slack_answer)  # aiohttp's client, which slack-sdk is built on
# Its deadline is minutes long, which is too long for most of the faults.
PATIENT = {"Kubernetes": Kind(kubernetes, about)}
every_kind = pytest.mark.parametrize(
    "kind", [*KINDS.values(), *PATIENT.values()], ids=[*KINDS, *PATIENT]
)


async def read_command(reader: asyncio.StreamReader) -> bytes:
    """Read one request; the word it asks about, a number."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    body = await reader.readexactly(int(length[1])) if length else b""
    found = re.search(rb"word(\d+)word", head + body)
    assert found is not None
    return found[1]


TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"
STRAY = {
    "an unasked 408": TIMED_OUT,
    "a stray answer": sized(b'{"name": "stray"}'),
    "a stray answer in chunks": chunked(b'{"name": "stray"}'),
    "a line of nothing": b"\r\n",
    "an interim answer": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "the end of chunks": b"0\r\n\r\n",
    "no HTTP": b"\x00\xff",
    "half a line of a head": b"HTTP/1.1 200 O",
    "a head without its last line": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    "an answer that asks to go on": b"HTTP/1.1 100 Continue\r\n\r\n",
    "an answer with bare line ends": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
    "the end of a chunk": b"\r\n1a\r\n",
    "a goodbye of HTTP/2": b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0",
    "an alert of TLS": b"\x15\x03\x03\0\x02\x01\0",
    "an answer to another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
}


NOTHING = b"HTTP/1.1 204 No Content\r\n"
# A first answer with more bytes than its Content-Length.
LONGER = {
    "204 with a body": NOTHING + b"Content-Length: 5\r\n\r\nhello",
    "204 and another answer": NOTHING + b"\r\n" + sized(b"stray"),
    "304 with a body": b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello",
    "a body longer than its length": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi" + sized(b"stray"),
    "chunks with a trailer": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-T: 1\r\n\r\n" + sized(b"stray"),
    **{
        f"chunks that end with {end!r}": CHUNKS + b"2\r\nhi\r\n" + end + chunked(b"stray")
        for end in (b"0;x=1\r\n\r\n", b"000\r\n\r\n", b"0\r\nX-T: 1\r\n\r\n", b"0 \r\n\r\n")
    },
    "a chunk like an end of chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n" + sized(b"stray"),
    "a length beside chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0\r\n\r\n" + sized(b"stray"),
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 7\r\n\r\nhistray",
    "the same length twice": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi" + TIMED_OUT,
    "a head with bare line ends": b"HTTP/1.1 200 OK\nContent-Length: 0\n\n" + NOTHING + b"\r\n",
    "a head with one bare line end": b"HTTP/1.1 204 No Content\r\nX: y\r\n\n" + NOTHING + b"\r\n",
    "another head with a bare line end": b"HTTP/1.1 304 Not Modified\n\r\n" + NOTHING + b"\r\n",
    "a bare line end after an interim answer": b"HTTP/1.1 103 Early Hints\n\n" + NOTHING + b"\r\n" + NOTHING + b"\r\n",
    "an interim answer before and an answer after": b"HTTP/1.1 103 Early Hints\r\n\r\n" + NOTHING + b"\r\n" + NOTHING + b"\r\n",
    "a folded header": b"HTTP/1.1 200 OK\r\nX: y\r\n Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + NOTHING + b"\r\n",
    "chunks of an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: x, chunked\r\n\r\n0\r\n\r\n" + NOTHING + b"\r\n",
    "chunks in bare lines": b"HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n0\r\n\r\n" + NOTHING + b"\r\n",
    "trailers in bare lines": CHUNKS + b"2\r\nhi\r\n0\r\nX: y\n\n" + NOTHING + b"\r\n",
    "a negative chunk": CHUNKS + b"-1\r\n\r\n0\r\n\r\n" + NOTHING + b"\r\n",
    "a compressed answer with more behind it": zipped(gzip.compress(b"hi")) + NOTHING + b"\r\n",
    "a compressed body with more behind it": zipped(gzip.compress(b"hi") + b"x") + NOTHING + b"\r\n",
}  # fmt: skip


@pytest.mark.parametrize("first", LONGER.values(), ids=LONGER.keys())
async def test_bytes_after_an_answer_are_not_the_next_answer(first: bytes) -> None:
    answers = iter([first])

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            word = await read_command(reader)
            writer.write(next(answers, sized(word)))

    async with listening(peer) as url, http_client(base_url=url) as client, asyncio.timeout(20):
        with suppress(AdapterError), mapped_errors():
            await client.get("/word11word")
        told = [(await client.get(f"/word{word}word")).text for word in ("22", "33")]

    assert told == ["22", "33"]


@pytest.mark.parametrize("end", [b"0\r\n\r\n", b"0;x=1\r\nX-T: 1\r\n\r\n"])
@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000])
async def test_chunks_that_arrive_in_pieces_keep_their_connection(end: bytes, piece: int) -> None:
    connections: list[int] = []
    sent = CHUNKS + chunk(b"a\n0\r\n\r\nb") + chunk(b"c") + end

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        while await read_command(reader):
            for at in range(0, len(sent), piece):
                writer.write(sent[at : at + piece])
                await asyncio.sleep(0.001)

    async with listening(peer) as url, http_client(base_url=url) as client, asyncio.timeout(20):
        told = [(await client.get(f"/word{word}word")).text for word in ("11", "22", "33")]

    assert told == ["a\n0\r\n\r\nbc"] * 3
    assert connections == [1]


async def answers_about(kind: Kind, stray: bytes, pause_s: float) -> list[str]:
    """The answers about 11, 22, 33, 44 and 55, with `stray` so long after the first."""
    is_sent = asyncio.Event()

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            answer = kind.answer(await read_command(reader))
            if is_sent.is_set():
                writer.write(answer)
            elif pause_s:
                writer.write(answer)
                await asyncio.sleep(pause_s)
                writer.write(stray)
                is_sent.set()
            else:
                is_sent.set()
                writer.write(answer + stray)

    async with listening(peer) as url, kind.opened(url, 10) as ask, asyncio.timeout(20):
        first = await ask("11")
        await is_sent.wait()
        return [first, *[await ask(word) for word in ("22", "33", "44", "55")]]


every_stray = pytest.mark.parametrize("stray", STRAY.values(), ids=STRAY.keys())
every_pause = pytest.mark.parametrize("pause_s", [0.05, 0.0], ids=["while idle", "with the answer"])


@every_kind
@every_stray
@every_pause
async def test_each_answer_belongs_to_its_own_request(
    kind: Kind, stray: bytes, pause_s: float
) -> None:
    assert await answers_about(kind, stray, pause_s) == ["11", "22", "33", "44", "55"]


@every_stray
@every_pause
async def test_slack_answers_no_request_with_the_answer_of_another(
    stray: bytes, pause_s: float
) -> None:
    first, *rest = await answers_about(SLACK, stray, pause_s)
    assert first in ("11", FAILED)  # aiohttp reads an answer and what follows it together
    assert rest == ["22", "33", "44", "55"]


@pytest.mark.parametrize("kind", [*KINDS.values(), SLACK], ids=[*KINDS, "Slack"])
async def test_a_408_that_crosses_a_request_fails_only_that_request(kind: Kind) -> None:
    """The server's real answer follows, and must not become the answer to the next request."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            word = await read_command(reader)
            if word == b"22":
                writer.write(TIMED_OUT)
                await asyncio.sleep(0.05)
            writer.write(kind.answer(word))

    async with listening(peer) as url, kind.opened(url, 10) as ask, asyncio.timeout(20):
        told = [await ask(word) for word in ("11", "22", "33", "44")]
    assert told == ["11", FAILED, "33", "44"]


@pytest.mark.parametrize(
    "kind", [*KINDS.values(), *PATIENT.values(), SLACK], ids=[*KINDS, *PATIENT, "Slack"]
)
@pytest.mark.parametrize("status", [b"301", b"302", b"303", b"307", b"308"])
async def test_a_redirect_to_another_host_is_an_error(kind: Kind, status: bytes) -> None:
    visits: list[bytes] = []

    async def elsewhere(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visits.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(kind.answer(b"22"))

    async with AsyncExitStack() as stack:
        other = await stack.enter_async_context(listening(elsewhere))
        places = iter([other.replace("127.0.0.1", "localhost"), other.removeprefix("http:")])

        async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while word := await read_command(reader):
                place = next(places, "")
                location = b"location: %s/word22word\r\n" % place.encode()
                moved = sized(b"", status + b" Moved", location)
                writer.write(moved if place else kind.answer(word))

        url = await stack.enter_async_context(listening(peer))
        ask = await stack.enter_async_context(kind.opened(url, 10))
        async with asyncio.timeout(20):
            answers = [await ask(word) for word in ("12", "22", "33")]

    assert answers == [FAILED, FAILED, "33"]
    assert visits == []


def after_its_head(*parts: bytes, every_s: float = 0.1) -> Peer:
    """What is sent to a first request; the last part again and again, until the client leaves."""

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(every_s)
        while not reader.at_eof():
            writer.write(parts[-1])
            await writer.drain()
            await asyncio.sleep(every_s)

    return peer


ZIPPED = OK + b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
EMPTY_MEMBER = gzip.compress(b"")


def nested() -> bytes:
    """A few hundred bytes that become gigabytes of empty members, layer by layer."""
    body = EMPTY_MEMBER * 2_000_000
    for _ in range(3):
        body = gzip.compress(body)
    return body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


FAULTS = {
    "a malformed chunk": after_its_head(CHUNKS, b"zz\r\nhello\r\n", b""),
    "a malformed head": after_its_head(b"HTP/1.1 nonsense\r\n\r\n", b""),
    "a head without an end": after_its_head(OK, b"x: y\r\n", every_s=0.02),
    "a body byte by byte": after_its_head(CHUNKS, chunk(b" "), every_s=0.02),
    "a chunk's head without an end": after_its_head(CHUNKS, b"3;a=", b"b", every_s=0.02),
    "interim answers without an end": after_its_head(b"HTTP/1.1 103 x\r\n\r\n", every_s=0.02),
    "a negative chunk": after_its_head(CHUNKS, b"-1\r\nhello\r\n", b""),
    "a chunk of more than 64 bits": after_its_head(CHUNKS, b"1" + b"0" * 17 + b"\r\n", b"x"),
    "a chunk's extension of a megabyte": after_its_head(CHUNKS, b"1;" + b"a" * (1 << 20), b""),
    "a header of ten megabytes": after_its_head(OK + b"x: " + b"y" * (10 << 20), b""),
    "a header byte by byte": after_its_head(OK + b"x: ", b"y", every_s=0.02),
    "a hundred thousand headers": after_its_head(OK + b"a: b\r\n" * 100_000 + b"\r\n", b""),
    "two different lengths": after_its_head(
        OK + b"content-length: 2\r\ncontent-length: 9\r\n\r\n{}", b""
    ),
    "a length that is no number": after_its_head(OK + b"content-length: +2\r\n\r\n{}", b""),
    "a length of more than 64 bits": after_its_head(
        OK + b"content-length: 99999999999999999999\r\n\r\n{", b" ", every_s=0.02
    ),
    "an unasked compression": after_its_head(
        sized(b"\x28\xb5\x2f\xfd", more=b"content-encoding: zstd\r\n"), b""
    ),
    "another unasked compression": after_its_head(
        sized(b"\x0b\x01\x80hi\x03", more=b"content-encoding: br\r\n"), b""
    ),
    "a compression cut short": after_its_head(zipped(gzip.compress(b"{}" * 999)[:20]), b""),
    "trailers without an end": after_its_head(CHUNKS, b"0\r\n", b"a: b\r\n", every_s=0.02),
    "another protocol": after_its_head(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", b"x"
    ),
    "two layers by two headers": after_its_head(
        sized(EMPTY_MEMBER, more=b"content-encoding: gzip\r\n" * 2), b""
    ),
    "silence within compressed data": after_its_head(ZIPPED + chunk(EMPTY_MEMBER[:10]), b""),
    "compressed data that becomes nothing": after_its_head(
        # Empty blocks that are flushed: https://www.rfc-editor.org/rfc/rfc1951#section-3.2.4
        ZIPPED + chunk(EMPTY_MEMBER[:10]), chunk(b"\x00\x00\x00\xff\xff"), every_s=0.02
    ),
    "four layers of empty members": after_its_head(zipped(nested(), 4), b""),
    "empty members without an end": after_its_head(zipped(EMPTY_MEMBER * 100_000), b""),
}  # fmt: skip


# To aiohttp these are whole answers that are no JSON, so their connection is kept.
WHOLE = {"two layers by two headers", "four layers of empty members", "a compression cut short"}
FAULTY = {
    **{f"{what}-{name}": (kind, FAULTS[what]) for name, kind in KINDS.items() for what in FAULTS},
    **{f"{what}-Slack": (SLACK, FAULTS[what]) for what in FAULTS if what not in WHOLE},
}


@pytest.mark.parametrize(("kind", "fault"), FAULTY.values(), ids=FAULTY.keys())
async def test_a_fault_ends_in_time_and_the_next_call_works(kind: Kind, fault: Peer) -> None:
    faulty = True

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal faulty
        word = await read_command(reader)
        if faulty:
            faulty = False
            await fault(reader, writer)
        else:
            writer.write(kind.answer(word))
            await reader.read()

    async with AsyncExitStack() as stack:
        ask = await stack.enter_async_context(
            kind.opened(await stack.enter_async_context(listening(peer)), READ_S)
        )
        async with asyncio.timeout(30):
            assert await ask("11") == FAILED
        assert await ask("22") == "22"


async def test_a_large_compressed_answer_does_not_block_the_loop() -> None:
    bomb = gzip.compress(bytes(50_000_000), compresslevel=1)

    async def peer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(zipped(bomb))
        await reader.read()

    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with listening(peer) as url, http_client(base_url=url) as client:
        watching = asyncio.ensure_future(watch())
        answer = await client.get("/")
        watching.cancel()
    assert len(answer.content) == 50_000_000
    assert turns > 100  # the body came in four reads
