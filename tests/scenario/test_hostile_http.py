"""Hostile requests over a raw socket, sent to a running bot: each is refused, none raises an error."""

import asyncio
import copy
import gzip
import hashlib
import hmac
import time
import zlib
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any
from urllib.parse import quote

import orjson
import pytest
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from slack_bolt.async_app import AsyncApp

from bot.slack.ingress.http_mode import PATH, create_http_handler
from bot.slack.listeners.bolt_app import create_bolt
from bot.slack.listeners.ports import IngressSettings
from bot.store.database import Database
from bot.web.ingest import PATH as INGEST
from bot.web.ingest import ingest_handler
from bot.web.listener import serving
from bot.web.server import create_web_app
from tests.fakes.stores import MemoryEvents
from tests.slack_ingress import IDENTITY, NOW, Ingress, command, mention, pressed, submitted

SECRET = "a signing secret"
TOKEN = "a token for programs"
Payload = dict[str, JsonValue]


class FixedClock:
    def now(self) -> datetime:
        return NOW


def bolt() -> AsyncApp:
    """Every listener, over fakes."""
    inside = Ingress(IngressSettings(IDENTITY, signing_secret=SECRET))
    return create_bolt(inside.settings, inside.ports, inside.background)


def signed(body: bytes, *headers: str, path: str = PATH) -> bytes:
    """A request with Slack's signature over the body, and further headers."""
    at = str(int(time.time()))
    mac = hmac.new(SECRET.encode(), b"v0:" + at.encode() + b":" + body, hashlib.sha256).hexdigest()
    own = (f"X-Slack-Request-Timestamp: {at}", f"X-Slack-Signature: v0={mac}", *headers)
    return raw(body, *own, path=path)


