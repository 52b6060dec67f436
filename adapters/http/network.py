"""Connections to addresses that were checked: a name is resolved once per connection."""

import asyncio
import re
import select
import socket
import ssl
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Final

import httpcore
import httpx

from adapters.http.egress import ReachableAddresses, check_resolved, is_address

_MOST_ADDRESSES: Final = 8
# A resolver that hangs holds its threads for half a minute. They are not those of other work.
_LOOK_UPS: Final = ThreadPoolExecutor(16, "names")
_END_OF_HEAD: Final = re.compile(rb"\n\r?\n")  # h11 accepts bare line ends
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,20}")
_IN_CHUNKS: Final = re.compile(rb"\ntransfer-encoding:", re.IGNORECASE)


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Opens connections for a pool, to checked addresses only.

    TLS verifies the name, because the pool keeps it; only the connection goes to the address.
    """

    def __init__(self, reachable: ReachableAddresses | None) -> None:
        self._reachable = reachable
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Raises Refused, httpcore's errors, and httpx.InvalidURL for a text that is no name."""
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._addresses(host, port)
                return await self._first(addresses, port, timeout, local_address, socket_options)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """The checked addresses. One bad address refuses the name: a mixed answer is an attack."""
        addresses = [host] if is_address(host) else await _looked_up(host, port)
        for address in addresses:
            check_resolved(host, address)
            if self._reachable is not None:
                self._reachable.check(address)
        return addresses[:_MOST_ADDRESSES]

    async def _first(
        self,
        addresses: Sequence[str],
        port: int,
        timeout: float | None,
        *options: Any,
    ) -> httpcore.AsyncNetworkStream:
        """The first address that answers. Each has a fair share of the time that is left."""
        now = asyncio.get_running_loop().time
        until = None if timeout is None else now() + timeout
        failed: httpcore.ConnectError | httpcore.ConnectTimeout | None = None
        for number, address in enumerate(addresses):
            share = None if until is None else (until - now()) / (len(addresses) - number)
            try:
                stream = await self._network.connect_tcp(address, port, share, *options)
                return Connection(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error
        raise failed or httpcore.ConnectError("the name has no address")


def has_unread(connection: socket.socket) -> bool:
    """Whether it holds data that the event loop has not read, or is closed."""
    if connection.fileno() < 0:
        return True
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0))


async def _looked_up(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
        found = await loop.run_in_executor(_LOOK_UPS, look_up)
    except UnicodeError as error:  # a label that is too long or empty
        raise httpx.InvalidURL("not a host's name") from error
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from error
    return [*dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found)]


class Connection(httpcore.AsyncNetworkStream):
    """One connection of a pool, which can wait before each read, so that bytes gather in the kernel.

    A model sends a hundred small pieces a second, and each read wakes the process.

    The pool uses it again only after an answer that ended with the last byte that was read. httpcore
    would take further bytes for the answer to the next request. It asks for `is_readable` before.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream) -> None:
        self._stream = stream
        self._tls: ssl.SSLObject | None = stream.get_extra_info("ssl_object")
        # Kept, because a pool asks each idle connection at each request, and a look-up asks the kernel twice.
        self._socket: socket.socket = stream.get_extra_info("socket")
        self.is_ended = False  # the other side has closed it
        self.until: float | None = None  # no read waits longer, by the loop's clock
        self._was_full = False
        self._pause_s = 0.0
        self._at_once = asyncio.Event()
        # The current answer: its bytes so far, where its body begins, how far its chunks are read.
        self._received = 0
        self._head = bytearray()
        self._body_at = -1
        self._chunks: _Chunks | None = None
        self._is_clean = True

    def pause(self, seconds: float) -> None:
        """Wait so long before each further read; 0 reads as soon as bytes arrive, from now on."""
        self._pause_s = seconds
        if not seconds:
            self._at_once.set()

    def answered(self, body_bytes: int | None) -> None:
        """An answer is whole: after a body of so many bytes, or after chunks (None)."""
        if body_bytes is None:
            self._is_clean = self._chunks is not None and self._chunks.are_whole
        else:
            self._is_clean = self._body_at >= 0 and self._received == self._body_at + body_bytes

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """The bytes that have arrived, as soon as there are any."""
        if self._pause_s and not self._was_full:
            self._at_once.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause_s):
                    await self._at_once.wait()
        data = await self._stream.read(max_bytes, self._left(timeout))
        if self._tls is not None and data:
            data += _decrypted(self._tls, max_bytes - len(data))
        self.is_ended = not data
        self._was_full = len(data) == max_bytes
        self._note(data)
        return data

    def _left(self, timeout: float | None) -> float | None:
        if self.until is None:
            return timeout
        left = self.until - asyncio.get_running_loop().time()
        if left <= 0:
            raise httpcore.ReadTimeout("the answer was not whole in time")
        return left if timeout is None else min(left, timeout)

    def _note(self, data: bytes) -> None:
        self._received += len(data)
        if self._chunks is not None:
            self._chunks.read(data)
        elif self._body_at < 0:
            seen = max(0, len(self._head) - 2)
            self._head += data
            if end := _END_OF_HEAD.search(self._head, seen):
                self._body_at = end.end()
                if _IN_CHUNKS.search(self._head, 0, end.start()):
                    self._chunks = _Chunks()
                    self._chunks.read(bytes(self._head[self._body_at :]))
                self._head.clear()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if self._received:
            self._received, self._body_at, self._chunks, self.until = 0, -1, None, None
        self._is_clean = False
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> "Connection":
        return Connection(await self._stream.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        """See httpcore. An idle connection with `is_readable` is not reused."""
        if info == "is_readable":
            return self._is_readable()
        return self._stream.get_extra_info(info)

    def _is_readable(self) -> bool:
        if not self._is_clean or (self._tls is not None and _decrypted(self._tls, 1)):
            return True
        return has_unread(self._socket)


class _Chunks:
    """Follow a body's chunks to its end, with any extensions and trailers."""

    def __init__(self) -> None:
        self._is_last = False
        self._is_over = False
        self._skipped = 0  # of the next bytes: the rest of a chunk
        self._line = b""  # broken off; behind the end, what does not belong to the body

    @property
    def are_whole(self) -> bool:
        """Whether the end was read, and nothing behind it."""
        return self._is_over and not self._line

    def read(self, data: bytes) -> None:
        data, at = self._line + data, self._skipped
        while not self._is_over and (end := data.find(b"\n", at) + 1):
            line = data[at:end].strip()
            self._is_over = self._is_last and not line
            size = None if self._is_last else _CHUNK_SIZE.match(line)
            at = end
            if size is not None and (length := int(size[0], 16)):
                at += length + len(b"\r\n")
            else:
                self._is_last = True
        self._skipped, self._line = max(0, at - len(data)), data[at:]


def _decrypted(tls: ssl.SSLObject, max_bytes: int) -> bytes:
    """Further TLS records that have arrived. A server writes one per event, and a read gives one."""
    records: list[bytes] = []
    try:
        while max_bytes > 0 and (record := tls.read(max_bytes)):
            records.append(record)
            max_bytes -= len(record)
    except ssl.SSLError:  # no more, or the end, which the next read meets as well
        pass
    return b"".join(records)
