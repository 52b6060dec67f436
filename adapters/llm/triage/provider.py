"""`triage` as a provider: deterministic, local, free, and honest that no model was used."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from adapters.llm.framing import ROUND_LIMIT_S
from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    StopReason,
    StreamChunk,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    Usage,
)
from adapters.llm.port import Model, Price, Tier
from adapters.llm.triage.case import Signals, read_case
from adapters.llm.triage.judgement import judged
from adapters.llm.triage.plan import next_calls
from adapters.llm.triage.report import report

NAME = "triage"


class Triage:
    """Asks for tools like any model, and concludes when there is nothing left to look at.

    `pace_s` delays each word, so that people can watch an answer grow in a demonstration.
    """

    name = NAME
    supports_tools = True
    supports_streaming = True
    limits_by_model = False
    round_limit_s = ROUND_LIMIT_S
    max_context_tokens = 1_000_000
    is_local = True
    unavailable_reason: str | None = None

    def __init__(self, signals: Signals | None = None, *, pace_s: float = 0.0) -> None:
        self._signals = signals or Signals()
        self._pace_s = pace_s

    async def models(self) -> Sequence[Model]:
        return (Model("none", "no model was used", self.max_context_tokens, Tier.FAST),)

    def price_of(self, model: str) -> Price | None:  # noqa: ARG002 - the same for every name
        """Free, with any name."""
        return Price(0, 0, 0, 0)

    async def stream(self, request: CompleteRequest) -> AsyncIterator[StreamChunk]:
        """Tool calls while there is something to look at, then the report."""
        calls, text = await asyncio.to_thread(self._decided, request)
        for call in calls:
            yield ToolCallChunk(call)
        if not calls:
            headline, _, rest = text.partition("\n\n")
            yield TextChunk(headline)
            for word in f"\n\n{rest}".split(" "):
                await asyncio.sleep(self._pace_s)
                yield TextChunk(word + " ")
        reason = StopReason.TOOL_USE if calls else StopReason.END_TURN
        yield DoneChunk(reason, Usage(), "none")

    def _decided(self, request: CompleteRequest) -> tuple[Sequence[ToolCall], str]:
        case = read_case(request)
        judgement = judged(case)
        calls = next_calls(case, judgement, self._signals)
        return calls, "" if calls else report(case, judgement, self._signals)

    async def aclose(self) -> None: ...
