"""The Messages API's events, folded into chunks, and its errors by name.

Usage is cumulative (the last word on each bucket wins) and its input excludes cached tokens.
Blocks may overlap on compatible servers, so they are kept by index; unknown events, blocks and
deltas are skipped, as the vendor asks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from adapters.llm.decoding import EventDecoder, OpenCall, new_call_id
from adapters.llm.failures import VendorError, error_reader, is_overflow
from adapters.llm.messages import ErrorKind, StopReason, StreamChunk, Usage
from adapters.llm.wire_json import (
    arguments_object,
    arguments_text,
    as_int,
    as_list,
    as_object,
    as_text,
    dump_text,
)

_KINDS: Final[Mapping[str, ErrorKind]] = {
    "api_error": ErrorKind.OVERLOADED,
    "authentication_error": ErrorKind.AUTH,
    "billing_error": ErrorKind.QUOTA,
    "invalid_request_error": ErrorKind.BAD_REQUEST,
    "not_found_error": ErrorKind.BAD_REQUEST,
    "overloaded_error": ErrorKind.OVERLOADED,
    "permission_error": ErrorKind.AUTH,
    "rate_limit_error": ErrorKind.RATE_LIMITED,
    "request_too_large": ErrorKind.CONTEXT_OVERFLOW,
    "timeout_error": ErrorKind.TIMEOUT,
}
# A rate limit that waiting does not lift.
_SPENT: Final = "enforced_spend_limit_reached"
_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "pause_turn": StopReason.END_TURN,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
}
_COUNTED: Final = (
    "input_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "output_tokens",
)


@dataclass(slots=True, init=False, eq=False)
class Block:
    """A block begun with `content_block_start`.

    `parts` holds its text or thinking, `call` a tool call.
    """

    kind: str
    call: OpenCall
    closed: bool
    parts: list[str] = field(default_factory=list)
    signature: list[str] = field(default_factory=list)
    _start: Mapping[str, object] = field(default_factory=dict)
    _has_input: bool = False

    def __init__(self, start: Mapping[str, object]) -> None:
        self.kind = as_text(start.get("type"))
        self.call = OpenCall(as_text(start.get("id")), as_text(start.get("name")))
        self.closed = False
        given = as_object(start.get("input"))
        if given:
            self.call.add(arguments_text(given))
        first = as_text(start.get("thinking" if self.kind == "thinking" else "text"))
        self.parts = [first] if first else []
        self.signature = [as_text(start.get("signature"))]
        self._start = start
        self._has_input = bool(given)

    def add_arguments(self, piece: str) -> None:
        """Add a piece of the arguments. Pieces replace arguments that came whole with the start."""
        if piece and self._has_input:
            self.call = OpenCall(self.call.id, self.call.name)
            self._has_input = False
        self.call.add(piece)

    @property
    def chars(self) -> int:
        return len(dump_text(self._start))

    @property
    def is_thinking(self) -> bool:
        return self.kind in {"thinking", "redacted_thinking"}

    def native(self) -> str:
        """The block as JSON text, as the API wants it back."""
        whole = "".join(self.parts)
        match self.kind:
            case "thinking":
                signature = "".join(self.signature)
                return dump_text({"type": self.kind, "thinking": whole, "signature": signature})
            case "tool_use":
                call = self.call
                arguments = arguments_object(call.arguments)
                return dump_text(
                    {"type": self.kind, "id": call.id, "name": call.name, "input": arguments}
                )
            case "text":
                return dump_text({"type": self.kind, "text": whole})
            case _:
                return dump_text(self._start)


def error_of(error: object) -> VendorError:
    """One error object: `{type, message, details?}`; a compatible server may send a text."""
    fields = as_object(error)
    name, words = as_text(fields.get("type")), as_text(fields.get("message")) or as_text(error)
    kind = _KINDS.get(name)
    if as_object(fields.get("details")).get("error_code") == _SPENT:
        kind = ErrorKind.QUOTA
    elif kind in {ErrorKind.BAD_REQUEST, None} and is_overflow(words):
        kind = ErrorKind.CONTEXT_OVERFLOW
    elif "credit balance" in words:  # a 400 invalid_request_error in practice
        kind = ErrorKind.QUOTA
    return VendorError(name, words, kind)


read_error = error_reader(lambda answer: error_of(answer.get("error")))


class AnthropicDecoder(EventDecoder):
    provider: ClassVar[str] = "anthropic"

    def __init__(self, call_id: Callable[[], str] = new_call_id) -> None:
        super().__init__(call_id)
        self._blocks: dict[int, Block] = {}
        # The block that nearly every event belongs to: the one begun last.
        self._last_index = -1
        self._last: Block | None = None
        self._counts: dict[str, int] = {}
        self._ending: Mapping[str, object] = {}

    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        match event.get("type"):
            case "content_block_delta":
                self._delta(event)
            case "content_block_start":
                self._block_start(event)
            case "content_block_stop":
                block = self._blocks.get(_index(event))
                if block is not None:
                    block.closed = True
            case "message_start":
                message = as_object(event.get("message"))
                self.model = as_text(message.get("model")) or self.model
                self._count(as_object(message.get("usage")))
            case "message_delta":
                self._count(as_object(event.get("usage")))
                self._ending = {**self._ending, **_given(as_object(event.get("delta")))}
            case "message_stop":
                self._stop(out)
            case "error":
                self._error(event, out)
            case _:
                if event.get("error") and not event.get("type"):  # a gateway's own failure
                    self._error(event, out)

    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        """A message that was not streamed, replayed as if it had been."""
        if answer.get("error"):
            self._error(answer, out)
            return
        self.on_event({"type": "message_start", "message": answer}, out)
        for index, content in enumerate(as_list(answer.get("content"))):
            start = {"type": "content_block_start", "index": index, "content_block": content}
            self.on_event(start, out)
            self.on_event({"type": "content_block_stop", "index": index}, out)
        if as_text(answer.get("stop_reason")):
            self._ending = answer
            self._stop(out)

    def on_clean_end(self, out: list[StreamChunk]) -> None:
        if self._ending.get("stop_reason"):
            self._stop(out)

    def _block_start(self, event: Mapping[str, object]) -> None:
        block = Block(as_object(event.get("content_block")))
        self.keep(block.chars)
        if block.kind == "tool_use":
            self.count_call()
        self._last_index, self._last = _index(event), block
        self._blocks[self._last_index] = block
        if block.kind == "text":
            self.text("".join(block.parts))

    def _delta(self, event: Mapping[str, object]) -> None:
        delta = as_object(event.get("delta"))
        index, block = event.get("index"), self._last
        if index.__class__ is not int or index != self._last_index:
            block = self._blocks.get(_index(event))
        match delta.get("type"):
            case "text_delta":
                self._say(block, as_text(delta.get("text")))
            case "input_json_delta" if block is not None:
                block.add_arguments(as_text(delta.get("partial_json")))
            case "thinking_delta" if block is not None:
                self._keep_in(block.parts, as_text(delta.get("thinking")))
            case "signature_delta" if block is not None:
                self._keep_in(block.signature, as_text(delta.get("signature")))
            case _:
                pass

    def _say(self, block: Block | None, piece: str) -> None:
        self.text(piece)
        if block is not None:
            block.parts.append(piece)

    def _keep_in(self, parts: list[str], piece: str) -> None:
        self.keep(len(piece))
        parts.append(piece)

    def _count(self, usage: Mapping[str, object]) -> None:
        """Usage is cumulative: the last number of a bucket counts."""
        for name in _COUNTED:
            tokens = as_int(usage.get(name))
            if tokens is not None:
                self._counts[name] = tokens
                self.usage_known = True
        self.served_as(usage.get("service_tier"))
        an_hours_cache = as_object(usage.get("cache_creation")).get("ephemeral_1h_input_tokens")
        if as_int(an_hours_cache) or any(
            map(as_int, as_object(usage.get("server_tool_use")).values())
        ):
            self.at_list_price = False
        self.usage = Usage(*(self._counts.get(name, 0) for name in _COUNTED))

    def _stop(self, out: list[StreamChunk]) -> None:
        reason = as_text(self._ending.get("stop_reason"))
        if not reason:
            self.fail(out, ErrorKind.CUT, "the answer ended without a reason")
            return
        if reason == "refusal":
            details = as_object(self._ending.get("stop_details"))
            why = as_text(details.get("explanation")) or as_text(details.get("category"))
            self.fail(out, ErrorKind.REFUSED, "the model declined" + (f": {why}" if why else ""))
            return
        blocks = [self._blocks[index] for index in sorted(self._blocks)]
        calls = [block.call for block in blocks if block.kind == "tool_use" and block.closed]
        self.finish(out, _REASONS.get(reason, StopReason.END_TURN), calls, _to_replay(blocks))

    def _error(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        self.fail_as(out, error_of(event.get("error")))


def _given(delta: Mapping[str, object]) -> Mapping[str, object]:
    return {name: value for name, value in delta.items() if value is not None}


def _index(event: Mapping[str, object]) -> int:
    return as_int(event.get("index")) or 0


def _to_replay(blocks: list[Block]) -> tuple[str, ...]:
    """The blocks that the next request must carry unchanged: signed thinking.

    Interleaved thinking must keep its place, so all blocks are kept then.
    """
    kept = [block for block in blocks if block.closed and block.kind in _REPLAYED]
    thinking = [block for block in kept if block.is_thinking]
    leading = kept[: len(thinking)] == thinking
    return tuple(block.native() for block in (thinking if leading or not thinking else kept))


_REPLAYED: Final = frozenset({"thinking", "redacted_thinking", "text", "tool_use"})
