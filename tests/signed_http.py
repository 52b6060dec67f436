"""Signed HTTP delivery to the app's request URL, as Slack does it without Socket Mode."""

import hashlib
import hmac
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp
import orjson

from bot.demo.workspace.delivery import Ack, Envelope
from bot.demo.workspace.json_access import JsonObject, as_object
from bot.demo.workspace.state import Workspace

# https://docs.slack.dev/apis/events-api/ ("Retries"): what x-slack-retry-reason may say.
TIMED_OUT, FAILED, REFUSED = "http_timeout", "connection_failed", "http_error"


def sign(signing_secret: str, timestamp: str, body: bytes) -> str:
    """`x-slack-signature`, version 0."""
    base = b"v0:" + timestamp.encode() + b":" + body
    return "v0=" + hmac.new(signing_secret.encode(), base, hashlib.sha256).hexdigest()


@asynccontextmanager
async def signed_http(workspace: Workspace, url: str) -> AsyncIterator[None]:
    """Deliver to that URL in place of Socket Mode; afterwards over the sockets again."""
    async with aiohttp.ClientSession() as session:
        now = workspace.setup.clocks.wall
        workspace.outbox.transport = SignedHttp(session, url, workspace.signing_secret, now)
        try:
            yield
        finally:
            workspace.outbox.transport = workspace.sockets


@dataclass(slots=True)
class SignedHttp:
    """Posts each envelope to one URL."""

    session: aiohttp.ClientSession
    request_url: str
    signing_secret: str = field(repr=False)
    now: Callable[[], float] = time.time

    async def send(self, envelope: Envelope, timeout_s: float) -> Ack:
        """Post once; 2xx within the time is an acknowledgement."""
        content_type, body = _encode(envelope)
        try:
            async with self.session.post(
                self.request_url,
                data=body,
                headers=self._headers(envelope, content_type, body),
                timeout=aiohttp.ClientTimeout(total=timeout_s),
                allow_redirects=False,
            ) as answer:
                return _ack(answer.status, answer.headers, await answer.read())
        except TimeoutError:
            return Ack(ok=False, reason=TIMED_OUT)
        except aiohttp.ClientError:
            return Ack(ok=False, reason=FAILED)

    def _headers(self, envelope: Envelope, content_type: str, body: bytes) -> dict[str, str]:
        timestamp = str(int(self.now()))
        headers = {
            "content-type": content_type,
            "user-agent": "Slackbot 1.0 (+https://api.slack.com/robots)",
            "x-slack-request-timestamp": timestamp,
            "x-slack-signature": sign(self.signing_secret, timestamp, body),
        }
        if envelope.attempt:
            headers["x-slack-retry-num"] = str(envelope.attempt)
            headers["x-slack-retry-reason"] = envelope.reason
        return headers


def _encode(envelope: Envelope) -> tuple[str, bytes]:
    match envelope.kind:
        case "events_api":
            return "application/json", orjson.dumps(envelope.payload)
        case "interactive":
            form = urlencode({"payload": orjson.dumps(envelope.payload).decode()})
        case "slash_commands":
            form = urlencode({name: str(value) for name, value in envelope.payload.items()})
    return "application/x-www-form-urlencoded", form.encode()


def _ack(status: int, headers: Mapping[str, str], body: bytes) -> Ack:
    if not 200 <= status < 300:
        may_retry = headers.get("x-slack-no-retry") != "1"
        return Ack(ok=False, reason=REFUSED, may_retry=may_retry)
    return Ack(ok=True, body=_response_payload(body))


def _response_payload(body: bytes) -> JsonObject | None:
    if not body.strip():
        return None
    try:
        return as_object(orjson.loads(body)) or None
    except orjson.JSONDecodeError:
        return {"text": body.decode(errors="replace")}
