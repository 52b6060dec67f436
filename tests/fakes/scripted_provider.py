"""A provider that says what a test scripted, chunk by chunk, and records what it was asked."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    StopReason,
    StreamChunk,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    Usage,
)
from adapters.llm.port import Model, Price

FREE = Price(0, 0, 0, 0)
PAID = Price(3_000_000, 300_000, 3_750_000, 15_000_000)


def text(*pieces: str, usage: Usage | None = None) -> list[StreamChunk]:
    """A round that answers."""
    end = DoneChunk(StopReason.END_TURN, usage or Usage(100, 0, 0, 10), "scripted-1")
    return [*(TextChunk(p) for p in pieces), end]


def calls(*wanted: tuple[str, str, str], say: str = "") -> list[StreamChunk]:
    """A round that asks for tools: (id, name, arguments) each."""
    chunks: list[StreamChunk] = [TextChunk(say)] if say else []
    chunks += [ToolCallChunk(ToolCall(*w)) for w in wanted]
    return [*chunks, DoneChunk(StopReason.TOOL_USE, Usage(100, 0, 0, 20), "scripted-1")]


@dataclass
class ScriptedProvider:
    """Plays `script` round by round; the last one again when it runs out."""

    script: Sequence[Sequence[StreamChunk]]
    name: str = "scripted"
    price: Price | None = FREE
    unavailable_reason: str | None = None
    supports_tools: bool = True
    supports_streaming: bool = True
    limits_by_model: bool = True
    round_limit_s: float = 600.0
    max_context_tokens: int = 100_000
    is_local: bool = True
    hold: asyncio.Event | None = None  # when set, the stream waits here before its terminal chunk
    holding: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: int = 0
    requests: list[CompleteRequest] = field(default_factory=list)

    async def models(self) -> Sequence[Model]:
        return (Model("scripted-1", "Scripted", self.max_context_tokens),)

    def price_of(self, model: str) -> Price | None:
        return self.price

    async def stream(self, request: CompleteRequest) -> AsyncIterator[StreamChunk]:
        played = self.script[min(len(self.requests), len(self.script) - 1)]
        self.requests.append(request)
        try:
            for chunk in played:
                if self.hold is not None and isinstance(chunk, DoneChunk | ErrorChunk):
                    self.holding.set()
                    await self.hold.wait()
                yield chunk
        except (asyncio.CancelledError, GeneratorExit):
            self.cancelled += 1
            raise

    async def aclose(self) -> None:
        """Nothing is held."""
