"""`POST /slack/events`: size, signature and shape are judged here, before Bolt sees a byte.

Bolt verifies the signature once more, and answers 500 to a malformed one; here that is 401.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias
from urllib.parse import parse_qsl

import structlog
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response
from slack_bolt.async_app import AsyncBoltRequest
from slack_sdk.signature import SignatureVerifier

from bot.slack.ingress.workspace_routing import Dispatches

_log = structlog.stdlib.get_logger(__name__)
PATH = "/slack/events"
_READ_TIMEOUT_S = 5.0
# Bolt takes orders from further headers (x-slack-bolt-*), which no signature covers.
_PASSED_ON = (
    "content-type", "x-slack-request-timestamp", "x-slack-signature", "x-slack-retry-num",
    "x-slack-retry-reason",
)  # fmt: skip
_OBJECTS = ("event", "view")
_TEXTS = ("type", "subtype", "action_id", "block_id", "callback_id", "command")
UNREADABLE = (ValueError, RecursionError, AttributeError, TypeError, LookupError)

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def create_http_handler(app: Dispatches, signing_secret: str) -> Handler:
    """The handler of `PATH`. Raises ValueError for an empty secret."""
    verifier = SignatureVerifier(signing_secret)

    async def handle(request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        if body is None:
            return _refuse(413, "body too large or too slow")
        text = _verified(verifier, request, body)
        if text is None:
            return _refuse(401, "bad signature")
        bolt_request = _parsed(request, text)
        if bolt_request is None:
            return _refuse(400, "unreadable body")
        try:
            answer = await app.async_dispatch(bolt_request)
        except UNREADABLE as error:
            # Listeners' errors end in Bolt's own handler. What comes out here is Bolt reading a
            # field of another kind than Slack's: signed with our secret, and still no payload.
            _log.warning("slack.http.invalid_payload", error=type(error).__name__)
            return _refuse(400, "unreadable body")
        return await to_aiohttp_response(answer)

    return handle


async def _body(request: web.Request) -> bytes | None:
    try:
        async with asyncio.timeout(_READ_TIMEOUT_S):
            return await request.read()
    except (TimeoutError, web.HTTPRequestEntityTooLarge):
        return None


def _verified(verifier: SignatureVerifier, request: web.Request, body: bytes) -> str | None:
    timestamp = request.headers.get("x-slack-request-timestamp")
    signature = request.headers.get("x-slack-signature")
    try:
        return body.decode() if verifier.is_valid(body, timestamp, signature) else None
    except (OverflowError, TypeError, ValueError):  # not a number, not ASCII, not UTF-8
        return None


def _parsed(request: web.Request, text: str) -> AsyncBoltRequest | None:
    headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    try:
        if _is_ambiguous(request.content_type, text):
            return None
        parsed = AsyncBoltRequest(body=text, headers=dict(headers))
        return None if _is_odd(parsed.body) else parsed
    except UNREADABLE:  # not JSON, too deep, or JSON that is no object
        return None


def _is_odd(body: object) -> bool:
    """Whether a field that Bolt reads without looking is of another kind than Slack's."""
    if not isinstance(body, dict):
        return True
    pressed = body.get("actions", [])
    if not isinstance(pressed, list):
        return True
    parts = [body, *pressed, *(body[name] for name in _OBJECTS if name in body)]
    return any(
        not isinstance(part, dict)
        or any(not isinstance(part.get(name), str | None) for name in _TEXTS)
        for part in parts
    ) or any("action_id" not in each for each in pressed)


def _is_ambiguous(content_type: str, text: str) -> bool:
    """Whether a form names its payload twice: readers would disagree on which one counts."""
    if content_type != "application/x-www-form-urlencoded":
        return False
    names = [name for name, _ in parse_qsl(text, keep_blank_values=True, max_num_fields=100)]
    return len(names) != len(set(names))


def _refuse(status: int, why: str) -> web.Response:
    _log.info("slack.http.refused", status=status, why=why)
    return web.json_response({"error": why}, status=status)
