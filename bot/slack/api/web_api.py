"""The one seam to Slack's Web API: a call, its answer, and what can go wrong, in our terms.

SurfaceGone               message, channel or membership is gone
SurfaceFailed             everything else; `retryable` says whether trying again may help
├── RateLimited           429: wait `retry_after_s`
├── Refused               Slack said no, with its own error code
│   └── LockedOut         to everything we may ask: the token is not taken
└── Unreachable           no usable answer; the call may have taken effect
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp
from aiohttp import (
    ClientHandlerType,
    ClientRequest,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    ServerDisconnectedError,
    TCPConnector,
    TooManyRedirects,
)
from aiohttp.connector import Connection
from aiohttp.tracing import Trace
from pydantic import JsonValue
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from adapters.http.network import has_unread
from adapters.http.tls import ssl_context
from bot.ports.failures import MessageGone, SurfaceFailed, SurfaceGone
from tools.output import clean_words

_LIBRARY_LOGGER = "kortex.slack_libraries"


def framework_logger() -> logging.Logger:
    """The logger for Slack's libraries. It stays at WARNING, because they log payloads below that."""
    logger = logging.getLogger(_LIBRARY_LOGGER)
    logger.setLevel(logging.WARNING)
    return logger


Answer = Mapping[str, JsonValue]

# Slack answers in well under a second; its own acknowledgements time out after 3.
TIMEOUT_S = 10.0
# What a 429 without a usable Retry-After is taken for, and the most that one may ask of us.
_DEFAULT_RETRY_AFTER_S = 30.0
_MAX_RETRY_AFTER_S = 300.0
_MOST_CODE = 100  # characters of an error's code, which people see

# https://docs.slack.dev/reference/methods, the errors of each: these mean that there is no place or
# person to notify any more.
_GONE = frozenset(
    ["cannot_reply_to_message", "channel_not_found", "is_archived", "is_inactive", "not_in_channel",
     "thread_not_found"]
)  # fmt: skip
# Of every method: they say that the token is taken for nothing at all, perhaps only for now.
_LOCKED_OUT = frozenset(
    ["account_inactive", "ekm_access_denied", "invalid_auth", "not_authed", "org_login_required",
     "token_expired", "token_revoked"]
)  # fmt: skip
_TRANSIENT = frozenset(
    ["fatal_error", "internal_error", "request_timeout", "service_unavailable", "team_added_to_org",
     "update_failed"]
)  # fmt: skip
_RATE_LIMITED = frozenset({"ratelimited", "rate_limited"})
# What slack-sdk raises for a token that is no header, and for answers that are not an object of JSON.
_UNREADABLE = (AttributeError, RecursionError, RuntimeError, TypeError, ValueError)
# Methods that only read take their arguments in the query; Slack ignores JSON bodies there.
_READS = (
    "conversations.", "files.getUploadURLExternal", "files.info", "users.", "usergroups.", "team.",
    "auth.", "bots.", "chat.getPermalink",
)  # fmt: skip


class RateLimited(SurfaceFailed):
    """Slack counted too many calls of this method."""

    status = 429

    def __init__(self, method: str, retry_after_s: float) -> None:
        super().__init__(f"{method}: rate limited for {retry_after_s:g} s", retryable=True)
        self.method = method
        self.retry_after_s = retry_after_s


class Refused(SurfaceFailed):
    """Slack answered and said no. `messages` are what it says is wrong, `needed` the scopes it wants."""

    def __init__(
        self, method: str, code: str, messages: Sequence[str] = (), needed: str = ""
    ) -> None:
        wants = f" (the app needs {needed})" if needed else ""
        super().__init__(f"{method}: {code}{wants}", retryable=code in _TRANSIENT)
        self.code = code
        self.messages = tuple(messages)


class LockedOut(Refused):
    """Slack refuses the token for every method. Messages are kept for later."""


class Unreachable(SurfaceFailed):
    """Timed out, cut, or answered with something that is not an answer."""

    def __init__(self, method: str, what: str, status: int | None = None) -> None:
        """`status`: that of the HTTP answer, where one came."""
        super().__init__(f"{method}: {what}", retryable=True)
        self.what = what
        self.status = status


class WebApi:
    """The Web API over one session. One per bot token; safe for concurrent use.

    `client` is slack-sdk's, for the few calls that need their arguments in another form.
    """

    def __init__(
        self, client: AsyncWebClient, session: aiohttp.ClientSession, timeout_s: float
    ) -> None:
        self.client = client
        self._session = session
        self._timeout_s = timeout_s

    async def call(self, method: str, **arguments: JsonValue) -> Answer:
        if self._session.closed:  # slack-sdk would open one of its own
            raise Unreachable(method, "could not be sent")
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._sent(method, arguments)
        except TimeoutError as error:
            raise Unreachable(method, f"no answer within {self._timeout_s:g} s") from error
        except SlackApiError as error:
            raise _mapped(method, *_parts(error)) from None
        except aiohttp.TooManyRedirects as error:
            raise Unreachable(method, f"HTTP {error.status}, not followed", error.status) from error
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(method, type(error).__name__) from error
        except _UNREADABLE as error:
            raise Unreachable(method, "not sent, or not an answer") from error
        if not isinstance(answer.data, dict):
            raise Unreachable(method, "unreadable answer")
        return answer.data

    async def _sent(self, method: str, arguments: dict[str, JsonValue]) -> AsyncSlackResponse:
        if method.startswith(_READS):
            return await self.client.api_call(method, http_verb="GET", params=arguments)
        return await self.client.api_call(method, json=arguments)


