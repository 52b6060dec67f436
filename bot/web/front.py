"""The door of the HTTP side: how long a connection may say nothing, and how many there may be.

A connection without a whole request costs a slot and nothing else, so at the ceiling the oldest of
those makes room: whoever opens a thousand of them shuts out nobody but himself. A door that cannot be
opened says why in words.
"""

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Callable, Container
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Handler, Middleware
from aiohttp.web_protocol import RequestPayloadError

# A request's head arrives in one packet; Slack waits 3 s for the whole answer
# (https://docs.slack.dev/apis/events-api/#responding).
IDLE_S = 10.0
LINGER_S = 2.0  # what is still read of a body that nobody asked for
# Of each of three kinds (`bot.web.sorting`), of the usual 1,024 file handles; the rest is for Slack,
# models and backends.
MAX_CONNECTIONS = 256
BACKLOG = 128
CLOSE_S = 60.0  # for requests that are under way; aiohttp's own

# The protocol of a new connection.
Open: TypeAlias = Callable[[], asyncio.BaseProtocol]

# aiohttp tells every request that it cannot read with a traceback, which anybody could fill a disk with.
_server_log = logging.getLogger("kortex.http")
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds without a whole request, and connections at once."""

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
    """Serve the app; yields the port. Raises OSError when the address is taken.

    `is_shared`: other processes listen there too, and Linux deals connections out among them
    (SO_REUSEPORT, https://man7.org/linux/man-pages/man7/socket.7.html).
    """
    async with answering(app, limits or Limits()) as door:
        listening = await listen_on(door, host, port, is_shared=is_shared)
        try:
            yield port_of(listening)
        finally:
            await stop_listening(listening)


async def listen_on(door: Open, host: str, port: int, *, is_shared: bool) -> asyncio.Server:
    """Whoever connects gets a protocol from that door. See `serving`. Raises OSError."""
    loop = asyncio.get_running_loop()
    return await loop.create_server(door, host, port, backlog=BACKLOG, reuse_port=is_shared or None)


async def stop_listening(listening: asyncio.Server) -> None:
    """Take no more connections. Who was accepted a moment ago gets a protocol first.

    A server that is closed in between would leave that connection open for good
    (https://github.com/python/cpython/issues/109564).
    """
    loop = asyncio.get_running_loop()
    for each in listening.sockets:
        loop.remove_reader(each.fileno())
    try:
        await asyncio.sleep(0)
    finally:
        listening.close()


def port_of(listening: asyncio.Server) -> int:
    """The port that was bound."""
    bound: int = listening.sockets[0].getsockname()[1]
    return bound


@asynccontextmanager
async def answering(
    app: web.Application, limits: Limits, close_s: float = CLOSE_S
) -> AsyncIterator[Open]:
    """What answers each connection of a socket that the body listens on, until the body ends."""
    working: set[object] = set()
    app.middlewares.insert(0, _remembered_in(working))
    runner = web.AppRunner(
        app,
        access_log=None,
        keepalive_timeout=limits.idle_s,
        lingering_time=LINGER_S,
        logger=_server_log,
        shutdown_timeout=close_s,
    )
    await runner.setup()
    try:
        yield _Door(runner.server, limits.connections, working).open
    finally:
        await runner.cleanup()


def _in_one_line(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError | RequestPayloadError):
        record.exc_info = None
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.msg, record.args = "http.unreadable: %s", (str(error).partition("\n")[0][:80],)
    return True


_server_log.addFilter(_in_one_line)


def _remembered_in(working: set[object]) -> Middleware:
    """The connections whose request is whole and being answered."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        working.add(request.protocol)
        try:
            return await handler(request)
        finally:
            working.discard(request.protocol)

    return middleware


class _Door:
    def __init__(self, server: web.Server | None, most: int, working: Container[object]) -> None:
        if server is None:
            raise RuntimeError("the runner was not set up")
        self._server = server
        self._most = most
        self._working = working
        self._is_full = False

    def open(self) -> asyncio.BaseProtocol:
        """The protocol of a new connection."""
        # One that was told to go has no transport any more, and is listed until the loop comes round.
        here = [each for each in self._server.connections if each.transport is not None]
        too_many = len(here) + 1 - self._most
        if too_many <= 0:
            self._is_full = False
            return self._server()
        if not self._is_full:
            _log.warning("http.full", connections=self._most)
        self._is_full = True
        silent = [each for each in here if each not in self._working]
        for oldest in silent[:too_many]:
            oldest.force_close()
        return self._server() if silent else _Refused()


class _Refused(asyncio.Protocol):
    """A connection for which there is no room: all others are at work."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it at once: there is no room."""
        transport.close()


def why_not(error: OSError, host: str, port: int) -> str:
    """What happened and what to do; for an error of binding a server's socket."""
    match error.errno:
        case errno.EADDRINUSE:
            return f"port {port} of {host} is in use by another process; stop that, or choose another port"
        case errno.EACCES:
            return f"port {port} may not be opened by this user; choose one above 1023"
        case _:
            return f"cannot listen on {host}, port {port}: {error.strerror or error}"
