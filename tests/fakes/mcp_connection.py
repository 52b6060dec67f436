"""An MCP server's connection in a test's hands."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from pydantic import JsonValue

from adapters.errors import AdapterError, Unreachable
from adapters.mcp.answer import Answer
from adapters.mcp.definition import Definition
from adapters.mcp.supervisor import Connection
from tools.errors import ToolError

_DONE = Answer(("done",))


@dataclass
class FakeServer:
    """Opens connections until `refuses`. What it announces and answers may change at any time."""

    announces: Sequence[Definition] = ()
    refuses: bool = False
    answer: Answer | ToolError | Exception = _DONE
    lost: str = ""
    title: str = "fake 1"
    breaks: AdapterError | None = None
    hangs: asyncio.Event | None = None
    calls: list[tuple[str, Mapping[str, JsonValue]]] = field(default_factory=list)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    attempts: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    reviews: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    closed: int = 0
    wake: asyncio.Event | None = None

    @asynccontextmanager
    async def open(self, wake: asyncio.Event) -> AsyncIterator[Connection]:
        self.attempts.release()
        if self.refuses:
            raise Unreachable("nobody there")
        self.wake = wake
        try:
            yield self
        finally:
            self.closed += 1

    async def definitions(self) -> Sequence[Definition]:
        self.reviews.release()
        if self.breaks is not None:
            raise self.breaks
        return self.announces

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> Answer:
        self.calls.append((tool, arguments))
        self.reached.set()
        if self.hangs is not None:
            await self.hangs.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def follow(self) -> None:
        return

    def stir(self) -> None:
        """As a server that says its tools changed, or broke."""
        assert self.wake is not None
        self.wake.set()
