"""HTTP listener: aiohttp's server with time limits for idle connections and a ceiling on their number.

A connection that has not sent a whole request is idle. At the ceiling the oldest idle connections are
closed, so a client that opens a thousand of them shuts out only itself. Where every connection is being
answered, a new one is refused.
"""

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestPayloadError

# A request's head arrives in one packet; Slack waits 3 s for the whole answer
# (https://docs.slack.dev/apis/events-api/#responding).
IDLE_S = 10.0
LINGER_S = 2.0  # how long the rest of a refused body is read
# Half of the usual 1,024 file handles; the rest is for Slack, models, backends and the database.
MAX_CONNECTIONS = 512
BACKLOG = 128
RESTART_S = 3.0  # how long a start waits for the process before it to release the port
RETRY_S = 0.1

_COMPRESSED = {
    "code": "unsupported_media_type",
    "message": "Send the body without Content-Encoding.",
}

Bound = TypeVar("Bound")

_log = structlog.get_logger(__name__)
_server_log = logging.getLogger("kortex.http")


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds that a connection may stay idle, and how many connections may be open."""

    idle_s: float = IDLE_S
    connections: int = MAX_CONNECTIONS


@asynccontextmanager
async def serving(
    app: web.Application,
    host: str,
    port: int,
    limits: Limits | None = None,
    *,
    is_shared: bool = False,
) -> AsyncIterator[int]:
    """Serve the app while the body runs; yields the port. Raises OSError when the address is taken.

    `is_shared`: other processes listen on the same port, and Linux spreads connections over them
    (SO_REUSEPORT, https://man7.org/linux/man-pages/man7/socket.7.html).
    """
    limits = limits or Limits()
    answering: set[object] = set()
    app.middlewares.insert(0, _recorded_in(answering))
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=limits.idle_s,  # from the connection's start, so a slow head ends too
        lingering_time=LINGER_S,
        auto_decompress=False,  # it is done on the loop: a megabyte of zeros would stop it for seconds
        logger=_server_log,
    )
    await runner.setup()
    try:
        assert runner.server is not None  # noqa: S101 - set by setup()
        ceiling = _Ceiling(runner.server, limits.connections, answering)
        # Not `web.TCPSite`: it has no place for a limit on connections that send nothing.
        create = partial(asyncio.get_running_loop().create_server, ceiling.accept, host, port)
        listening = await when_free(partial(create, backlog=BACKLOG, reuse_port=is_shared or None))
        try:
            yield listening.sockets[0].getsockname()[1]
        finally:
            listening.close()
    finally:
        await runner.cleanup()


async def when_free(bind: Callable[[], Awaitable[Bound]]) -> Bound:
    """Bind a port. A port in use is tried for `RESTART_S`: the process before may be exiting.

    Raises OSError.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + RESTART_S
    while True:
        try:
            return await bind()
        except OSError as error:
            if error.errno != errno.EADDRINUSE or loop.time() >= until:
                raise
        await asyncio.sleep(RETRY_S)


def bind_problem(error: OSError, host: str, port: int) -> str:
    """What happened and what to do, for an error of binding a server's socket."""
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} of {host} is in use by another process; stop that, or choose another port"
        case errno.EACCES:
            return f"port {port} may not be opened by this user; choose one above 1023"
        case _:
            return f"cannot listen on {host}, port {port}: {error.strerror or error}"


def _recorded_in(answering: set[object]) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            return web.json_response({"error": _COMPRESSED}, status=415)
        answering.add(request.protocol)
        try:
            return await handler(request)
        finally:
            answering.discard(request.protocol)

    return middleware


class _Ceiling:
    def __init__(self, server: web.Server, most: int, answering: Container[object]) -> None:
        self._server = server
        self._most = most
        self._answering = answering
        self._is_full = False

    def accept(self) -> asyncio.BaseProtocol:
        # A closed connection has no transport, and stays listed until the loop's next round.
        open_ = [each for each in self._server.connections if each.transport is not None]
        too_many = len(open_) + 1 - self._most
        if too_many <= 0:
            self._is_full = False
            return self._server()
        if not self._is_full:
            _log.warning("http.connections_exhausted", connections=self._most)
        self._is_full = True
        idle = [each for each in open_ if each not in self._answering]
        for oldest in idle[:too_many]:
            oldest.force_close()
        return self._server() if idle else _Refused()


class _Refused(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.close()


def _in_one_line(record: logging.LogRecord) -> bool:
    """aiohttp logs each unreadable request with a traceback, so a client could fill the disk."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError | RequestPayloadError):
        record.exc_info = None
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.msg, record.args = "http.unreadable: %s", (str(error).partition("\n")[0][:80],)
    return True


_server_log.addFilter(_in_one_line)
