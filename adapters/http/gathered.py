"""The body of a streamed answer, with all that arrived since the last read as one piece."""

import asyncio
from typing import Final

import httpx

from adapters.http.network import Connection

_MOST_BYTES: Final = 256 * 1024  # that wait to be taken


class GatheredBody:
    """Reads an answer in a task of its own, because httpx gives each chunk of a transfer alone.

    The task ends with `aclose`, which the reader of the answer has to call.
    """

    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._parts: list[bytes] = []
        self._size = 0
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._reader = asyncio.create_task(self._read())  # noqa: TID251 - ends with `aclose`
        self._reader.add_done_callback(lambda _: self._arrived.set())

    def pause(self, seconds: float) -> None:
        """Wait so long before each further read of the connection; 0 reads at once."""
        stream = self._response.extensions.get("network_stream")
        if isinstance(stream, Connection):
            stream.pause(seconds)

    async def more(self) -> bytes:
        """All that arrived, as soon as there is something; empty at the end. Raises httpx's errors."""
        if not (self._parts or self._reader.done()):
            self._arrived.clear()
            await self._arrived.wait()
        data = b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        self._taken.set()
        if not data:
            await self._reader
        return data

    async def aclose(self) -> None:
        """Read no more of it, and read its connection at once from now on."""
        self.pause(0)
        self._reader.cancel()
        await asyncio.wait({self._reader})
        if not self._reader.cancelled():
            self._reader.exception()  # `more` has raised it, or the caller left

    async def _read(self) -> None:
        async for part in self._response.aiter_raw():
            self._parts.append(part)
            self._size += len(part)
            self._arrived.set()
            if self._size > _MOST_BYTES:
                self._taken.clear()
                await self._taken.wait()
