"""What all wire decoders share: pure folds from bytes to chunks with exactly one terminal chunk.

A decoder is the single assembler of tool calls. Calls are held until the end is known, so that a
cut stream never asks for a tool. What the events of one vendor mean lives with that vendor.
"""

import uuid
from abc import ABC, abstractmethod
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Protocol

from adapters.llm.failures import VendorError, safe_words, wait_in_words
from adapters.llm.framing import BadFraming, LineSplitter, SseSplitter
from adapters.llm.messages import (
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    StopReason,
    StreamChunk,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    Usage,
)
from adapters.llm.wire_json import as_object, as_text, is_complete, parse


class Decoder(Protocol):
    """A fold over the bytes of one answer; used once."""

    def feed(self, data: bytes) -> list[StreamChunk]:
        """The chunks these bytes complete. After a terminal chunk, nothing."""
        ...

    def close(self, *, is_delimited: bool = True) -> list[StreamChunk]:
        """The end of the bytes: a terminal chunk, if there was none yet.

        `is_delimited`: the transfer told where they end, so that they are not the rest of a cut.
        """
        ...


# How vendors name what their price lists are of.
_LISTED_TIERS: Final = frozenset({"", "auto", "default", "standard", "on_demand", "standard_only"})


def new_call_id() -> str:
    """An id for a call whose backend gave none."""
    return f"call_{uuid.uuid4().hex[:24]}"


@dataclass(slots=True)
class OpenCall:
    """A tool call being assembled."""

    id: str
    name: str
    parts: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The JSON text so far; nothing at all means no arguments."""
        return "".join(self.parts).strip() or "{}"


class _Splitter(Protocol):
    def feed(self, data: bytes) -> list[bytes]: ...
    def close(self) -> list[bytes]: ...


class _NdjsonSplitter:
    """Newline-delimited JSON: every line that is not blank."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines = LineSplitter()

    def feed(self, data: bytes) -> list[bytes]:
        return [line for line in self._lines.feed(data) if line.strip()]

    def close(self) -> list[bytes]:
        last = self._lines.close()
        return [last] if last.strip() else []


