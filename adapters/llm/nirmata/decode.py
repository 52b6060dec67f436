"""Nirmata's JSON lines, folded into chunks, in each form that its backends have used.

Shipped: `{"id", "type": "Text" | "ToolStart" | ..., "data": "text"}`, ended by the end of bytes; a
call is JSON text within `data`, and plain text there reports a tool that the backend ran itself.
Designed: `{"type": "content" | "tool_call", "delta"}`, calls in pieces by index, ended by `done`.
Scoped: as designed, but `tool_call` holds a whole call in `data`, without an end mark. Not
streamed: one object with `message`, `tool_calls` and `usage`.

Lines that are not JSON are skipped, as is the `data:` of server-sent events. An end of bytes inside
a line, or before the `done` of the designed form, is a broken answer. So is any end of the forms
without a mark when the transfer did not announce its end. Error messages are under `error`,
`message` or `detail`; the status decides the rest.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from adapters.llm.chat_completions import ToolDeltas
from adapters.llm.decoding import EventDecoder, new_call_id
from adapters.llm.failures import VendorError, error_reader, is_overflow
from adapters.llm.framing import LineSplitter
from adapters.llm.messages import TOOLS_EMULATED, ErrorKind, StopReason, StreamChunk, Usage
from adapters.llm.pseudo_tools import MarkerReader
from adapters.llm.wire_json import as_int, as_list, as_object, as_text, parse

_REASONS: Final[Mapping[str, StopReason]] = {
    "length": StopReason.MAX_TOKENS,
    "max_tokens": StopReason.MAX_TOKENS,
}
_DONE: Final = b"[DONE]"
# The first bytes of JSON texts, including NaN and the infinities.
_BEGINNINGS: Final = frozenset(bytes([each]) for each in b'{["-0123456789tfnNI')


def error_of(answer: object) -> VendorError:
    """One error: a text, or an object with a message in one of the usual places."""
    words = _words(answer)
    throttled = ErrorKind.RATE_LIMITED if "throttl" in words.lower() else None
    return VendorError("", words, ErrorKind.CONTEXT_OVERFLOW if is_overflow(words) else throttled)


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    fields = as_object(value)
    found = (fields.get(name) for name in ("error", "message", "detail", "data"))
    return next((words for words in map(_words, filter(None, found)) if words), "")


def lacks_tools(message: str) -> bool:
    words = message.lower()
    return "tool" in words and "support" in words


read_error = error_reader(error_of)


class _Lines:
    """Lines without the `data:` of server-sent events; lines that are not JSON are dropped.

    The last line may lack its newline, and is always kept.
    """

    __slots__ = ("_lines", "heard")

    def __init__(self) -> None:
        self._lines = LineSplitter()
        self.heard = 0

    def feed(self, data: bytes) -> list[bytes]:
        lines = [_payload(line) for line in self._lines.feed(data)]
        told = [line for line in lines if line == _DONE or _is_json(line)]
        self.heard += len(told)
        return told

    def close(self) -> list[bytes]:
        last = _payload(self._lines.close())
        return [last] if last else []


class NirmataDecoder(EventDecoder):
    """A fold over one answer. With `emulated`, calls of those tools are parsed from the text.

    `streamed` False: the answer is one document, which may span lines.
    """

    provider: ClassVar[str] = "nirmata"
    framing = _Lines

    def __init__(
        self,
        call_id: Callable[[], str] = new_call_id,
        *,
        model: str = "",
        emulated: frozenset[str] | None = None,
        streamed: bool = True,
    ) -> None:
        super().__init__(call_id)
        self.tells_whole_answers = not streamed
        self.model = model
        self._markers = MarkerReader(emulated, self.begin) if emulated is not None else None
        self._calls = ToolDeltas(self.begin)
        self._ends_with_bytes = False

    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        kind = as_text(event.get("type")).lower().replace("_", "")
        match kind:
            case "content" | "text" | "inputtext" | "inputchoice":
                self._ends_with_bytes |= "delta" not in event
                self._say(as_text(event.get("delta") or event.get("data")))
            case "toolcall":
                self._call(event)
            case "toolstart":
                self._ends_with_bytes = True
                self._tool_start(as_text(event.get("data")))
            case "error":
                self.fail_as(out, error_of(event))
            case "done":
                self._stop(event, out)
            case "":
                self.on_whole(event, out)
            case _:
                pass

    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        """The form that is not streamed, or an error without a type."""
        if "message" not in answer and "tool_calls" not in answer:
            if answer.get("error") or answer.get("detail"):
                self.fail_as(out, error_of(answer))
            return
        message = answer.get("message")
        self._say(as_text(message) or as_text(as_object(message).get("content")))
        for index, call in enumerate(as_list(answer.get("tool_calls"))):
            self._calls.add({**as_object(call), "index": index})
        self._stop(answer, out)

    def on_end_marker(self, out: list[StreamChunk]) -> None:
        """`[DONE]`, if a backend sends it; alone it is not an answer."""
        if self.has_text or self._calls.calls:
            self._stop({}, out)

    def on_clean_end(self, out: list[StreamChunk]) -> None:
        """The end of bytes ends the forms without an end mark."""
        if self._ends_with_bytes:
            self._stop({}, out)

    def _say(self, piece: str) -> None:
        self.text(self._markers.feed(piece) if self._markers else piece)

    def _call(self, event: Mapping[str, object]) -> None:
        whole = as_object(event.get("data"))
        if whole:
            self._ends_with_bytes = True
            self._calls.add({**whole, "index": len(self._calls.calls)})
        else:
            index = as_int(event.get("index"))
            self._calls.add({"index": index, **as_object(event.get("delta"))})

    def _tool_start(self, data: str) -> None:
        try:
            call = as_object(as_object(parse(data)).get("tool_call"))
        except ValueError:
            return  # plain text: the backend ran the tool itself
        if call:
            self._calls.add({**call, "index": len(self._calls.calls)})

    def _stop(self, last: Mapping[str, object], out: list[StreamChunk]) -> None:
        self._count(as_object(last.get("usage")))
        self.model = as_text(last.get("model")) or self.model
        calls, warnings = self._calls.calls, tuple[str, ...]()
        if self._markers:
            self.text(self._markers.close())
            calls = [*calls, *self._markers.calls]
            warnings = (TOOLS_EMULATED,)
        reason = as_text(last.get("stop_reason")) or as_text(last.get("finish_reason"))
        self.finish(out, _REASONS.get(reason, StopReason.END_TURN), calls, warnings=warnings)

    def _count(self, usage: Mapping[str, object]) -> None:
        given, output = as_int(usage.get("prompt_tokens")), as_int(usage.get("completion_tokens"))
        if given is not None or output is not None:
            self.usage = Usage(input_uncached=given or 0, output=output or 0)
            self.usage_known = True


def _payload(line: bytes) -> bytes:
    line = line.strip()
    return line[5:].strip() if line.startswith(b"data:") else line


def _is_json(line: bytes) -> bool:
    if line[:1] not in _BEGINNINGS:  # a comment, a name: a parser takes 15 µs to say so
        return False
    try:
        parse(line)
    except ValueError:
        return False
    return True
