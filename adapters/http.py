"""The one place that opens HTTP clients, and the one table from foreign HTTP errors to ours.

httpx's interface over aiohttp's transport, with explicit limits, without the environment's
proxies, without redirects, and with an egress guard. What is asked belongs to each adapter.
"""

import base64
import email.utils
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from types import TracebackType
from typing import Final

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver, ResolveResult
from httpx_aiohttp import AiohttpTransport

from adapters.arriving import ANSWER
from adapters.connector import Connector
from adapters.egress import ReachableAddresses, check_egress, check_resolved
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
from adapters.plain_client import PlainClient
from adapters.trust import usual_trust

# Idle connections are dropped before common load balancers drop them (nginx 75 s, AWS ALB 60 s,
# Node 5 s is the outlier), so that a POST rarely meets a connection that is already closed.
KEEPALIVE_S: Final = 15.0

# Most specific class wins; the aiohttp cause of an httpx error is more exact than the error
# itself (httpx-aiohttp reports a reset connection as ConnectTimeout).
ERROR_TABLE: Final[Mapping[type[BaseException], type[AdapterError]]] = {
    aiohttp.ClientError: BadAnswer,
    aiohttp.ClientConnectionError: Unreachable,
    aiohttp.ClientPayloadError: Unreachable,
    aiohttp.InvalidURL: BadRequest,
    aiohttp.ServerTimeoutError: TimedOut,
    httpx.HTTPError: BadAnswer,
    httpx.RequestError: Unreachable,
    httpx.TimeoutException: TimedOut,
    httpx.NetworkError: Unreachable,
    httpx.ProxyError: Unreachable,
    httpx.UnsupportedProtocol: BadRequest,
    httpx.LocalProtocolError: BadRequest,
    httpx.RemoteProtocolError: BadAnswer,
    httpx.DecodingError: BadAnswer,
    httpx.TooManyRedirects: BadAnswer,
    httpx.InvalidURL: BadRequest,
    httpx.CookieConflict: BadAnswer,
    httpx.StreamError: BadAnswer,
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


class _GuardedTransport(httpx.AsyncBaseTransport):
    """Refuses hosts that are not allowed, for every hop of a request, before any connection."""

    def __init__(
        self,
        inner: httpx.AsyncBaseTransport,
        allowed: frozenset[str] | None,
        reachable: ReachableAddresses | None,
        proxy_host: str,
    ) -> None:
        self._inner = inner
        self._proxy_host = proxy_host
        self._reachable = reachable
        self._allowed = allowed and frozenset(host.lower().rstrip(".") for host in allowed)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        host = request.url.raw_host.decode("ascii").lower().rstrip(".")
        if self._allowed is not None and host not in self._allowed:
            raise Refused(f"egress to {host} is not allowed")
        check_egress(host)
        if self._proxy_host:
            check_egress(self._proxy_host)
        if self._reachable is not None:
            self._reachable.check(host)
        response = await self._inner.handle_async_request(request)
        response.extensions[ANSWER] = getattr(response.stream, "_aiohttp_response", None)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _WithHeaders(httpx.AsyncBaseTransport):
    """Adds headers that a request does not have itself."""

    def __init__(
        self, inner: httpx.AsyncBaseTransport, headers: tuple[tuple[str, str], ...]
    ) -> None:
        self._inner = inner
        self._headers = headers

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        for name, value in self._headers:
            request.headers.setdefault(name, value)
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _CheckedResolver(AbstractResolver):
    """Resolves once per connection, which is then made to what was checked and nowhere else."""

    def __init__(self, reachable: ReachableAddresses | None) -> None:
        self._reachable = reachable
        self._system = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._system.resolve(host, port, family)
        for each in found:  # one that is refused refuses all: a mixed answer is an attack
            check_resolved(host, each["host"])
            if self._reachable is not None:
                self._reachable.check(each["host"])
        return found

    async def close(self) -> None:
        await self._system.close()


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
) -> httpx.AsyncClient:
    """A new client; the caller owns it and calls `aclose`.

    `read_s` is the longest silence within one answer, `connect_s` covers waiting for a free
    connection and making one. With `allowed_hosts`, a request to any other host name or address
    (also after a redirect) raises `Refused` before a connection is opened; so does, for every
    client, one outside of what `adapters.egress` confines the process to. `tls` replaces the usual
    trust, for a server with an authority of its own. With `reachable`, names are resolved once per
    connection, and one that leads to any other address raises `Refused`.

    With `proxy` (`http://user:password@proxy:3128`) every request goes through it: to an https
    server as a tunnel (CONNECT). It has to be inside a confinement as well as the server. What a
    name leads to is then the proxy's to say, so `reachable` beside it raises ValueError.

    `ways` are of hosts that are reached by a way of their own: its trust, its proxy and its headers,
    of which a request's own come first. Their times are the client's. Cookies are sent back with
    `keeps_cookies` alone, for servers that are balanced by them.
    """
    if proxy and reachable is not None:
        raise ValueError("behind a proxy nobody knows to which address a name leads")
    usual = _transport(tls, proxy, max_connections, allowed_hosts, reachable)
    mounts = {
        f"all://{f'[{host}]' if ':' in host else host}": _WithHeaders(
            _transport(way.tls, way.proxy, max_connections, allowed_hosts, None), way.headers
        )
        for host, way in (ways or {}).items()
    }
    kind = httpx.AsyncClient if keeps_cookies else PlainClient
    return kind(
        base_url=base_url,
        headers={"user-agent": "kortex", **(headers or {})},
        timeout=httpx.Timeout(read_s, connect=connect_s, pool=connect_s),
        transport=usual,
        mounts=mounts,
        trust_env=False,
        follow_redirects=False,
    )


