"""From httpx's errors and HTTP statuses to the error tree of `adapters.errors`."""

import email.utils
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Final

import httpx

from adapters.errors import (
    AdapterError,
    BadAnswer,
    BadRequest,
    NotFound,
    Overloaded,
    RateLimited,
    Refused,
    TimedOut,
    Unreachable,
)
from tools.errors import CapabilityUnavailable, UpstreamFailed

# The most specific class wins.
ERROR_TABLE: Final[Mapping[type[BaseException], type[AdapterError]]] = {
    httpx.HTTPError: BadAnswer,
    httpx.RequestError: Unreachable,
    httpx.TimeoutException: TimedOut,
    httpx.UnsupportedProtocol: BadRequest,
    httpx.LocalProtocolError: BadRequest,
    httpx.RemoteProtocolError: BadAnswer,
    httpx.DecodingError: BadAnswer,
    httpx.TooManyRedirects: BadAnswer,
    httpx.InvalidURL: BadRequest,
    httpx.CookieConflict: BadAnswer,
    httpx.StreamError: BadAnswer,
    UnicodeError: BadRequest,  # a name such as `xn--a-` included
    UnicodeDecodeError: BadAnswer,
    TimeoutError: TimedOut,
    OSError: Unreachable,
}

_WORDS: Final[Mapping[type[AdapterError], str]] = {
    Unreachable: "cannot be reached",
    TimedOut: "did not answer in time",
    BadRequest: "got an invalid request",
    BadAnswer: "gave an unusable answer",
}


class mapped_errors:  # noqa: N801 - used as a context manager, reads as a verb
    """`with mapped_errors("Loki"):` turns httpx's errors into ours and keeps the cause.

    `what` names the other side in messages. The foreign text is left out, because it may hold a URL
    with a token. Our own errors and errors that are not about HTTP pass through.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str = "the backend") -> None:
        self._what = what

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, AdapterError):
            return
        ours = _ours(error)
        if ours is not None:
            raise ours(f"{self._what} {_WORDS[ours]} ({_safe_name(error)})") from error


@contextmanager
def tool_errors(name: str) -> Iterator[None]:
    """Raises CapabilityUnavailable when `name` cannot be reached, UpstreamFailed for other failures."""
    try:
        with mapped_errors(name):
            yield
    except Unreachable as error:
        raise CapabilityUnavailable(error.message) from error
    except AdapterError as error:
        raise UpstreamFailed(error.message, error.status) from error


def _ours(error: BaseException) -> type[AdapterError] | None:
    return next((ERROR_TABLE[kind] for kind in type(error).__mro__ if kind in ERROR_TABLE), None)


def _safe_name(error: BaseException) -> str:
    cause: BaseException | None = error
    while isinstance(cause, Exception):  # a timeout's cause is a cancellation, which adds nothing
        if isinstance(cause, OSError) and cause.errno and cause.strerror:
            return cause.strerror.split("[", 1)[0].strip() or type(cause).__name__
        cause = cause.__cause__
    return type(error).__name__


def check_status(response: httpx.Response, detail: str = "") -> None:
    """Raise the error of our tree that fits a status; 2xx passes.

    `detail` is the other side's own words, already free of secrets. The message names the host
    and path, never the query.
    """
    if response.is_success:
        return
    status, url = response.status_code, response.request.url
    message = f"{url.host}{url.path} answered {status}" + (f": {detail}" if detail else "")
    raise _class_of(status)(message, status=status, retry_after_s=retry_after_s(response.headers))


def _class_of(status: int) -> type[AdapterError]:
    match status:
        case 401 | 403:
            return Refused
        case 404 | 410:
            return NotFound
        case 408 | 504:
            return TimedOut
        case 429:
            return RateLimited
        case _ if status >= 500:
            return Overloaded
        case _ if status >= 400:
            return BadRequest
        case _:
            return BadAnswer


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The wait that the other side asks for, in seconds.

    `retry-after-ms` (OpenAI, Azure) is more exact than `Retry-After`, which is a number of
    seconds or an HTTP date (RFC 9110 §10.2.3). None when absent or unreadable.
    """
    millis = _number(headers.get("retry-after-ms"))
    if millis is not None:
        return millis / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
