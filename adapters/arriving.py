"""The body of a streamed answer as it arrives, as much at a time as there is.

aiohttp's own reader, where it has the answer: the layers of httpx above it would cost as much per read.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final, cast

import aiohttp
import httpx

# Under which an httpx answer carries aiohttp's own: httpx has no way to stop reading for a while.
ANSWER: Final = "kortex.aiohttp_answer"


class Body:
    """Of one answer, read by nobody else. Errors are aiohttp's or httpx's."""

    __slots__ = ("_answer", "_content", "_parts")

    def __init__(self, response: httpx.Response) -> None:
        answer = response.extensions.get(ANSWER)
        self._answer = answer if isinstance(answer, aiohttp.ClientResponse) else None
        self._content: aiohttp.StreamReader | None = None
        self._parts: AsyncGenerator[bytes, None] | None = None
        if "content-encoding" in response.headers:  # by a server that was asked for none
            self._parts = cast("AsyncGenerator[bytes, None]", response.aiter_bytes())
        elif self._answer is not None:
            self._content = self._answer.content
        else:
            self._parts = cast("AsyncGenerator[bytes, None]", response.aiter_raw())

    async def more(self, rest_s: float = 0.0) -> bytes:
        """What came since, as soon as there is something; empty at the end.

        For `rest_s` the socket is left alone, so that nothing wakes the process; what was read from it
        before is given at once.
        """
        transport = self._transport() if rest_s > 0 else None
        if transport is None:
            return await self._arrived()
        # Not by aiohttp's own pause: its parser would hand over the next read in two parts.
        transport.pause_reading()
        end = asyncio.get_running_loop().call_later(rest_s, transport.resume_reading)
        try:
            return await self._arrived()
        finally:
            end.cancel()
            transport.resume_reading()

    @property
    def is_over(self) -> bool:
        """Whether all of it was read, as far as that is known without waiting."""
        return self._content is not None and self._content.at_eof()

    async def aclose(self) -> None:
        """Read no more of it."""
        if self._parts is not None:
            await self._parts.aclose()

    async def _arrived(self) -> bytes:
        if self._content is not None:
            return await self._content.readany()
        if self._parts is not None:
            return await anext(self._parts, b"")
        return b""

    def _transport(self) -> asyncio.Transport | None:
        connection = self._answer.connection if self._answer is not None else None
        return connection.transport if connection is not None else None