def _transport(
    tls: ssl.SSLContext | None,
    proxy: str,
    max_connections: int,
    allowed_hosts: frozenset[str] | None,
    reachable: ReachableAddresses | None,
) -> _GuardedTransport:
    via = _proxy(proxy) if proxy else None
    trust = tls or ssl_context()
    limits = httpx.Limits(max_connections=max_connections, keepalive_expiry=KEEPALIVE_S)
    session = _sessions(trust, max_connections, reachable)
    inner = AiohttpTransport(
        verify=trust, trust_env=False, limits=limits, client=session, proxy=via
    )
    return _GuardedTransport(inner, allowed_hosts, reachable, via.url.host if via else "")


def _proxy(address: str) -> httpx.Proxy:
    """With its credentials as aiohttp wants them: it sends the header on as Proxy-Authorization."""
    url = httpx.URL(address)
    if not url.userinfo:
        return httpx.Proxy(url)
    pair = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
    return httpx.Proxy(url.copy_with(userinfo=b""), headers={"Authorization": f"Basic {pair}"})


def _sessions(
    trust: ssl.SSLContext, max_connections: int, reachable: ReachableAddresses | None
) -> Callable[[], aiohttp.ClientSession]:
    """What makes the connections of one client, on the loop that it is first used on."""

    def session() -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=Connector(
                limit=max_connections,
                keepalive_timeout=KEEPALIVE_S,
                ssl=trust,
                resolver=_CheckedResolver(reachable),
                use_dns_cache=reachable is None,
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    return session


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
    cause = error.__cause__
    if isinstance(error, httpx.HTTPError) and isinstance(cause, aiohttp.ClientError):
        error = cause
    return next((ERROR_TABLE[kind] for kind in type(error).__mro__ if kind in ERROR_TABLE), None)


def _foreign_name(error: BaseException) -> str:
    """The most exact safe word for what happened: the system's own, else the class name."""
    cause: BaseException | None = error
    while isinstance(cause, Exception):  # a timeout's cause is a cancellation, which says nothing
        if isinstance(cause, OSError) and cause.errno and cause.strerror:
            return cause.strerror.split("[", 1)[0].strip() or type(cause).__name__
        error, cause = cause, cause.__cause__
    return type(error).__name__


def check_status(response: httpx.Response, detail: str = "") -> None:
    """Raise the error of our tree that fits a status of 300 and above; 1xx and 2xx pass.

    `detail` is the other side's own words, already free of secrets. The message names the host
    and path, never the query.
    """
    status = response.status_code
    if status < 300:
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


async def read_capped(response: httpx.Response, max_bytes: int) -> bytes:
    """The whole body of a streamed response, decompressed, at most `max_bytes`.

    Raises BadAnswer when it is larger (the rest is not read), Unreachable or TimedOut when it
    breaks off.
    """
    parts: list[bytes] = []
    size = 0
    host = response.request.url.host
    with mapped_errors(host):
        async for part in response.aiter_bytes():
            size += len(part)
            if size > max_bytes:
                raise BadAnswer(f"{host} answered more than {max_bytes} bytes")
            parts.append(part)
    return b"".join(parts)
