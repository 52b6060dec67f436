"""The body of a streamed answer as it arrives, as much at a time as there is, at its reader's pace."""

import asyncio
from collections.abc import AsyncGenerator
from typing import cast

from adapters.http_answer import Answer


class Body:
    """Of one answer, read by nobody else. Errors are those of the answer."""

    __slots__ = ("_answer", "_content", "_parts", "_resting")

    def __init__(self, answer: Answer) -> None:
        self._answer = answer.wire
        self._content = answer.content
        self._parts: AsyncGenerator[bytes, None] | None = None
        # What is left alone since the last rest, if nobody reads it again.
        self._resting: asyncio.Transport | None = None
        if "content-encoding" in answer.headers:  # by a server that was asked for none
            self._parts = cast("AsyncGenerator[bytes, None]", answer.aiter_bytes())

    async def more(self, rest_s: float = 0.0) -> bytes:
        """What came since, as soon as there is something; empty at the end.

        For `rest_s` the socket is left alone, so that nothing wakes the process; what was read from it
        before is given at once. After a rest it stays so until the next read or `aclose`.
        """
        transport = self._transport() if rest_s > 0 else None
        if transport is None or self._answer is None:
            self._go_on()
            return await self._arrived()
        # Not by aiohttp's own pause: its parser would hand over the next read in two parts.
        transport.pause_reading()
        self._resting = transport
        end = asyncio.get_running_loop().call_later(rest_s, self._look, transport)
        is_over = True
        try:
            data = await self._arrived()
            is_over = self._answer.content.is_eof()
        finally:
            end.cancel()
            if is_over:  # by an error too: a connection that is kept has to hear its end
                self._go_on()
        return data

    @property
    def is_over(self) -> bool:
        """Whether all of it was read, as far as that is known without waiting."""
        return self._parts is None and self._content.at_eof()

    async def aclose(self) -> None:
        """Read no more of it."""
        self._go_on()
        if self._parts is not None:
            await self._parts.aclose()

    def _look(self, transport: asyncio.Transport) -> None:
        """The rest is over: take what the socket holds, and wait for more where it holds nothing.

        Where it can be asked directly, an answer that flows is never told to epoll.
        """
        read = getattr(transport, "_read_ready", None)
        if read is not None and self._answer is not None:
            content = self._answer.content
            before = content.total_bytes
            read()
            if content.total_bytes != before:
                return
        self._go_on()

    def _go_on(self) -> None:
        """Hear of what comes as it comes."""
        if self._resting is not None:
            self._resting.resume_reading()
            self._resting = None

    async def _arrived(self) -> bytes:
        if self._parts is None:
            return await self._content.readany()
        return await anext(self._parts, b"")

    def _transport(self) -> asyncio.Transport | None:
        connection = self._answer.connection if self._answer is not None else None
        transport = connection.transport if connection is not None else None
        # What TLS runs over: TLS that is told to pause goes on reading, and only keeps what it reads.
        under = getattr(getattr(transport, "_ssl_protocol", None), "_transport", None)
        return cast("asyncio.Transport | None", under or transport)
