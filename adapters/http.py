"""The one place that opens HTTP clients, and the one table from foreign HTTP errors to ours.

aiohttp's connections under a small client of ours, with explicit limits, without the environment's
proxies, without redirects, and with an egress guard. What is asked belongs to each adapter.
"""

import email.utils
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Final, NamedTuple

import aiohttp

from adapters.address import InvalidURL, url_of
from adapters.egress import ReachableAddresses
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
from adapters.http_answer import Answer, Answered, DecodingError
from adapters.http_client import HttpClient, times_of
from adapters.transport import GuardedTransport
from adapters.trust import usual_trust

# The most specific class wins.
ERROR_TABLE: Final[Mapping[type[BaseException], type[AdapterError]]] = {
    aiohttp.ClientError: BadAnswer,
    aiohttp.ClientConnectionError: Unreachable,
    aiohttp.ClientPayloadError: Unreachable,
    aiohttp.InvalidURL: BadRequest,
    aiohttp.ServerTimeoutError: TimedOut,
    InvalidURL: BadRequest,
    DecodingError: BadAnswer,
    UnicodeEncodeError: BadRequest,
    TimeoutError: TimedOut,
    OSError: Unreachable,
}

_WORDS: Final[Mapping[type[AdapterError], str]] = {
    Unreachable: "cannot be reached",
    TimedOut: "did not answer in time",
    BadRequest: "was asked for something that is not a valid request",
    BadAnswer: "gave an answer that cannot be used",
}


@cache
def ssl_context() -> ssl.SSLContext:
    """The process's one TLS context with the usual trust: building one reads files for 20 ms."""
    return usual_trust()


@dataclass(frozen=True, slots=True)
class Way:
    """How a server is reached, whatever is asked of it.

    `tls` None is the usual trust, `proxy` empty is none. The headers hold credentials.
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tls: ssl.SSLContext | None = None
    proxy: str = field(default="", repr=False)
    connect_s: float = 5.0
    read_s: float = 60.0


DIRECT: Final = Way()


def http_client(
    *,
    base_url: str = "",
    headers: Mapping[str, str] | None = None,
    connect_s: float = 5.0,
    read_s: float = 60.0,
    max_connections: int = 100,
    allowed_hosts: frozenset[str] | None = None,
    tls: ssl.SSLContext | None = None,
    reachable: ReachableAddresses | None = None,
    proxy: str = "",
    ways: Mapping[str, Way] | None = None,
    keeps_cookies: bool = False,
) -> HttpClient:
    """A new client; the caller owns it and calls `aclose`.

    `read_s` is the longest silence within one answer, `connect_s` covers waiting for a free
    connection and making one. With `allowed_hosts`, a request to any other host name or address
    raises `Refused` before a connection is opened; so does, for every client, one outside of what
    `adapters.egress` confines the process to. `tls` replaces the usual trust, for a server with an
    authority of its own. With `reachable`, names are resolved once per connection, and one that leads
    to any other address raises `Refused`.

    With `proxy` (`http://user:password@proxy:3128`) every request goes through it: to an https
    server as a tunnel (CONNECT). It has to be inside a confinement as well as the server. What a
    name leads to is then the proxy's to say, so `reachable` beside it raises ValueError.

    `ways` are of hosts that are reached by a way of their own: its trust, its proxy and its headers,
    of which a request's own come first. Their times are the client's. Cookies are sent back with
    `keeps_cookies` alone, for servers that are balanced by them.
    """
    if proxy and reachable is not None:
        raise ValueError("behind a proxy nobody knows to which address a name leads")
    limits = _Limits(max_connections, allowed_hosts, keeps_cookies)
    return HttpClient(
        _transport(Way(tls=tls, proxy=proxy), limits, reachable),
        base_url=base_url,
        headers=headers,
        times=times_of(connect_s, read_s),
        ways={_as_asked(host): _transport(way, limits) for host, way in (ways or {}).items()},
    )


class _Limits(NamedTuple):
    """Of all the ways of one client."""

    max_connections: int
    allowed: frozenset[str] | None
    keeps_cookies: bool


def _transport(
    way: Way, limits: _Limits, reachable: ReachableAddresses | None = None
) -> GuardedTransport:
    return GuardedTransport(
        way.tls,
        ssl_context,
        max_connections=limits.max_connections,
        allowed=limits.allowed,
        reachable=reachable,
        proxy=way.proxy,
        extra=way.headers,
        keeps_cookies=limits.keeps_cookies,
    )


def _as_asked(host: str) -> str:
    """A host as addresses have it."""
    return url_of(f"http://{f'[{host}]' if ':' in host else host}/").raw_host or ""


class mapped_errors:  # noqa: N801 - used as a context manager, reads as a verb
    """`with mapped_errors("Loki"):` turns foreign HTTP errors into ours, keeping the cause.

    `what` names the other side in messages. The foreign text is left out: it may hold a URL with
    a token. Our own errors and everything that is not about HTTP pass through.
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
            raise ours(f"{self._what} {_WORDS[ours]} ({_foreign_name(error)})") from error


def _ours(error: BaseException) -> type[AdapterError] | None:
    return next((ERROR_TABLE[kind] for kind in type(error).__mro__ if kind in ERROR_TABLE), None)


def _foreign_name(error: BaseException) -> str:
    """The most exact safe word for what happened: the system's own, else the class name."""
    cause: BaseException | None = error
    while isinstance(cause, Exception):  # a timeout's cause is a cancellation, which says nothing
        if isinstance(cause, OSError) and cause.errno and cause.strerror:
            return cause.strerror.split("[", 1)[0].strip() or type(cause).__name__
        error, cause = cause, cause.__cause__
    return type(error).__name__


def check_status(response: Answered, detail: str = "") -> None:
    """Raise the error of our tree that fits a status; 2xx passes.

    `detail` is the other side's own words, already free of secrets. The message names the host
    and path, never the query.
    """
    status = response.status_code
    if 200 <= status < 300:
        return
    url = response.request.url
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
    """How long the other side asks us to wait, in seconds.

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


async def read_capped(response: Answer, max_bytes: int) -> bytes:
    """The whole body of a streamed response, decompressed, at most `max_bytes`.

    Raises BadAnswer when it is larger (the rest is not read), Unreachable or TimedOut when it
    breaks off.
    """
    parts: list[bytes] = []
    size = 0
    host = response.request.url.host or ""
    with mapped_errors(host):
        async for part in response.aiter_bytes():
            size += len(part)
            if size > max_bytes:
                raise BadAnswer(f"{host} answered more than {max_bytes} bytes")
            parts.append(part)
    return b"".join(parts)
