"""One port, two event loops: what somebody waits for is answered where no other work delays it.

A connection is sorted by the first bytes that it sends, in the loop of the urgent requests. All
others are handed, with those bytes, to the loop of everything else. So that a connection needs no
second look, it carries one urgent request.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler

from bot.ports.loops import OtherLoop
from bot.web.front import Limits, Open, answering, listen_on, port_of, stop_listening

_log = structlog.get_logger(__name__)
CLOSE_S: Final = 5.0  # for urgent requests that are under way; a platform waits 3 s


@dataclass(frozen=True, slots=True)
class Apart:
    """The urgent: requests that begin with `begins`, which `app` answers on `loop`."""

    loop: OtherLoop
    app: web.Application
    begins: bytes


@asynccontextmanager
async def serving_apart(
    app: web.Application,
    apart: Apart,
    host: str,
    port: int,
    limits: Limits | None = None,
    *,
    is_shared: bool = False,
) -> AsyncIterator[int]:
    """As `serving`, but the urgent are answered on their own loop. Raises OSError.

    `limits` holds for each kind: the urgent, all others, and those that are neither yet.
    """
    limits = limits or Limits()
    async with answering(app, limits) as door:
        sorting = _Sorting(apart, OtherLoop(asyncio.get_running_loop()), door, limits)
        try:
            yield await apart.loop.run(sorting.open(host, port, is_shared=is_shared))
        finally:
            await apart.loop.run(sorting.close())
            await sorting.settled()


@web.middleware
async def last(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every answer is its connection's last."""
    answer = await handler(request)
    answer.force_close()
    return answer


class _Sorting:
    """The way in. `open` and `close` run on the loop of the urgent, `elsewhere` is the other."""

    def __init__(self, apart: Apart, elsewhere: OtherLoop, door: Open, limits: Limits) -> None:
        self._apart = apart
        self._elsewhere = elsewhere
        self._door = door
        self._limits = limits
        self._stack = AsyncExitStack()
        self._unsorted: dict[_Unsorted, asyncio.TimerHandle] = {}
        self._leaving: set[socket.socket] = set()
        self._taking: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def open(self, host: str, port: int, *, is_shared: bool) -> int:
        """The port. See `serving`. Raises OSError when the address is taken."""
        answers = answering(self._apart.app, self._limits, CLOSE_S)
        self._urgent = await self._stack.enter_async_context(answers)
        door = partial(_Unsorted, self)
        listening = await listen_on(door, host, port, is_shared=is_shared)
        self._stack.push_async_callback(stop_listening, listening)
        return port_of(listening)

    async def close(self) -> None:
        """Listen no more, let urgent requests end."""
        self._is_closed = True
        for each in [*self._unsorted]:
            each.transport.abort()
        await self._stack.aclose()

    async def settled(self) -> None:
        """At home, and closed: wait until what was handed over has arrived."""
        if self._taking:
            await asyncio.wait(self._taking)

    def came(self, one: "_Unsorted") -> None:
        """A connection that has said nothing yet; the oldest of too many goes."""
        if self._is_closed:  # accepted before, and told of only now
            one.transport.abort()
            return
        if self._unsorted and self._is_full:
            oldest = next(iter(self._unsorted))
            self.went(oldest)
            oldest.transport.abort()
        timer = asyncio.get_running_loop().call_later(self._limits.idle_s, one.transport.abort)
        self._unsorted[one] = timer

    @property
    def _is_full(self) -> bool:
        return len(self._unsorted) + len(self._leaving) >= self._limits.connections

    def went(self, one: "_Unsorted") -> None:
        """It is sorted, or gone."""
        if (timer := self._unsorted.pop(one, None)) is not None:
            timer.cancel()

    def sort(self, one: "_Unsorted", begun: bytes) -> None:
        """Give it to who answers it, unless too little is known of it yet."""
        begins = self._apart.begins
        if begun.startswith(begins):
            self.went(one)
            _go_on(one.transport, self._urgent, begun)
        elif not begins.startswith(begun):
            self.went(one)
            self._hand_over(one.transport, begun)

    def _hand_over(self, transport: asyncio.Transport, begun: bytes) -> None:
        # A second handle of the connection, which stays open when this loop's is closed.
        handle: socket.socket = transport.get_extra_info("socket").dup()
        transport.abort()
        if self._is_full:
            _log.warning("http.full", connections=self._limits.connections)
            handle.close()
            return
        self._leaving.add(handle)
        self._elsewhere.soon(partial(self._arrive, handle, begun))

    def _arrive(self, handle: socket.socket, begun: bytes) -> None:
        # Between two callbacks of one connection; nobody awaits it.
        task = asyncio.create_task(self._taken(handle, begun))  # noqa: TID251
        self._taking.add(task)
        task.add_done_callback(self._taking.discard)

    async def _taken(self, handle: socket.socket, begun: bytes) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(partial(_HandedOver, self._door, begun), handle)
        except OSError:  # gone meanwhile
            handle.close()
        finally:
            self._leaving.discard(handle)


class _Unsorted(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, sorting: _Sorting) -> None:
        self._sorting = sorting
        self._begun = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a TCP server
        self.transport = transport
        self._sorting.came(self)

    def data_received(self, data: bytes) -> None:
        self._begun += data
        self._sorting.sort(self, self._begun)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        self._sorting.went(self)


class _HandedOver(asyncio.Protocol):
    def __init__(self, door: Open, begun: bytes) -> None:
        self._door = door
        self._begun = begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - of a TCP connection
        _go_on(transport, self._door, self._begun)


def _go_on(transport: asyncio.Transport, door: Open, begun: bytes) -> None:
    protocol = door()
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if not transport.is_closing() and isinstance(protocol, asyncio.Protocol):
        protocol.data_received(begun)
