"""The trace of the turn that is being answered here, and its model requests as spans."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from random import SystemRandom
from typing import Final

import orjson
from pydantic import JsonValue

from adapters.llm.messages import CompleteRequest, DoneChunk, Message, Usage
from bot.chat.attempt import Attempt
from bot.domain.ids import TurnId
from bot.telemetry import conventions as names
from bot.telemetry.spans import FinishedSpan, SpanKind, Spans, Value, trace_of, turn_span_of

CANCELLED: Final = "cancelled"
_ids: Final = SystemRandom()


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """Where the spans of one turn go: below the turn's own."""

    turn: TurnId
    conversation: str
    spans: Spans

    def ended(
        self,
        name: str,
        started_ns: int,
        attributes: Mapping[str, Value],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        content: Mapping[str, str] | None = None,
        error: str = "",
    ) -> None:
        """Something within the turn is over, now."""
        self.spans.ended(
            FinishedSpan(
                name,
                kind,
                trace_of(self.turn),
                _ids.randbytes(8),
                turn_span_of(self.turn),
                started_ns,
                time.time_ns(),
                {names.CONVERSATION: self.conversation, **attributes},
                (content or {}) if self.spans.with_content else {},
                error,
            )
        )


current: Final[ContextVar[TurnTrace | None]] = ContextVar("turn_trace", default=None)


@contextmanager
def model_request(provider: str, request: CompleteRequest, attempt: Attempt) -> Iterator[None]:
    """A span for one request to a model, with its answer in `attempt`, if the turn is traced."""
    trace = current.get()
    if trace is None:
        yield
        return
    started_ns = time.time_ns()
    broken = ""
    try:
        yield
    except BaseException as error:
        broken = type(error).__name__
        raise
    finally:
        _request_ended(trace, provider, request, attempt, started_ns, broken)


def _request_ended(
    trace: TurnTrace,
    provider: str,
    request: CompleteRequest,
    attempt: Attempt,
    started_ns: int,
    broken: str,
) -> None:
    end = attempt.end
    done = end if isinstance(end, DoneChunk) else None
    model = request.model or (done.model if done else "")
    attributes: dict[str, Value] = {
        names.OPERATION: names.CHAT,
        names.PROVIDER: names.PROVIDERS.get(provider, provider),
        **({names.REQUEST_MODEL: model} if model else {}),
        **usage_attributes(end.usage if end else None),
    }
    if done:
        attributes[names.RESPONSE_MODEL] = done.model
        attributes[names.FINISH_REASONS] = (done.stop_reason.value,)
    failed = end.kind.value if end and not isinstance(end, DoneChunk) else ""
    trace.ended(
        f"{names.CHAT} {model or provider}",
        started_ns,
        attributes,
        kind=SpanKind.CLIENT,
        content=_said(request, attempt) if trace.spans.with_content else None,
        error=broken or failed or ("stopped" if attempt.stopped else ""),
    )


def usage_attributes(usage: Usage | None) -> dict[str, Value]:
    if usage is None:
        return {}
    return {
        names.INPUT_TOKENS: usage.input,
        names.OUTPUT_TOKENS: usage.output,
        names.CACHE_READ_TOKENS: usage.cache_read,
        names.CACHE_WRITE_TOKENS: usage.cache_write,
    }


def _said(request: CompleteRequest, attempt: Attempt) -> dict[str, str]:
    answer: list[JsonValue] = [{"type": "text", "content": "".join(attempt.text)}]
    answer += [_call(c.id, c.name, c.arguments) for c in attempt.calls]
    return {
        names.INSTRUCTIONS: as_json([{"type": "text", "content": request.system}]),
        names.INPUT_MESSAGES: as_json([_message(each) for each in request.messages]),
        names.OUTPUT_MESSAGES: as_json([{"role": "assistant", "parts": answer}]),
    }


def _message(message: Message) -> JsonValue:
    parts: list[JsonValue] = []
    if message.text:
        parts.append({"type": "text", "content": message.text})
    parts += [_call(c.id, c.name, c.arguments) for c in message.tool_calls]
    if result := message.tool_result:
        told: JsonValue = {
            "type": "tool_call_response", "id": result.call_id, "response": result.content
        }  # fmt: skip
        parts.append(told)
    return {"role": message.role.value, "parts": parts}


def _call(call_id: str, name: str, arguments: str) -> JsonValue:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


def as_json(value: JsonValue) -> str:
    """Its JSON; empty for what no JSON text can hold."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # half a surrogate pair, an integer of 128 bits
        return ""
