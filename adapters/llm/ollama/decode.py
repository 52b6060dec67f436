"""The /api/chat lines, folded into chunks, and errors: a text in `{"error": "..."}`.

Calls come whole, without ids on older servers, and `done_reason` says "stop" even for them. A
line with `error` may come with status 200.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from adapters.llm.decoding import NdjsonDecoder, OpenCall, new_call_id
from adapters.llm.failures import VendorError, error_reader, is_overflow
from adapters.llm.messages import TOOLS_EMULATED, ErrorKind, StopReason, StreamChunk, Usage
from adapters.llm.pseudo_tools import MarkerReader
from adapters.llm.wire_json import arguments_text, as_int, as_list, as_object, as_text

# Messages from the server's source; for others the status decides.
_KINDS: Final[Mapping[str, ErrorKind]] = {
    "does not support tools": ErrorKind.BAD_REQUEST,
    "server busy": ErrorKind.OVERLOADED,
    "not found": ErrorKind.BAD_REQUEST,
    "requires more system memory": ErrorKind.OVERLOADED,
    "unauthorized": ErrorKind.AUTH,
}
_NO_TOOLS: Final = "does not support tools"


_REASONS: Final[Mapping[str, StopReason]] = {"length": StopReason.MAX_TOKENS}


def error_of(error: object) -> VendorError:
    """One error: a text, or an object with a message."""
    words = as_text(error) or as_text(as_object(error).get("message"))
    if is_overflow(words):
        return VendorError("", words, ErrorKind.CONTEXT_OVERFLOW)
    kind = next((kind for phrase, kind in _KINDS.items() if phrase in words), None)
    return VendorError("", words, kind)


def lacks_tools(message: str) -> bool:
    """Whether an error says that the model has no tools of its own."""
    return _NO_TOOLS in message


read_error = error_reader(lambda answer: error_of(answer.get("error")))


class OllamaDecoder(NdjsonDecoder):
    provider: ClassVar[str] = "ollama"

    def __init__(
        self,
        call_id: Callable[[], str] = new_call_id,
        *,
        emulated: frozenset[str] | None = None,
        num_ctx: int | None = None,
    ) -> None:
        super().__init__(call_id)
        self._markers = MarkerReader(emulated, self.begin) if emulated is not None else None
        self._num_ctx = num_ctx
        self._calls: list[OpenCall] = []

    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        if event.get("error"):
            self.fail_as(out, error_of(event["error"]))
            return
        self.model = as_text(event.get("model")) or self.model
        message = as_object(event.get("message"))
        content = as_text(message.get("content"))
        if content:
            self.text(self._markers.feed(content) if self._markers else content)
        for call in as_list(message.get("tool_calls")):
            self._call(as_object(call))
        if event.get("done") is True or as_text(event.get("done_reason")):
            self._stop(event, out)

    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        self.on_event(answer, out)

    def _call(self, call: Mapping[str, object]) -> None:
        function = as_object(call.get("function"))
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else arguments_text(arguments)
        name = as_text(function.get("name"))
        self._calls.append(self.begin(as_text(call.get("id")), name, text))

    def _stop(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        warnings = []
        if self._markers:
            self.text(self._markers.close())
            self._calls.extend(self._markers.calls)
            warnings.append(TOOLS_EMULATED)
        prompt, output = as_int(event.get("prompt_eval_count")), as_int(event.get("eval_count"))
        self.usage = Usage(input_uncached=prompt or 0, output=output or 0)
        self.usage_known = prompt is not None or output is not None
        if self._num_ctx is not None and (prompt or 0) >= self._num_ctx:
            warnings.append(
                f"The prompt filled the model's window of {self._num_ctx} tokens and was "
                "probably cut; raise num_ctx."
            )
        reason = _REASONS.get(as_text(event.get("done_reason")), StopReason.END_TURN)
        self.finish(out, reason, self._calls, warnings=tuple(warnings))
