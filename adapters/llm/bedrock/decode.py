"""The events of ConverseStream, and the answer of Converse, folded into chunks; exceptions by name.

Text blocks begin without a start event. The usage (`metadata`) normally follows `messageStop`, so
an answer is whole only with both. Input tokens exclude cached ones.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import httpx

from adapters.llm.bedrock.event_stream import EventStreamSplitter
from adapters.llm.decoding import EventDecoder, OpenCall, new_call_id
from adapters.llm.failures import VendorError, is_overflow
from adapters.llm.messages import ErrorKind, StopReason, StreamChunk, Usage
from adapters.llm.wire_json import (
    arguments_text,
    as_int,
    as_list,
    as_object,
    as_text,
    dump_text,
    parse,
)

# The service model's names without "Exception", in lower case: streams begin them with a small
# letter.
_KINDS: Final[Mapping[str, ErrorKind]] = {
    "accessdenied": ErrorKind.AUTH,
    "expiredtoken": ErrorKind.AUTH,
    "incompletesignature": ErrorKind.AUTH,
    "internalserver": ErrorKind.OVERLOADED,
    "invalidsignature": ErrorKind.AUTH,
    "modelerror": ErrorKind.OVERLOADED,
    "modelnotready": ErrorKind.OVERLOADED,
    "modelstreamerror": ErrorKind.OVERLOADED,
    "modeltimeout": ErrorKind.TIMEOUT,
    "resourcenotfound": ErrorKind.BAD_REQUEST,
    "servicequotaexceeded": ErrorKind.QUOTA,
    "serviceunavailable": ErrorKind.OVERLOADED,
    "throttling": ErrorKind.RATE_LIMITED,
    "unrecognizedclient": ErrorKind.AUTH,
    "validation": ErrorKind.BAD_REQUEST,
}


_REASONS: Final[Mapping[str, StopReason]] = {
    "end_turn": StopReason.END_TURN,
    "tool_use": StopReason.TOOL_USE,
    "max_tokens": StopReason.MAX_TOKENS,
    "stop_sequence": StopReason.STOP_SEQUENCE,
    "model_context_window_exceeded": StopReason.MAX_TOKENS,
}
_FAILED: Final[Mapping[str, tuple[ErrorKind, str]]] = {
    "guardrail_intervened": (ErrorKind.REFUSED, "a guardrail stopped the answer"),
    "content_filtered": (ErrorKind.REFUSED, "a content filter stopped the answer"),
    "refusal": (ErrorKind.REFUSED, "the model declined"),
    "malformed_model_output": (ErrorKind.PROTOCOL, "the model's output was malformed"),
    "malformed_tool_use": (ErrorKind.PROTOCOL, "the model's tool call was malformed"),
}
_BLOCK_CHARS: Final = 32  # what a block counts that holds nothing


def read_error(status: int, headers: httpx.Headers, body: bytes) -> VendorError:
    """The error in an HTTP answer: named by `x-amzn-errortype: Name:http://...` or `__type`."""
    del status
    try:
        answer = as_object(parse(body))
    except ValueError:
        answer = {}
    named = headers.get("x-amzn-errortype", "") or as_text(answer.get("__type"))
    return error_of(named.split(":", 1)[0].rsplit("#", 1)[-1], answer)


def error_of(name: str, fields: Mapping[str, object]) -> VendorError:
    words = as_text(fields.get("message")) or as_text(fields.get("Message"))
    kind = _KINDS.get(name.lower().removesuffix("exception"))
    if kind in {ErrorKind.BAD_REQUEST, None} and is_overflow(words):
        kind = ErrorKind.CONTEXT_OVERFLOW
    return VendorError(name, words, kind)


class BedrockDecoder(EventDecoder):
    provider: ClassVar[str] = "bedrock"
    framing = EventStreamSplitter

    def __init__(self, call_id: Callable[[], str] = new_call_id, *, model: str = "") -> None:
        super().__init__(call_id)
        self.model = model  # the wire does not name it
        self._calls: dict[int, OpenCall] = {}
        self._closed: set[int] = set()
        self._thinking: dict[int, _Thinking] = {}
        self._reason = ""
        self._has_metadata = False

    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        data = as_object(event.get("data"))
        if "exception" in event:
            self.fail_as(out, error_of(as_text(event.get("exception")), data))
            return
        match event.get("event"):
            case "contentBlockDelta":
                self._delta(_index(data), as_object(data.get("delta")))
            case "contentBlockStart":
                self._start(_index(data), as_object(as_object(data.get("start")).get("toolUse")))
            case "contentBlockStop":
                self.keep(_BLOCK_CHARS)
                self._closed.add(_index(data))
            case "messageStop":
                self._reason = as_text(data.get("stopReason"))
            case "metadata":
                self._has_metadata = True
                self._billed(data)
            case _:
                pass
        if self._reason and self._has_metadata:
            self._stop(out)

    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        message = as_object(as_object(answer.get("output")).get("message"))
        for index, content in enumerate(as_list(message.get("content"))):
            self._block(index, as_object(content))
        self._billed(answer)
        self._reason = as_text(answer.get("stopReason"))
        if self._reason:
            self._stop(out)

    def on_clean_end(self, out: list[StreamChunk]) -> None:
        """Without metadata the answer is whole, and its cost is not known."""
        if self._reason:
            self._stop(out)

    def _block(self, index: int, content: Mapping[str, object]) -> None:
        if "toolUse" in content:
            call = as_object(content["toolUse"])
            self._start(index, call or {"name": ""})
            self._calls[index].add(arguments_text(call.get("input")))
        elif "reasoningContent" in content:
            reasoning = as_object(content["reasoningContent"])
            self._reason_on(index, {**reasoning, **as_object(reasoning.get("reasoningText"))})
        else:
            self.text(as_text(content.get("text")))
        self._closed.add(index)

    def _start(self, index: int, call: Mapping[str, object]) -> None:
        if call:
            name = as_text(call.get("name"))
            self._calls[index] = self.begin(as_text(call.get("toolUseId")), name)

    def _delta(self, index: int, delta: Mapping[str, object]) -> None:
        self.text(as_text(delta.get("text")))
        if "toolUse" in delta and index in self._calls:
            self._calls[index].add(as_text(as_object(delta["toolUse"]).get("input")))
        if "reasoningContent" in delta:
            self._reason_on(index, as_object(delta["reasoningContent"]))

    def _reason_on(self, index: int, piece: Mapping[str, object]) -> None:
        self.keep(_BLOCK_CHARS + self._thinking.setdefault(index, _Thinking()).add(piece))

    def _billed(self, told: Mapping[str, object]) -> None:
        usage = as_object(told.get("usage"))
        self._count(usage)
        self.served_as(as_object(told.get("serviceTier")).get("type"))
        self.served_as(as_object(told.get("performanceConfig")).get("latency"))
        if any(as_object(each).get("ttl") == "1h" for each in as_list(usage.get("cacheDetails"))):
            self.at_list_price = False

    def _count(self, usage: Mapping[str, object]) -> None:
        uncached, output = as_int(usage.get("inputTokens")), as_int(usage.get("outputTokens"))
        if uncached is None and output is None:
            return
        read = as_int(usage.get("cacheReadInputTokens")) or 0
        written = as_int(usage.get("cacheWriteInputTokens")) or 0
        self.usage = Usage(uncached or 0, read, written, output or 0)
        self.usage_known = True

    def _stop(self, out: list[StreamChunk]) -> None:
        failed = _FAILED.get(self._reason)
        if failed is not None:
            self.fail(out, *failed)
            return
        calls = [call for index, call in sorted(self._calls.items()) if index in self._closed]
        replayed = [part.native() for index, part in sorted(self._thinking.items())]
        reason = _REASONS.get(self._reason, StopReason.END_TURN)
        self.finish(out, reason, calls, tuple(block for block in replayed if block))


class _Thinking:
    __slots__ = ("_redacted", "_signature", "_text")

    def __init__(self) -> None:
        self._text: list[str] = []
        self._signature: list[str] = []
        self._redacted: list[str] = []

    def add(self, piece: Mapping[str, object]) -> int:
        kept = (self._text, self._signature, self._redacted)
        names = ("text", "signature", "redactedContent")
        pieces = [as_text(piece.get(name)) for name in names]
        for each, words in zip(kept, pieces, strict=True):
            each.append(words)
        return sum(map(len, pieces))

    def native(self) -> str:
        """The block as JSON text, as Converse wants it back; empty when there is nothing to it.

        Unsigned reasoning is not kept: no model needs it back, and some refuse it.
        """
        redacted, signature = "".join(self._redacted), "".join(self._signature)
        if redacted:
            return dump_text({"reasoningContent": {"redactedContent": redacted}})
        if not signature:
            return ""
        words = {"text": "".join(self._text), "signature": signature}
        return dump_text({"reasoningContent": {"reasoningText": words}})


def _index(data: Mapping[str, object]) -> int:
    return as_int(data.get("contentBlockIndex")) or 0
