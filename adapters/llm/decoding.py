"""The common part of all wire decoders: pure folds from bytes to chunks with exactly one terminal
chunk.

Only a decoder assembles tool calls. It holds calls until the end is known, so that a cut stream
never requests a tool. The meaning of a vendor's events is in the vendor's package.
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
from adapters.llm.wire_json import as_object, as_text, is_complete, parse, read_malformed


class Decoder(Protocol):
    """A fold over the bytes of one answer; used once.

    `heard` counts signs of life: whole messages, comments. `billed` is the usage reported so far.
    """

    @property
    def heard(self) -> int: ...

    @property
    def billed(self) -> Usage | None: ...

    def feed(self, data: bytes) -> list[StreamChunk]:
        """The chunks that these bytes complete, their text merged; nothing after a terminal chunk."""
        ...

    def close(self, *, is_delimited: bool = True) -> list[StreamChunk]:
        """End the bytes: returns a terminal chunk, unless there was one.

        `is_delimited`: the transfer announced its end, so the answer was not cut there.
        """
        ...


# Every vendor's events are JSON objects or arrays.
_BEGINNINGS: Final = frozenset({b"{", b"["})
# Lines of server-sent events that hold no data.
_NO_DATA: Final = (b":", b"event:", b"id:", b"retry:")
# Service tiers at list price.
_LISTED_TIERS: Final = frozenset({"", "auto", "default", "standard", "on_demand", "standard_only"})


def new_call_id() -> str:
    """A generated id, for backends that send none."""
    return f"call_{uuid.uuid4().hex[:24]}"


@dataclass(slots=True)
class OpenCall:
    id: str
    name: str
    parts: list[str] = field(default_factory=list)
    _chars: int = 0

    def add(self, piece: str) -> None:
        """Add a piece of the arguments; text beyond the limit is dropped."""
        room = MAX_ARGUMENT_CHARS - self._chars
        if piece and room > 0:
            self.parts.append(piece[:room])
            self._chars += len(piece)

    @property
    def arguments(self) -> str:
        """The JSON text so far; empty text means no arguments."""
        return "".join(self.parts).strip() or "{}"


def whole_call(call_id: str, name: str, arguments: str) -> OpenCall:
    call = OpenCall(call_id, name)
    call.add(arguments)
    return call


class _Splitter(Protocol):
    heard: int  # messages, and what else shows that the other side lives

    def feed(self, data: bytes) -> list[bytes]: ...
    def close(self) -> list[bytes]: ...


class _NdjsonSplitter:
    """Newline-delimited JSON: every line that is not blank.

    Gateways wrap it as server-sent events, or insert comments as keep-alives.
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
    """A fold over JSON events. Subclasses interpret events and define the end of the stream."""

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
        return self._events.heard

    @property
    def has_text(self) -> bool:
        return self._text_chars > 0

    @property
    def billed(self) -> Usage | None:
        return self.usage if self.usage_known else None

    def feed(self, data: bytes) -> list[StreamChunk]:
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
        """The first bytes without white space and a byte order mark."""
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
                event = read_malformed(payload)
            except ValueError:
                self.fail(out, ErrorKind.PROTOCOL, "an event is not JSON")
                return
        if isinstance(event, dict):
            self.on_event(event, out)

    def _take_whole(self, body: bytes, out: list[StreamChunk]) -> None:
        """A backend ignored `stream` and answered with one JSON document."""
        try:
            answer = as_object(parse(body))
        except ValueError:
            return
        try:
            self.on_whole(answer, out)
        except AnswerTooLarge as error:
            self.fail(out, ErrorKind.PROTOCOL, str(error))

    @abstractmethod
    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None: ...

    @abstractmethod
    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None: ...

    def on_end_marker(self, out: list[StreamChunk]) -> None:
        """The `[DONE]` line, for wires that have one."""
        del out

    def on_clean_end(self, out: list[StreamChunk]) -> None:
        """The transfer ended as announced; by default an answer without its own end is cut."""
        del out

    def text(self, piece: str) -> None:
        """Add answer text; empty pieces are dropped. Raises AnswerTooLarge."""
        if not piece:
            return
        self._text_chars += len(piece)
        over = self._text_chars - MAX_TEXT_CHARS
        if over > 0:
            self._said.append(piece[:-over])
            raise AnswerTooLarge(f"answered more than {MAX_TEXT_CHARS} characters")
        self._said.append(piece)

    def _speak(self, out: list[StreamChunk]) -> None:
        """Merge the text since the last chunk into one chunk: each chunk costs readers the same."""
        if self._said:
            out.append(TextChunk("".join(self._said)))
            self._said.clear()

    def keep(self, chars: int) -> None:
        """Account for data kept beside the text. Raises AnswerTooLarge."""
        self._kept_chars += chars
        if self._kept_chars > MAX_KEPT_CHARS:
            raise AnswerTooLarge(f"thought for more than {MAX_KEPT_CHARS} characters")

    def begin(self, call_id: str, name: str, arguments: str = "") -> OpenCall:
        self.count_call()
        return whole_call(call_id, name, arguments)

    def count_call(self) -> None:
        """Count a new call. Raises AnswerTooLarge."""
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
        """End with an error that the vendor sent in the stream."""
        kind = error.kind or ErrorKind.OVERLOADED
        words = safe_words(kind, error) or "the backend reported an error"
        self.fail(out, kind, words, wait_in_words(error.words))

    def end(self, out: list[StreamChunk], chunk: DoneChunk | ErrorChunk) -> None:
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
        """End well: release the calls and settle the stop reason.

        Any call makes it `tool_use`, even against the vendor's reason. An answer cut by its token
        limit stays cut and loses calls with incomplete arguments.
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
        call_id = call.id if _one_line(call.id) == call.id else ""
        return ToolCall(call_id or self._new_id(), _one_line(call.name), call.arguments)

    def served_as(self, tier: object) -> None:
        """Note the vendor's service tier; unusual tiers have their own prices."""
        if as_text(tier).lower() not in _LISTED_TIERS:
            self.at_list_price = False


def _without_comments(payload: bytes) -> bytes:
    """The payload without lines that begin with a colon.

    Gateways send keep-alive comments as data (`data: : keepalive`), also right before a chunk.
    """
    lines = (line.strip() for line in payload.split(b"\n"))
    return b"\n".join(line for line in lines if not line.startswith(b":"))


def _one_line(name: str) -> str:
    """The name, shortened and without characters that databases or terminals reject."""
    name = name[:MAX_NAME_CHARS]
    return name if name.isprintable() else "".join(c if c.isprintable() else "_" for c in name)


class NdjsonDecoder(EventDecoder, ABC):
    framing = _NdjsonSplitter
    tells_whole_answers = False