def create_api(
    token: str, base_url: str, session: aiohttp.ClientSession, timeout_s: float = TIMEOUT_S
) -> WebApi:
    """A client on the shared session, without retry handlers.

    slack_sdk's default handler repeats a POST when the connection drops, which posts twice. Callers
    here look for their message before they post again.
    """
    client = AsyncWebClient(
        token=token,
        base_url=base_url,
        session=session,
        retry_handlers=[],
        logger=framework_logger(),
    )
    return WebApi(client, session, timeout_s)


def refusal_of(error: SlackApiError) -> str:
    """Slack's code where it takes the token for nothing at all, else ""."""
    code = _code(_parts(error)[2])
    return code if code in _LOCKED_OUT else ""


def _parts(error: SlackApiError) -> tuple[int, Mapping[str, str], object]:
    match error.response:
        case AsyncSlackResponse() as answer:
            return answer.status_code, answer.headers, answer.data
        case aiohttp.ClientResponse() as answer:
            return answer.status, answer.headers, None
        case _:
            return 0, {}, None


def _mapped(
    method: str, status: int, headers: Mapping[str, str], answer: object
) -> SurfaceGone | SurfaceFailed:
    code = _code(answer)
    if status == 429 or code in _RATE_LIMITED:
        return RateLimited(method, _retry_after_s(headers))
    if not code:
        return Unreachable(method, f"HTTP {status}, not an answer", status)
    if code in _LOCKED_OUT:
        return LockedOut(method, code)
    if code == "message_not_found":
        return MessageGone(f"{method}: {code}")
    if code in _GONE:
        return SurfaceGone(f"{method}: {code}")
    return Refused(method, code, _messages(answer), _needed(answer))


def _messages(answer: object) -> list[str]:
    told = answer.get("response_metadata") if isinstance(answer, dict) else None
    said = told.get("messages") if isinstance(told, dict) else None
    return [each for each in said if isinstance(each, str)] if isinstance(said, list) else []


def _needed(answer: object) -> str:
    needed = answer.get("needed") if isinstance(answer, dict) else None
    return clean_words(needed, _MOST_CODE) if isinstance(needed, str) else ""


def _code(answer: object) -> str:
    code = answer.get("error") if isinstance(answer, dict) else None
    return clean_words(code, _MOST_CODE) if isinstance(code, str) else ""


def _retry_after_s(headers: Mapping[str, str]) -> float:
    try:
        seconds = float(headers.get("Retry-After", ""))
    except ValueError:
        return _DEFAULT_RETRY_AFTER_S
    if not 0 <= seconds < float("inf"):
        return _DEFAULT_RETRY_AFTER_S
    # Slack counts in whole seconds; 0 would make a busy loop of us.
    return min(max(seconds, 1.0), _MAX_RETRY_AFTER_S)


CONNECTIONS: Final = 100  # enough for edits of hundreds of live answers, which are paced anyway
LONGEST_S: Final = 30.0  # of any request; most callers have a shorter deadline of their own


@asynccontextmanager
async def slack_session() -> AsyncIterator[ClientSession]:
    """A session that is closed at the end. Its requests raise TooManyRedirects for any redirect."""
    tls = await asyncio.to_thread(ssl_context)  # reads files
    async with ClientSession(
        connector=_CleanConnector(limit=CONNECTIONS, ssl=tls),
        cookie_jar=DummyCookieJar(),
        middlewares=(_no_redirects,),
        response_class=_Response,
        timeout=ClientTimeout(total=LONGEST_S),
    ) as session:
        yield session


class _CleanConnector(TCPConnector):
    """Drops a kept connection that has received data: it would be the next request's answer."""

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: ClientTimeout
    ) -> Connection:
        for _ in range(CONNECTIONS):
            connection = await super().connect(req, traces, timeout)
            if not _has_data(connection):
                return connection
            connection.close()
        raise ServerDisconnectedError("each connection had data before a request")


def _has_data(connection: Connection) -> bool:
    if connection.protocol is not None and connection.protocol.should_close:
        return True
    if connection.transport is None or connection.transport.is_closing():
        return True
    return has_unread(connection.transport.get_extra_info("socket"))


class _Response(ClientResponse):
    async def start(self, connection: Connection) -> ClientResponse:
        """Closes the connection after a 408, which may answer no request at all."""
        protocol = connection.protocol  # an empty answer releases the connection at once
        await super().start(connection)
        if self.status == 408 and protocol is not None:
            protocol.close()
        return self


async def _no_redirects(request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
    """Slack's API has none, and slack-sdk would follow them with what it sends."""
    response = await handler(request)
    if response.status in range(301, 400) and response.status != 304:
        response.close()
        raise TooManyRedirects(response.request_info, (), status=response.status)
    return response
