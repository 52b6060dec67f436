"""The port of every model backend, token prices, and the time spent encoding and decoding."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from time import perf_counter
from typing import Protocol, assert_never

from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    StreamChunk,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars per million tokens, by bucket.

    A request with more than `above_tokens` of input costs `above` as a whole.
    """

    input_uncached: int
    cache_read: int
    cache_write: int
    output: int
    above_tokens: int = 0
    above: "Price | None" = None

    @property
    def is_free(self) -> bool:
        return not (self.input_uncached or self.cache_read or self.cache_write or self.output)

    def cost_usd_micros(self, usage: Usage) -> int:
        """The cost of a round, rounded up so that many small ones never sum to less than the bill."""
        price = self._for_input(usage.input)
        total = (
            price.input_uncached * usage.input_uncached
            + price.cache_read * usage.cache_read
            + price.cache_write * usage.cache_write
            + price.output * usage.output
        )
        return -(-total // 1_000_000)

    def worst_case_usd_micros(self, input_tokens: int, output_tokens: int) -> int:
        """The maximum cost of a round: all input in the most expensive bucket, all output used."""
        price = self._for_input(input_tokens)
        dearest = max(price.input_uncached, price.cache_read, price.cache_write)
        return -(-(dearest * input_tokens + price.output * output_tokens) // 1_000_000)

    def _for_input(self, tokens: int) -> "Price":
        return self.above if self.above is not None and tokens > self.above_tokens else self


class Tier(StrEnum):
    """How much thought a model buys."""

    FAST = "fast"
    BALANCED = "balanced"
    DEEP = "deep"


@dataclass(frozen=True, slots=True)
class Model:
    """One model a provider offers. `context_tokens` bounds input plus output."""

    id: str
    display_name: str
    context_tokens: int
    tier: Tier = Tier.BALANCED


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    tool_calls: tuple[ToolCall, ...]
    end: DoneChunk | ErrorChunk


class Provider(Protocol):
    """A model backend.

    `stream` yields any number of text and tool-call chunks and then exactly one done or error
    chunk; it raises nothing but CancelledError, and a cancelled stream has closed its socket
    within 100 ms. Implementations are safe for concurrent use and keep no state between calls.
    """

    name: str
    supports_tools: bool
    supports_streaming: bool
    max_context_tokens: int
    limits_by_model: bool  # whether a rate limit (429) holds for the model alone that was asked
    round_limit_s: float  # the longest a round may take, by its configured timeout
    is_local: bool  # whether it may be used when nothing may leave the network

    @property
    def unavailable_reason(self) -> str | None:
        """Why it cannot be used (a missing key, a reserved name), or None."""
        ...

    async def models(self) -> Sequence[Model]:
        """The selectable models; the first is the default."""
        ...

    def stream(self, request: CompleteRequest) -> AsyncIterator[StreamChunk]:
        """One round, streamed."""
        ...

    def price_of(self, model: str) -> Price | None:
        """The list price; None is unknown, never free."""
        ...


async def collect(chunks: AsyncIterator[StreamChunk]) -> Completion:
    """Fold a stream into one completion: the non-streaming call of every provider."""
    text: list[str] = []
    calls: list[ToolCall] = []
    async for chunk in chunks:
        match chunk:
            case TextChunk():
                text.append(chunk.text)
            case ToolCallChunk():
                calls.append(chunk.call)
            case DoneChunk() | ErrorChunk():
                return Completion("".join(text), tuple(calls), chunk)
            case _:
                assert_never(chunk)
    raise AssertionError("a provider stream ended without a terminal chunk")


@dataclass(slots=True)
class Translation:
    """Seconds of this process's own work, without waiting for the network."""

    request_s: float = 0.0
    answer_s: float = 0.0


_measured: ContextVar[Translation | None] = ContextVar("translation", default=None)


@contextmanager
def measured() -> Iterator[Translation]:
    """Measure encoding and decoding inside the block, including tasks started there."""
    sum_of = Translation()
    before = _measured.set(sum_of)
    try:
        yield sum_of
    finally:
        _measured.reset(before)


class _Timed:
    __slots__ = ("_began",)

    def __enter__(self) -> None:
        self._began = perf_counter()

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and (sum_of := _measured.get()) is not None:
            self._add(sum_of, perf_counter() - self._began)

    @staticmethod
    def _add(sum_of: Translation, took_s: float) -> None:
        raise NotImplementedError


class encoding(_Timed):  # noqa: N801 - used as a context manager, reads as a verb
    __slots__ = ()

    @staticmethod
    def _add(sum_of: Translation, took_s: float) -> None:
        sum_of.request_s += took_s


class decoding(_Timed):  # noqa: N801
    __slots__ = ()

    @staticmethod
    def _add(sum_of: Translation, took_s: float) -> None:
        sum_of.answer_s += took_s
