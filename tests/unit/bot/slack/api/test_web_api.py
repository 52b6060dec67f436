"""The seam to the Web API, against a server that misbehaves in every known way."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import JsonValue

from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import (
    RateLimited,
    Refused,
    Unreachable,
    WebApi,
    create_api,
    slack_session,
)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with slack_session() as made:
        yield made


@pytest.fixture
def serve(
    aiohttp_server: Callable[[web.Application], Awaitable[TestServer]],
    session: aiohttp.ClientSession,
) -> Callable[[Handler], Awaitable[WebApi]]:
    async def started(handler: Handler) -> WebApi:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", handler)
        server = await aiohttp_server(app)
        return create_api("xoxb-test", str(server.make_url("/api/")), session, timeout_s=0.5)

    return started


Serve = Callable[[Handler], Awaitable[WebApi]]


def answering(
    *, json: object = None, text: str | None = None, status: int = 200, **headers: str
) -> Handler:
    """A server that always says the same."""

    async def handler(_request: web.Request) -> web.StreamResponse:
        if text is not None:
            kind = headers.pop("kind", "text/html")
            return web.Response(text=text, status=status, content_type=kind, headers=headers)
        return web.json_response(json, status=status, headers=headers)

    return handler


async def test_an_answer_is_returned(serve: Serve) -> None:
    api = await serve(answering(json={"ok": True, "ts": "1.2"}))

    assert (await api.call("chat.postMessage", channel="C1", text="x"))["ts"] == "1.2"


@pytest.mark.parametrize(
    "code", ["message_not_found", "channel_not_found", "is_archived", "not_in_channel", "thread_not_found"]
)  # fmt: skip
async def test_a_deleted_target_is_reported_as_gone(serve: Serve, code: str) -> None:
    api = await serve(answering(json={"ok": False, "error": code}))

    with pytest.raises(SurfaceGone, match=code):
        await api.call("chat.update", channel="C1", ts="1.2", text="x")


@pytest.mark.parametrize(
    ("code", "retryable"),
    [("invalid_blocks", False), ("missing_scope", False), ("internal_error", True)],
)
async def test_a_refusal_keeps_slack_s_code(serve: Serve, code: str, *, retryable: bool) -> None:
    api = await serve(answering(json={"ok": False, "error": code}))

    with pytest.raises(Refused) as caught:
        await api.call("chat.update", channel="C1", ts="1.2", text="x")

    assert (caught.value.code, caught.value.retryable) == (code, retryable)


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        ("chat:write", "chat.update: missing_scope (the app needs chat:write)"),
        (None, "chat.update: missing_scope"),
        ([2**64], "chat.update: missing_scope"),
    ],
)
async def test_a_missing_scope_is_named(serve: Serve, needed: object, words: str) -> None:
    body = {"ok": False, "error": "missing_scope", "needed": needed}
    api = await serve(answering(json=body))

    with pytest.raises(Refused) as caught:
        await api.call("chat.update", channel="C1", ts="1.2", text="x")

    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("0", 1.0), ("-3", 30.0), ("soon", 30.0), ("nan", 30.0), ("inf", 30.0), ("9999", 300.0)],
)  # fmt: skip
async def test_a_rate_limit_has_its_wait(serve: Serve, header: str, seconds: float) -> None:
    body = {"ok": False, "error": "ratelimited"}
    api = await serve(answering(json=body, status=429, **{"Retry-After": header}))

    with pytest.raises(RateLimited) as caught:
        await api.call("chat.update", channel="C1", ts="1.2", text="x")

    assert (caught.value.retry_after_s, caught.value.method) == (seconds, "chat.update")


async def test_a_rate_limit_without_a_body_or_header_is_recognised(serve: Serve) -> None:
    api = await serve(answering(text="slow down", status=429))

    with pytest.raises(RateLimited):
        await api.call("chat.update", channel="C1", ts="1.2", text="x")


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        ("<html>bad gateway</html>", "text/html", 502),
        ("upstream connect error", "text/plain", 503),
        ("{broken", "application/json", 200),
        ("", "application/json", 200),
        ("plain", "text/plain", 200),
        ("[1]", "application/json", 200),
        ("null", "application/json", 500),
    ],
)
async def test_an_unreadable_body_may_be_retried(
    serve: Serve, body: str, kind: str, status: int
) -> None:
    api = await serve(answering(text=body, status=status, kind=kind))

    with pytest.raises(Unreachable) as caught:
        await api.call("chat.update", channel="C1", ts="1.2", text="x")

    assert caught.value.retryable


async def test_silence_ends_at_the_timeout(serve: Serve) -> None:
    never = asyncio.Event()

    async def handler(_request: web.Request) -> web.StreamResponse:
        await never.wait()
        return web.Response()

    api = await serve(handler)

    with pytest.raises(Unreachable, match=r"no answer within 0\.5 s"):
        await api.call("chat.update", channel="C1", ts="1.2", text="x")
    never.set()


async def test_a_request_with_a_lost_reply_is_not_repeated(serve: Serve) -> None:
    arrived: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        arrived.append(request.match_info["method"])
        assert request.transport
        request.transport.close()
        return web.Response()

    api = await serve(handler)

    with pytest.raises(Unreachable):
        await api.call("chat.postMessage", channel="C1", text="x")

    assert arrived == ["chat.postMessage"]


async def test_a_refused_connection_may_be_retried(
    session: aiohttp.ClientSession, unused_tcp_port: int
) -> None:
    api = create_api("xoxb-test", f"http://127.0.0.1:{unused_tcp_port}/api/", session)

    with pytest.raises(SurfaceFailed) as caught:
        await api.call("chat.update", channel="C1", ts="1.2", text="x")

    assert caught.value.retryable


async def test_reads_use_the_query_and_writes_use_json(serve: Serve) -> None:
    seen: list[tuple[str, str, dict[str, str], str]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        token = request.headers["Authorization"]
        seen.append((request.method, request.content_type, dict(request.query), token))
        return web.json_response({"ok": True})

    api = await serve(handler)
    await api.call("conversations.replies", channel="C1", ts="1.2", include_all_metadata=True)
    await api.call("chat.update", channel="C1", ts="1.2", text="x")

    query = {"channel": "C1", "ts": "1.2", "include_all_metadata": "1"}
    assert seen[0][0] == "GET"
    assert seen[0][2:] == (query, "Bearer xoxb-test")
    assert seen[1][:3] == ("POST", "application/json", {})


@pytest.mark.parametrize("text", ["⚠ déployé & <b>", "half of one: \ud83d", "", "\x00"])
async def test_every_text_arrives_unchanged(serve: Serve, text: str) -> None:
    seen: list[object] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(json.loads(await request.text()))
        return web.json_response({"ok": True, "echo": text})

    api = await serve(handler)
    block: JsonValue = {"type": "markdown", "text": text}
    answer = await api.call("chat.update", text=text, blocks=[block], unfurl_links=False)

    assert seen == [{"text": text, "blocks": [block], "unfurl_links": False}]
    assert answer["echo"] == text


async def test_a_call_on_a_closed_session_may_be_retried(
    serve: Serve, session: aiohttp.ClientSession
) -> None:
    api = await serve(answering(json={"ok": True}))
    await session.close()

    with pytest.raises(Unreachable, match="could not be sent"):
        await api.call("chat.update", channel="C1", ts="1.2", text="x")


async def test_a_body_that_is_nested_too_deep_may_be_retried(serve: Serve) -> None:
    api = await serve(answering(text="[" * 100_000, kind="application/json"))

    with pytest.raises(Unreachable):
        await api.call("chat.update", channel="C1", ts="1.2", text="x")


async def test_behind_a_proxy_the_proxy_is_used(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, session: aiohttp.ClientSession
) -> None:
    seen: list[tuple[str, str, str]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append((request.method, request.host, await request.text()))
        return web.json_response({"ok": True, "ts": "1.2"})

    there = await serve(handler)
    monkeypatch.setenv("HTTP_PROXY", there.client.base_url.removesuffix("/api/"))
    api = create_api("xoxb-test", "http://slack.test/api/", session, timeout_s=0.5)

    await api.call("conversations.info", channel="C1")
    await api.call("chat.update", channel="C1")

    assert seen == [("GET", "slack.test", ""), ("POST", "slack.test", '{"channel": "C1"}')]


@pytest.mark.parametrize("method", ["chat.update", "conversations.info"])
async def test_a_redirect_is_not_followed(serve: Serve, method: str) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        seen.append(request.match_info["method"])
        return web.Response(status=307, headers={"Location": "/api/elsewhere"})

    api = await serve(handler)

    with pytest.raises(Unreachable, match="HTTP 307"):
        await api.call(method, channel="C1", ts="1.2", text="x")

    assert seen == [method]


async def test_no_cookie_is_kept(serve: Serve) -> None:
    sent: list[dict[str, str]] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        sent.append(dict(request.cookies))
        response = web.json_response({"ok": True})
        response.set_cookie("d", "xoxd-session")
        return response

    api = await serve(handler)
    await api.call("chat.update", channel="C1")
    await api.call("chat.update", channel="C1")

    assert sent == [{}, {}]


@pytest.mark.parametrize("token", ["x\r\nX-Other: y", "x\ny"])
async def test_the_token_is_not_a_default_header(
    serve: Serve, session: aiohttp.ClientSession, token: str
) -> None:
    there = await serve(answering(json={"ok": True}))
    api = create_api(token, there.client.base_url, session)

    with pytest.raises(Unreachable, match="not sent"):
        await api.call("chat.update", channel="C1")


async def test_a_compressed_answer_is_refused(serve: Serve) -> None:
    api = await serve(answering(text="x", kind="application/gzip"))

    with pytest.raises(Unreachable, match="unreadable"):
        await api.call("chat.update", channel="C1")
