"""The one seam to Slack's Web API: a call, its answer, and what can go wrong, in our terms.

SurfaceGone               message, channel or membership is gone
SurfaceFailed             everything else; `retryable` says whether trying again may help
├── RateLimited           429: wait `retry_after_s`
├── Refused               Slack said no, with its own error code
│   └── LockedOut         to everything we may ask: the token is not taken
└── Unreachable           no usable answer; the call may have taken effect
"""

import asyncio
from collections.abc import Mapping, Sequence

import aiohttp
from pydantic import JsonValue
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from bot.ports.failures import MessageGone, SurfaceFailed, SurfaceGone
from tools.output import clean_words

Answer = Mapping[str, JsonValue]

# Slack answers in well under a second; its own acknowledgements time out after 3.
TIMEOUT_S = 10.0
# What a 429 without a usable Retry-After is taken for, and the most that one may ask of us.
_DEFAULT_RETRY_AFTER_S = 30.0
_MAX_RETRY_AFTER_S = 300.0
_MOST_CODE = 100  # characters of an error's code, which people are told

# https://docs.slack.dev/reference/methods, the errors of each: these mean that there is nobody to
# tell any more.
_GONE = frozenset(
    {
        "cannot_reply_to_message",
        "channel_not_found",
        "is_archived",
        "is_inactive",
        "not_in_channel",
        "thread_not_found",
    }
)
# Of every method: they say that the token is taken for nothing at all, perhaps only for now.
_LOCKED_OUT = frozenset(
    {
        "account_inactive",
        "ekm_access_denied",
        "invalid_auth",
        "not_authed",
        "org_login_required",
        "token_expired",
        "token_revoked",
    }
)
_TRANSIENT = frozenset(
    {
        "fatal_error",
        "internal_error",
        "request_timeout",
        "service_unavailable",
        "team_added_to_org",
        "update_failed",
    }
)
_RATE_LIMITED = frozenset({"ratelimited", "rate_limited"})
# Methods that only read take their arguments in the query; Slack ignores JSON bodies there.
_READS = (
    "conversations.",
    "files.getUploadURLExternal",
    "files.info",
    "users.",
    "usergroups.",
    "team.",
    "auth.",
    "chat.getPermalink",
)


class RateLimited(SurfaceFailed):
    """Slack counted too many calls of this method."""

    def __init__(self, method: str, retry_after_s: float) -> None:
        super().__init__(f"{method}: rate limited for {retry_after_s:g} s", retryable=True)
        self.method = method
        self.retry_after_s = retry_after_s


class Refused(SurfaceFailed):
    """Slack answered and said no. `messages` are what it says is wrong, if it does."""

    def __init__(self, method: str, code: str, messages: Sequence[str] = ()) -> None:
        super().__init__(f"{method}: {code}", retryable=code in _TRANSIENT)
        self.code = code
        self.messages = tuple(messages)


class LockedOut(Refused):
    """Slack takes nothing from this token now; what people must get to see is kept for later."""


class Unreachable(SurfaceFailed):
    """Timed out, cut, or answered with something that is not an answer."""

    def __init__(self, method: str, what: str) -> None:
        super().__init__(f"{method}: {what}", retryable=True)


class WebApi:
    """The Web API over slack_sdk's client. One per bot token; safe for concurrent use."""

    def __init__(self, client: AsyncWebClient, timeout_s: float = TIMEOUT_S) -> None:
        self.client = client
        self._timeout_s = timeout_s

    async def call(self, method: str, **arguments: JsonValue) -> Answer:
        """One call, never repeated. Raises SurfaceGone, SurfaceFailed and its subclasses."""
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._send(method, arguments)
        except SlackApiError as error:
            raise _mapped(method, error) from error
        except TimeoutError as error:
            raise Unreachable(method, f"no answer within {self._timeout_s:g} s") from error
        except (aiohttp.ClientError, OSError, SlackClientError) as error:
            raise Unreachable(method, type(error).__name__) from error
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            # slack_sdk trips over bodies that are not JSON objects instead of reporting them.
            raise Unreachable(method, "unreadable answer") from error
        if not isinstance(answer, dict):
            raise Unreachable(method, "unreadable answer")
        return answer

    async def _send(self, method: str, arguments: Mapping[str, JsonValue]) -> object:
        if method.startswith(_READS):
            read = await self.client.api_call(method, http_verb="GET", params=_query(arguments))
            return read.data
        written = await self.client.api_call(method, json=dict(arguments))
        return written.data


def create_api(
    token: str,
    base_url: str,
    session: aiohttp.ClientSession,
    timeout_s: float = TIMEOUT_S,
) -> WebApi:
    """A client on the shared session, without retry handlers.

    slack_sdk's default handler sends a POST again when the connection drops before the answer, and
    so posts twice; whoever posts here looks for its message first instead.
    """
    client = AsyncWebClient(token=token, base_url=base_url, session=session, retry_handlers=[])
    return WebApi(client, timeout_s)


def _query(arguments: Mapping[str, JsonValue]) -> dict[str, str]:
    return {name: _text(value) for name, value in arguments.items() if value is not None}


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def refusal_of(error: SlackApiError) -> str:
    """Slack's code where it takes the token for nothing at all, else ""."""
    code = _read(error)[2]
    return code if code in _LOCKED_OUT else ""


def _mapped(method: str, error: SlackApiError) -> SurfaceGone | SurfaceFailed:
    status, headers, code = _read(error)
    if status == 429 or code in _RATE_LIMITED:
        return RateLimited(method, _retry_after_s(headers))
    if not code:
        return Unreachable(method, f"HTTP {status}, not an answer")
    if code in _LOCKED_OUT:
        return LockedOut(method, code)
    if code == "message_not_found":
        return MessageGone(f"{method}: {code}")
    if code in _GONE:
        return SurfaceGone(f"{method}: {code}")
    return Refused(method, code, _messages(error))


def _messages(error: SlackApiError) -> list[str]:
    data = getattr(error.response, "data", error.response)
    told = data.get("response_metadata") if isinstance(data, dict) else None
    said = told.get("messages") if isinstance(told, dict) else None
    return [each for each in said if isinstance(each, str)] if isinstance(said, list) else []


def _read(error: SlackApiError) -> tuple[int, Mapping[str, str], str]:
    """What there is of the response: slack_sdk hands over three different kinds of it."""
    response = error.response
    status = getattr(response, "status_code", None) or getattr(response, "status", None)
    headers = getattr(response, "headers", None)
    data = response if isinstance(response, dict) else getattr(response, "data", None)
    code = data.get("error") if isinstance(data, dict) else None
    return (
        status if isinstance(status, int) else 0,
        headers if isinstance(headers, Mapping) else {},
        clean_words(code, _MOST_CODE) if isinstance(code, str) else "",
    )


def _retry_after_s(headers: Mapping[str, str]) -> float:
    found = next((value for name, value in headers.items() if name.lower() == "retry-after"), "")
    try:
        seconds = float(found)
    except ValueError:
        return _DEFAULT_RETRY_AFTER_S
    if not 0 <= seconds < float("inf"):
        return _DEFAULT_RETRY_AFTER_S
    # Slack counts in whole seconds; 0 would make a busy loop of us.
    return min(max(seconds, 1.0), _MAX_RETRY_AFTER_S)
