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

import orjson

from adapters.llm.failures import VendorError, safe_words, wait_in_words
from adapters.llm.framing import (
    MAX_ARGUMENT_CHARS,
    MAX_CALLS,
    MAX_KEPT_CHARS,
    MAX_NAME_CHARS,
    MAX_TEXT_CHARS,
    MAX_WHOLE_BYTES,
    AnswerTooLarge,
    BadFraming,
    LineSplitter,
    SseSplitter,
)
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
from adapters.llm.wire_json import as_object, as_text, is_complete, parse, read_odd


class Decoder(Protocol):
    """A fold over the bytes of one answer; used once.

    `heard` counts signs of life: whole messages, comments. `billed` is the usage told so far.
    """

    @property
    def heard(self) -> int: ...

    @property
    def billed(self) -> Usage | None: ...

    def feed(self, data: bytes) -> list[StreamChunk]:
        """The chunks these bytes complete, their text as one. After a terminal chunk, nothing."""
        ...

    def close(self, *, is_delimited: bool = True) -> list[StreamChunk]:
        """The end of the bytes: a terminal chunk, if there was none yet.

        `is_delimited`: the transfer told where they end, so that they are not the rest of a cut.
        """
        ...


# Of a JSON object or array, as every vendor's events are.
_BEGINNINGS: Final = frozenset({b"{", b"["})
# Lines of server-sent events that hold no data.
_NO_DATA: Final = (b":", b"event:", b"id:", b"retry:")
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
    _chars: int = 0

    def add(self, piece: str) -> None:
        """A piece of the arguments; of what is longer than any tool takes, the beginning is kept."""
        room = MAX_ARGUMENT_CHARS - self._chars
        if piece and room > 0:
            self.parts.append(piece[:room])
            self._chars += len(piece)

    @property
    def arguments(self) -> str:
        """The JSON text so far; nothing at all means no arguments."""
        return "".join(self.parts).strip() or "{}"


def whole_call(call_id: str, name: str, arguments: str) -> OpenCall:
    """A call that came in one piece."""
    call = OpenCall(call_id, name)
    call.add(arguments)
    return call


class _Splitter(Protocol):
    heard: int  # messages, and what else shows that the other side lives

    def feed(self, data: bytes) -> list[bytes]: ...
    def close(self) -> list[bytes]: ...


class _NdjsonSplitter:
    """Newline-delimited JSON: every line that is not blank.

    Gateways wrap it as server-sent events, or put a comment in to keep a stream alive.
    """

    __slots__ = ("_lines", "heard")

    def __init__(self) -> None:
        self._lines = LineSplitter()
        self.heard = 0

    def feed(self, data: bytes) -> list[bytes]:
        lines = self._lines.feed(data)
        self.heard += sum(map(bool, lines))
        return [line for each in lines if (line := _line(each))]

    def close(self) -> list[bytes]:
        last = _line(self._lines.close())
        return [last] if last else []