def raw(body: bytes, *headers: str, path: str = PATH) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: kortex", "Connection: close", *headers]
    if not any(line.startswith(("Content-Length", "Transfer")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


JSON = "Content-Type: application/json"
FORM = "Content-Type: application/x-www-form-urlencoded"
BODY = orjson.dumps(mention())
GZIP, DEFLATE = gzip.compress(BODY), zlib.compress(BODY)
BOMB = zlib.compress(bytes(64 << 20), level=1)
HOSTILE = {
    "gzip that is none": signed(BODY, JSON, "Content-Encoding: gzip"),
    "deflate that is none": signed(BODY, JSON, "Content-Encoding: deflate"),
    "brotli that is none": signed(BODY, JSON, "Content-Encoding: br"),
    "zstd that is none": signed(BODY, JSON, "Content-Encoding: zstd"),
    "gzip cut off": raw(GZIP[:-9], JSON, "Content-Encoding: gzip"),
    "gzip spoilt": raw(GZIP[:30] + b"\xff" * 9 + GZIP[39:], JSON, "Content-Encoding: gzip"),
    "deflate cut off": raw(DEFLATE[:9], JSON, "Content-Encoding: deflate"),
    "gzip for programs": raw(b"no", "Content-Encoding: gzip", path=INGEST),
    "gzip for programs with a token": raw(
        b"no", JSON, f"Authorization: Bearer {TOKEN}", "Content-Encoding: gzip", path=INGEST
    ),
    "a bomb": raw(BOMB, JSON, "Content-Encoding: deflate"),
    "a length that is a lie": raw(BODY, JSON, "Content-Length: 2000000"),
    "a length below zero": raw(BODY, JSON, "Content-Length: -1"),
    "a length that is no number": raw(BODY, JSON, "Content-Length: 1e3"),
    "two lengths": raw(BODY, JSON, "Content-Length: 4", "Content-Length: 5"),
    "length and chunks": raw(BODY, JSON, "Content-Length: 4", "Transfer-Encoding: chunked"),
    "a chunk of no size": raw(b"zz\r\n", JSON, "Transfer-Encoding: chunked"),
    "a chunk that is endless": raw(b"ffffffffffffffffff\r\n", JSON, "Transfer-Encoding: chunked"),
    "a header too long": raw(BODY, JSON, "X: " + "a" * 70_000),
    "too many headers": raw(BODY, JSON, *(f"X{n}: 1" for n in range(20_000))),
    "a folded header": raw(BODY, JSON, "X-A: 1\r\n b"),
    "no signature": raw(BODY, JSON),
    "a signature that is no text": raw(BODY, JSON, "X-Slack-Signature: v0=\u00ff"),
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n",
    "another method": b"TRACE " + raw(b"")[5:],
    "not UTF-8": signed(b"\xff\xfe", JSON),
    "a form of 1,000 fields": signed(b"a=1&" * 1_000, FORM),
    "a payload twice": signed(b"payload=%7B%7D&payload=%7B%7D", FORM),
}
ODD: dict[str, JsonValue] = {
    "null": None,
    "a list": [],
    "a number": 1,
    "a text": "x",
    "no event": {"type": "event_callback", "event": None},
    "a list of events": {"type": "event_callback", "event": []},
    "a list of nothing pressed": {"type": "block_actions", "actions": [None]},
    "a list as a view": {"type": "view_submission", "view": []},
}


class HttpSide:
    """The HTTP side of a bot, as it is served."""

    def __init__(self) -> None:
        self.port = 0

    async def status(self, sent: bytes) -> int:
        """Of the answer; 0 when the connection was closed without one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(sent)
            head = await reader.read(12)
        except ConnectionResetError:
            return 0
        finally:
            writer.close()
        return int(head[9:] or 0)


@pytest.fixture
async def server(tmp_path: object) -> AsyncIterator[HttpSide]:
    """Slack's events and events of programs, over fakes."""
    database = await Database.open(f"sqlite+aiosqlite:///{tmp_path}/kortex.db")
    server = HttpSide()
    app = create_web_app(
        database=database,
        slack_events=create_http_handler(bolt(), SECRET),
        ingest=ingest_handler(MemoryEvents(), TOKEN, FixedClock()),
    )
    async with serving(app, "127.0.0.1", 0) as server.port:
        yield server
    await database.close()


async def test_a_genuine_slack_request_is_accepted(server: HttpSide) -> None:
    assert await server.status(signed(BODY, JSON)) == 200


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_request_is_refused(
    server: HttpSide, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    status = await server.status(HOSTILE[name])
    assert status in (0, *range(400, 500))
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize("form", [False, True])
@pytest.mark.parametrize("name", ODD)
async def test_an_odd_body_with_a_valid_slack_signature_is_refused(
    server: HttpSide, name: str, form: bool, caplog: pytest.LogCaptureFixture
) -> None:
    body = orjson.dumps(ODD[name])
    sent = signed(b"payload=" + quote(body).encode(), FORM) if form else signed(body, JSON)
    assert await server.status(sent) in (400, 404)
    assert "Traceback" not in caplog.text


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, [], {}, 0, -1, 1.5, True, "", "x", [None], [[]], {"id": None}, [{}]]
)


@st.composite
def spoilt(draw: st.DrawFn) -> Payload:
    """A payload of Slack with some values changed or removed."""
    payload = draw(
        st.sampled_from(
            [mention(), pressed("turn:stop", "x"), submitted("x", "y"), command("help")]
        )
    )
    whole: Payload = orjson.loads(orjson.dumps(payload))
    for _ in range(draw(st.integers(1, 3))):
        _spoil(draw, whole)
    return whole


def _spoil(draw: st.DrawFn, whole: Payload) -> None:
    place: Any = whole
    path = draw(st.lists(st.integers(0, 30), min_size=1, max_size=4))
    for step in path:
        names = (
            list(place)
            if isinstance(place, dict)
            else range(len(place))
            if isinstance(place, list)
            else []
        )
        if not names:
            return
        name = list(names)[step % len(names)]
        below = place[name]
        if step == path[-1] or not isinstance(below, dict | list):
            place[name] = copy.deepcopy(draw(VALUES))
            return
        place = below


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(payload=spoilt())
def test_no_signed_body_causes_an_internal_error(payload: Payload) -> None:
    async def answered() -> int:
        app = web.Application()
        app.router.add_post(PATH, create_http_handler(bolt(), SECRET))
        server = HttpSide()
        async with serving(app, "127.0.0.1", 0) as server.port:
            return await server.status(signed(orjson.dumps(payload), JSON))

    assert asyncio.run(answered()) in range(200, 500)
