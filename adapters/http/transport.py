"""httpx's transport over httpcore's pool: the egress guard, deadlines and decompression."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import httpcore
import httpx

from adapters.errors import Refused
from adapters.http.body import decompressed
from adapters.http.egress import ReachableAddresses, check_egress, check_notation, plain_host
from adapters.http.network import CheckedNetwork, Connection
from adapters.http.tls import ssl_context

# Idle connections are dropped before common load balancers drop them (nginx 75 s, AWS ALB 60 s,
# Node 5 s is the outlier), so that a POST rarely meets a connection that is already closed.
KEEPALIVE_S: Final = 15.0
# Sent once more where a kept connection turns out to be closed; other methods may have taken effect.
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_ERRORS: Final[Mapping[type[Exception], type[httpx.TransportError]]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.ProxyError: httpx.ProxyError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
}
_FOREIGN: Final = tuple(_ERRORS)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a client, on every route.

    With `streams`, an answer may be endless, and only its silence is limited.
    """

    max_connections: int
    allowed: frozenset[str] | None
    reachable: ReachableAddresses | None
    streams: bool


@dataclass(frozen=True, slots=True)
class Route:
    """How a client reaches a server: trust, proxy, headers and times.

    `tls` None means the usual trust, an empty `proxy` means none. The headers hold credentials.
    """

    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    tls: ssl.SSLContext | None = None
    proxy: str = field(default="", repr=False)
    connect_s: float = 5.0
    read_s: float = 60.0


class GuardedTransport(httpx.AsyncBaseTransport):
    """Refuses hosts that are not allowed before any connection. Raises Refused and httpx's errors.

    An answer's time is the request's own: `connect` and `read` of its timeouts together, from the
    wait for a connection to the last decompressed byte.
    """

    def __init__(self, route: Route, limits: Limits) -> None:
        self._route = route
        self._limits = limits
        self._proxy = _proxy(route.proxy) if route.proxy else None
        self._opened: httpcore.AsyncConnectionPool | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """The answer as soon as its head is there; its body is decompressed as it is read."""
        self._check(request.url.raw_host.decode("ascii"))
        for name, value in self._route.headers:
            request.headers.setdefault(name, value)
        times = request.extensions.get("timeout", {})
        connect_s, read_s = times.get("connect"), times.get("read")
        until = None
        if connect_s is not None and read_s is not None:
            until = asyncio.get_running_loop().time() + connect_s + read_s
        with _translated():
            async with asyncio.timeout_at(until):
                answer = await self._sent_or_none(request) if _is_repeatable(request) else None
                answer = answer or await self._sent(request)
        return await _response(answer, read_s if self._limits.streams else None, until)

    async def aclose(self) -> None:
        if self._opened is not None:
            await self._opened.aclose()

    def _check(self, host: str) -> None:
        host = plain_host(host)
        check_notation(host)
        if self._limits.allowed is not None and host not in self._limits.allowed:
            raise Refused(f"egress to {host} is not allowed")
        check_egress(host)
        if self._proxy is not None:
            check_egress(plain_host(self._proxy.url.host.decode("ascii")))
        if self._limits.reachable is not None:
            self._limits.reachable.check(host)

    async def _sent_or_none(self, request: httpx.Request) -> httpcore.Response | None:
        try:
            return await self._sent(request)
        except (httpx.ReadError, httpx.WriteError):
            return None

    async def _sent(self, request: httpx.Request) -> httpcore.Response:
        pool = await self._pool()
        with _translated():
            return await pool.handle_async_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )

    async def _pool(self) -> httpcore.AsyncConnectionPool:
        if self._opened is None:
            tls = self._route.tls or await asyncio.to_thread(ssl_context)
            # Another request may have opened it in the meantime.
            self._opened = self._opened or httpcore.AsyncConnectionPool(
                ssl_context=tls,
                proxy=self._proxy,
                max_connections=self._limits.max_connections,
                max_keepalive_connections=self._limits.max_connections,
                keepalive_expiry=KEEPALIVE_S,
                network_backend=CheckedNetwork(self._limits.reachable),
            )
        return self._opened


def _is_repeatable(request: httpx.Request) -> bool:
    return request.method in _REPEATABLE and isinstance(request.stream, httpx.ByteStream)


async def _response(
    answer: httpcore.Response, silence_s: float | None, until: float | None
) -> httpx.Response:
    if answer.status == httpx.codes.REQUEST_TIMEOUT:
        # It may answer no request at all: its connection is closed, and its body is not read.
        await answer.aclose()
        return httpx.Response(answer.status, headers=answer.headers, content=b"")
    connection = answer.extensions["network_stream"]
    if not isinstance(connection, Connection):
        raise httpx.RemoteProtocolError("another protocol, which was not asked for")
    return httpx.Response(
        answer.status,
        # Without it, httpx does not decompress again.
        headers=[pair for pair in answer.headers if pair[0].lower() != b"content-encoding"],
        stream=_Body(answer, connection, silence_s, until),
        extensions=answer.extensions,
    )


class _Body(httpx.AsyncByteStream):
    def __init__(
        self,
        answer: httpcore.Response,
        connection: Connection,
        silence_s: float | None,
        until: float | None,
    ) -> None:
        headers = httpx.Headers(answer.headers)
        self._answer = answer
        self._connection = connection
        self._encoding = headers.get("content-encoding", "")
        self._is_chunked = "transfer-encoding" in headers
        self._silence_s = silence_s
        self._until = until
        self._read_bytes = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        connection = self._connection
        parts = self._answer.aiter_stream() if self._is_chunked else self._counted()
        parts = decompressed(parts, self._encoding) if self._encoding else parts
        now = asyncio.get_running_loop().time
        connection.until = self._until if self._silence_s is None else now() + self._silence_s
        try:
            with _translated():
                async for part in parts:
                    yield part
                    if self._silence_s is not None:
                        connection.until = now() + self._silence_s
        except httpx.RemoteProtocolError as error:
            if connection.is_ended:
                raise httpx.ReadError("closed before the answer was whole") from error
            raise
        connection.answered(None if self._is_chunked else self._read_bytes)

    async def _counted(self) -> AsyncIterator[bytes]:
        async for part in self._answer.aiter_stream():
            self._read_bytes += len(part)
            yield part

    async def aclose(self) -> None:
        with _translated():
            await self._answer.aclose()


@contextmanager
def _translated() -> Iterator[None]:
    """httpcore's errors as httpx's, and the end of a deadline as its ReadTimeout."""
    try:
        yield
    except TimeoutError as error:
        raise httpx.ReadTimeout("the answer was not whole in time") from error
    except _FOREIGN as error:
        raise _httpx_error(error) from _origin(error)


def _origin(error: Exception) -> BaseException:
    """What httpcore's error came from. Its pool removes the cause, and the context stays."""
    return error.__cause__ or error.__context__ or error


def _httpx_error(error: Exception) -> httpx.TransportError:
    if isinstance(error, httpcore.RemoteProtocolError) and _origin(error) is error:
        return httpx.ReadError(str(error))  # closed without any answer: nothing was malformed
    return _ERRORS[type(error)](str(error))


def _proxy(address: str) -> httpcore.Proxy:
    url = httpx.URL(address)
    auth = (url.username.encode(), url.password.encode()) if url.userinfo else None
    return httpcore.Proxy(
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=b"/"),
        auth=auth,
    )
