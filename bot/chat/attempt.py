"""One request to one provider: what it said, and whether it is worth asking again."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from adapters.llm.held_text import HeldText
from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    StopReason,
    TextChunk,
    ToolCall,
    ToolCallChunk,
)
from adapters.llm.port import Provider, encoding
from adapters.llm.thoughts import Thoughts
from adapters.llm.written_calls import CALLS_WRITTEN
from bot.domain.turn_events import RoundReplaced, TextDelta, TurnEvent

BRIEF_WAIT_S: Final = 2.0  # a rate limit that lifts this soon is waited for rather than fled from
_RETRYABLE: Final = frozenset({ErrorKind.OVERLOADED, ErrorKind.UNREACHABLE, ErrorKind.CUT})

Emit = Callable[[TurnEvent], None]


@dataclass(slots=True)
class Attempt:
    """What one provider said in this round so far."""

    number: int  # of the round
    text: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    end: DoneChunk | ErrorChunk | None = None
    stopped: bool = False

    def say(self, text: str, emit: Emit) -> None:
        if text:
            self.text.append(text)
            emit(TextDelta(text))

    def take_back(self, emit: Emit) -> None:
        if self.text:
            self.text.clear()
            emit(RoundReplaced(self.number))

    @property
    def shown(self) -> bool:
        """Whether people have read something of it."""
        return bool(self.text)

    @property
    def answered(self) -> bool:
        """Whether the request is billed, even with an unknown amount."""
        return bool(self.text or self.calls or self.stopped)


async def read(provider: Provider, request: CompleteRequest, attempt: Attempt, emit: Emit) -> None:
    """Ask, and gather into `attempt` what comes; text goes on to `emit` as it may be shown."""
    with encoding():
        stream = provider.stream(request)
    answer = _Answer(request, attempt, emit)
    try:
        async for chunk in stream:
            if isinstance(chunk, TextChunk):
                answer.feed(chunk.text)
            elif isinstance(chunk, ToolCallChunk):
                attempt.calls.append(chunk.call)
            else:
                attempt.end = chunk
    finally:  # also after a person's stop: the text stays
        answer.release()
    if attempt.end is None:
        attempt.end = ErrorChunk(ErrorKind.CUT, "the answer broke off")


class _Answer:
    def __init__(self, request: CompleteRequest, attempt: Attempt, emit: Emit) -> None:
        self._request = request
        self._attempt = attempt
        self._emit = emit
        self._thoughts = Thoughts(request)
        self._held = HeldText(request)

    def feed(self, text: str) -> None:
        self._say(*self._thoughts.feed(text))

    def release(self) -> None:
        attempt, end = self._attempt, self._attempt.end
        self._say(*self._thoughts.close(has_calls=bool(attempt.calls)))
        whole = isinstance(end, DoneChunk) and end.stop_reason is not StopReason.MAX_TOKENS
        rest, written = self._held.close(
            may_call=whole and not attempt.calls, has_thought=self._thoughts.found
        )
        attempt.say(rest, self._emit)
        is_silent = not ("".join(attempt.text).strip() or attempt.calls or written)
        if self._held.is_withheld and is_silent and isinstance(end, DoneChunk):
            message = "the model wrote a tool call that fits no tool"
            attempt.end = ErrorChunk(ErrorKind.PROTOCOL, message, usage=end.usage)
        if written and isinstance(end, DoneChunk):
            attempt.calls.extend(written)
            warnings = (*end.warnings, CALLS_WRITTEN)
            attempt.end = replace(end, stop_reason=StopReason.TOOL_USE, warnings=warnings)

    def _say(self, is_void: bool, text: str) -> None:
        if is_void:
            self._held = HeldText(self._request)
            self._attempt.take_back(self._emit)
        self._attempt.say(self._held.feed(text), self._emit)


def is_refused(attempt: Attempt) -> bool:
    """Whether the request itself was refused (400), which a field of it may be to blame for."""
    end = attempt.end
    is_bad = isinstance(end, ErrorChunk) and end.kind is ErrorKind.BAD_REQUEST and end.status != 404
    return is_bad and not attempt.shown and not attempt.stopped


def is_worth_retrying(attempt: Attempt) -> bool:
    """Whether the same provider may answer a moment later, with nothing shown so far."""
    end = attempt.end
    if not isinstance(end, ErrorChunk) or attempt.shown or attempt.stopped:
        return False
    if end.should_retry is not None:
        return end.should_retry
    wait_s = end.retry_after_s
    brief = end.kind is ErrorKind.RATE_LIMITED and wait_s is not None and wait_s <= BRIEF_WAIT_S
    return brief or end.kind in _RETRYABLE