class EventDecoder(ABC):
    """A fold over JSON events. Subclasses give meaning to events and say how the stream ends."""

    provider: ClassVar[str]
    framing: ClassVar[Callable[[], _Splitter]] = SseSplitter
    # Whether bytes that begin with "{" are a backend that ignored `stream`.
    tells_whole_answers: bool = True

    def __init__(self, call_id: Callable[[], str] = new_call_id) -> None:
        self._events = type(self).framing()
        self._new_id = call_id
        self._whole: list[bytes] | None = None
        self._started = False
        self._head = b""
        self.ended = False
        self.has_text = False
        self.model = ""
        self.usage = Usage()
        self.usage_known = False
        self.at_list_price = True

    def feed(self, data: bytes) -> list[StreamChunk]:
        """See `Decoder`."""
        out: list[StreamChunk] = []
        if self.ended or not data:
            return out
        if not self._started:
            data = self._begun(data)
            if not data:
                return out
            if data[:1] == b"{" and self.tells_whole_answers:
                self._whole = []
        if self._whole is not None:
            self._whole.append(data)
            return out
        try:
            payloads = self._events.feed(data)
        except BadFraming as error:
            self.fail(out, ErrorKind.PROTOCOL, str(error))
            return out
        self._take(payloads, out)
        return out

    def close(self, *, is_delimited: bool = True) -> list[StreamChunk]:
        """See `Decoder`."""
        del is_delimited  # a wire that marks its end needs no other
        out: list[StreamChunk] = []
        if self.ended:
            return out
        if self._whole is not None:
            self._take_whole(b"".join(self._whole), out)
        else:
            self._take(self._events.close(), out)
        if not self.ended:
            self.fail(out, ErrorKind.CUT, "the answer broke off before its end")
        return out

    def _begun(self, data: bytes) -> bytes:
        """What is left of the first bytes without white space and a byte order mark."""
        data = (self._head + data).lstrip()
        self._head = data if len(data) < len(BOM_UTF8) and BOM_UTF8.startswith(data) else b""
        data = data[len(self._head) :].removeprefix(BOM_UTF8).lstrip()
        self._started = bool(data)
        return data

    def _take(self, payloads: Sequence[bytes], out: list[StreamChunk]) -> None:
        for payload in payloads:
            if self.ended:
                return
            if payload == b"[DONE]":
                self.on_end_marker(out)
                continue
            try:
                event = parse(payload)
            except ValueError:
                self.fail(out, ErrorKind.PROTOCOL, "an event is not JSON")
                return
            if isinstance(event, dict):
                self.on_event(event, out)

    def _take_whole(self, body: bytes, out: list[StreamChunk]) -> None:
        """A backend that ignored `stream` and answered with one JSON document."""
        try:
            answer = as_object(parse(body))
        except ValueError:
            return
        self.on_whole(answer, out)

    @abstractmethod
    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        """One event of the wire."""

    @abstractmethod
    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        """The non-streamed form of an answer."""

    def on_end_marker(self, out: list[StreamChunk]) -> None:
        """The `[DONE]` line, where a wire has one; elsewhere it means nothing."""
        del out

    def text(self, out: list[StreamChunk], piece: str) -> None:
        """Answer text; empty pieces are dropped."""
        if piece:
            self.has_text = True
            out.append(TextChunk(piece))

    def fail(
        self,
        out: list[StreamChunk],
        kind: ErrorKind,
        message: str,
        retry_after_s: float | None = None,
    ) -> None:
        """End with an error."""
        self.end(
            out,
            ErrorChunk(
                kind,
                f"{self.provider}: {message}",
                retry_after_s,
                usage=self.usage if self.usage_known else None,
            ),
        )

    def fail_as(self, out: list[StreamChunk], error: VendorError) -> None:
        """End with an error that the vendor sent within the stream."""
        kind = error.kind or ErrorKind.OVERLOADED
        words = safe_words(kind, error) or "the backend reported an error"
        self.fail(out, kind, words, wait_in_words(error.words))

    def end(self, out: list[StreamChunk], chunk: DoneChunk | ErrorChunk) -> None:
        """The one terminal chunk."""
        if not self.ended:
            self.ended = True
            out.append(chunk)

    def finish(
        self,
        out: list[StreamChunk],
        reason: StopReason,
        calls: Sequence[OpenCall],
        provider_blocks: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
    ) -> None:
        """End well: release the calls and settle what the vendor's reason means with them.

        Any call makes it `tool_use`, whatever the vendor said, except that an answer cut by its
        token limit stays cut and loses a call whose arguments are incomplete.
        """
        if reason is StopReason.MAX_TOKENS:
            calls = [call for call in calls if is_complete(call.arguments)]
        elif calls:
            reason = StopReason.TOOL_USE
        elif reason is StopReason.TOOL_USE:
            if not self.has_text:
                self.fail(out, ErrorKind.PROTOCOL, "a tool was announced and never named")
                return
            reason = StopReason.END_TURN
        out.extend(
            ToolCallChunk(ToolCall(call.id or self._new_id(), call.name, call.arguments))
            for call in calls
        )
        self.end(
            out,
            DoneChunk(
                reason,
                self.usage,
                self.model,
                provider_blocks,
                self.usage_known,
                warnings,
                self.at_list_price,
            ),
        )

    def served_as(self, tier: object) -> None:
        """The service tier that the vendor names; all but the usual ones have prices of their own."""
        if as_text(tier).lower() not in _LISTED_TIERS:
            self.at_list_price = False


class NdjsonDecoder(EventDecoder, ABC):
    """A fold over newline-delimited JSON."""

    framing = _NdjsonSplitter
    tells_whole_answers = False