def _line(line: bytes) -> bytes:
    line = line.strip().removeprefix(b"data:").lstrip()
    return b"" if line.startswith(_NO_DATA) else line


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
        self._whole_bytes = 0
        self._said: list[str] = []
        self._text_chars = 0
        self._kept_chars = 0
        self._calls_begun = 0
        self._started = False
        self._head = b""
        self.ended = False
        self.model = ""
        self.usage = Usage()
        self.usage_known = False
        self.at_list_price = True

    @property
    def heard(self) -> int:
        """See `Decoder`."""
        return self._events.heard

    @property
    def has_text(self) -> bool:
        """Whether it said anything."""
        return self._text_chars > 0

    @property
    def billed(self) -> Usage | None:
        """See `Decoder`."""
        return self.usage if self.usage_known else None

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
            self._whole_bytes += len(data)
            if self._whole_bytes > MAX_WHOLE_BYTES:
                self._whole.clear()
                self.fail(out, ErrorKind.PROTOCOL, f"answered more than {MAX_WHOLE_BYTES} bytes")
            return out
        try:
            payloads = self._events.feed(data)
        except BadFraming as error:
            self.fail(out, ErrorKind.PROTOCOL, str(error))
            return out
        self._take(payloads, out)
        self._speak(out)
        return out

    def close(self, *, is_delimited: bool = True) -> list[StreamChunk]:
        """See `Decoder`."""
        out: list[StreamChunk] = []
        if self.ended:
            return out
        if self._whole is not None:
            self._take_whole(b"".join(self._whole), out)
        else:
            self._take(self._events.close(), out)
        if not self.ended and is_delimited:
            self.on_clean_end(out)
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
        try:
            for payload in payloads:
                if self.ended:
                    break
                self._take_one(payload, out)
        except AnswerTooLarge as error:
            self.fail(out, ErrorKind.PROTOCOL, str(error))

    def _take_one(self, payload: bytes, out: list[StreamChunk]) -> None:
        try:
            event = orjson.loads(payload)
        except orjson.JSONDecodeError:
            payload = _without_comments(payload)
            if payload == b"[DONE]":
                self.on_end_marker(out)
                return
            if type(self).framing is SseSplitter and payload[:1] not in _BEGINNINGS:
                return  # a keep-alive, or another event than the vendor documents
            try:
                event = read_odd(payload)
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
        try:
            self.on_whole(answer, out)
        except AnswerTooLarge as error:
            self.fail(out, ErrorKind.PROTOCOL, str(error))

    @abstractmethod
    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        """One event of the wire."""

    @abstractmethod
    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        """The non-streamed form of an answer."""

    def on_end_marker(self, out: list[StreamChunk]) -> None:
        """The `[DONE]` line, where a wire has one; elsewhere it means nothing."""
        del out

    def on_clean_end(self, out: list[StreamChunk]) -> None:
        """The transfer ended as it announced; by default an answer without its end is cut."""
        del out

    def text(self, piece: str) -> None:
        """Answer text; empty pieces are dropped. Raises AnswerTooLarge."""
        if not piece:
            return
        self._text_chars += len(piece)
        over = self._text_chars - MAX_TEXT_CHARS
        if over > 0:
            self._said.append(piece[:-over])
            raise AnswerTooLarge(f"answered more than {MAX_TEXT_CHARS} characters")
        self._said.append(piece)

    def _speak(self, out: list[StreamChunk]) -> None:
        """What was said since the last chunk, as one: each costs its readers as much as a long one."""
        if self._said:
            out.append(TextChunk("".join(self._said)))
            self._said.clear()

    def keep(self, chars: int) -> None:
        """Account for what is kept beside the text. Raises AnswerTooLarge."""
        self._kept_chars += chars
        if self._kept_chars > MAX_KEPT_CHARS:
            raise AnswerTooLarge(f"thought for more than {MAX_KEPT_CHARS} characters")

    def begin(self, call_id: str, name: str, arguments: str = "") -> OpenCall:
        """A new call. Raises AnswerTooLarge."""
        self.count_call()
        return whole_call(call_id, name, arguments)

    def count_call(self) -> None:
        """One more call was begun. Raises AnswerTooLarge."""
        self._calls_begun += 1
        if self._calls_begun > MAX_CALLS:
            raise AnswerTooLarge(f"asked for more than {MAX_CALLS} tool calls at once")

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
            self._speak(out)
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
        self._speak(out)
        out.extend(ToolCallChunk(self._released(call)) for call in calls)
        self.end(
            out,
            DoneChunk(
                reason,
                self.usage,
                _one_line(self.model),
                provider_blocks,
                self.usage_known,
                warnings,
                self.at_list_price,
            ),
        )

    def _released(self, call: OpenCall) -> ToolCall:
        """With an id and a name that can be written down; odd ones are not repeated."""
        call_id = call.id if _one_line(call.id) == call.id else ""
        return ToolCall(call_id or self._new_id(), _one_line(call.name), call.arguments)

    def served_as(self, tier: object) -> None:
        """The service tier that the vendor names; all but the usual ones have prices of their own."""
        if as_text(tier).lower() not in _LISTED_TIERS:
            self.at_list_price = False


def _without_comments(payload: bytes) -> bytes:
    """The payload without lines that begin with a colon.

    Gateways send keep-alive comments as data (`data: : keepalive`), also right before a chunk.
    """
    lines = (line.strip() for line in payload.split(b"\n"))
    return b"\n".join(line for line in lines if not line.startswith(b":"))


def _one_line(name: str) -> str:
    """At most so long, and without what no database or terminal takes."""
    name = name[:MAX_NAME_CHARS]
    return name if name.isprintable() else "".join(c if c.isprintable() else "_" for c in name)


class NdjsonDecoder(EventDecoder, ABC):
    """A fold over newline-delimited JSON."""

    framing = _NdjsonSplitter
    tells_whole_answers = False
