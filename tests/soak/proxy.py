"""A connection between two processes that can be cut: bytes go both ways until then."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class Proxy:
    """Listens on a port of loopback and leads to what `connect` reaches."""

    def __init__(self, connect: Connect) -> None:
        self.port = 0
        self._connect = connect
        self._open: set[asyncio.StreamWriter] = set()

    def cut(self) -> int:
        """End every connection without a word; how many ends there were."""
        ends = list(self._open)
        for each in ends:
            each.transport.abort()
        return len(ends)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator["Proxy"]:
        """Until the context ends."""
        server = await asyncio.start_server(self._lead, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            self.cut()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await self._connect()
        except OSError:  # it refuses, and so does this
            writer.transport.abort()
            return
        ends = {writer, back}
        self._open |= ends
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, back))
                both.create_task(_pump(there, writer))
        finally:
            self._open -= ends
            for each in ends:
                each.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()
