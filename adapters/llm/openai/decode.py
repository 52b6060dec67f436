"""The chat/completions chunks, folded into ours, and OpenAI's errors by name.

The stream is whole with its `[DONE]`, or with a `finish_reason` where the transfer ends cleanly without one. A missing
`finish_reason` before `[DONE]` is forgiven.
`prompt_tokens` includes cached tokens, so they are taken out.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import httpx

from adapters.llm.chat_completions import ToolDeltas
from adapters.llm.decoding import EventDecoder, new_call_id
from adapters.llm.failures import VendorError, is_overflow, kind_of_status
from adapters.llm.messages import ErrorKind, StopReason, StreamChunk, Usage
from adapters.llm.wire_json import as_int, as_list, as_object, as_text, parse

# By `code`, then by `type`.
_KINDS: Final[Mapping[str, ErrorKind]] = {
    "billing_hard_limit_reached": ErrorKind.QUOTA,
    "content_filter": ErrorKind.REFUSED,
    "content_policy_violation": ErrorKind.REFUSED,
    "context_length_exceeded": ErrorKind.CONTEXT_OVERFLOW,
    "exceed_context_size_error": ErrorKind.CONTEXT_OVERFLOW,
    "insufficient_quota": ErrorKind.QUOTA,
    "invalid_api_key": ErrorKind.AUTH,
    "invalid_request_error": ErrorKind.BAD_REQUEST,
    "model_not_found": ErrorKind.BAD_REQUEST,
    "overloaded_error": ErrorKind.OVERLOADED,
    "rate_limit_exceeded": ErrorKind.RATE_LIMITED,
    "server_error": ErrorKind.OVERLOADED,
}


_REASONS: Final[Mapping[str, StopReason]] = {
    "stop": StopReason.END_TURN,
    "length": StopReason.MAX_TOKENS,
    "tool_calls": StopReason.TOOL_USE,
    "function_call": StopReason.TOOL_USE,
}


def read_error(status: int, headers: httpx.Headers, body: bytes) -> VendorError:
    """The error in an HTTP answer; a body of another shape decides nothing."""
    del headers
    try:
        answers = parse(body)  # Gemini's compatible endpoint sends a list of one
        answer = as_object(answers[0] if isinstance(answers, list) and answers else answers)
    except ValueError:
        return VendorError("", "", None)
    found = error_of(answer.get("error") or answer)
    if found.kind is ErrorKind.BAD_REQUEST and status in {401, 403, 429}:
        return VendorError(found.name, found.words, kind_of_status(status))
    return found


def error_of(error: object) -> VendorError:
    if isinstance(error, str):
        return _named("", error, None)
    fields = as_object(error)
    words = as_text(fields.get("message")) or as_text(fields.get("detail"))
    code, name = as_text(fields.get("code")), as_text(fields.get("type"))
    status = as_int(fields.get("code"))
    kind = _KINDS.get(code) or _KINDS.get(name)
    if kind is None and status is not None and status >= 400:
        kind = kind_of_status(status)
    return _named(code or name, words, kind)


def _named(name: str, words: str, kind: ErrorKind | None) -> VendorError:
    if kind in {ErrorKind.BAD_REQUEST, None} and is_overflow(words):
        kind = ErrorKind.CONTEXT_OVERFLOW
    return VendorError(name, words, kind)


class OpenAIDecoder(EventDecoder):
    provider: ClassVar[str] = "openai"

    def __init__(self, call_id: Callable[[], str] = new_call_id) -> None:
        super().__init__(call_id)
        self._tools = ToolDeltas(self.begin)
        self._refusal: list[str] = []
        self._finish = ""

    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        if event.get("error") or event.get("object") == "error":
            self.fail_as(out, error_of(event.get("error") or event))
            return
        self._told(event)
        answer = _answer_of(event)
        if answer is not None:
            self._choice(answer, "delta")

    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        self.on_event({**answer, "choices": []}, out)
        if self.ended:
            return
        choice = _answer_of(answer)
        if choice is not None:
            self._choice(choice, "message")
            self.on_end_marker(out)

    def on_end_marker(self, out: list[StreamChunk]) -> None:
        if self._refusal:
            self.fail(out, ErrorKind.REFUSED, f"the model declined: {''.join(self._refusal)[:200]}")
        elif self._finish == "content_filter":
            self.fail(out, ErrorKind.REFUSED, "a content filter stopped the answer")
        elif self._finish == "error":
            self.fail(out, ErrorKind.OVERLOADED, "the backend failed while answering")
        else:
            reason = _REASONS.get(self._finish, StopReason.END_TURN)
            self.finish(out, reason, self._tools.calls)

    def on_clean_end(self, out: list[StreamChunk]) -> None:
        """Some servers send no `[DONE]` after the reason."""
        if self._finish:
            self.on_end_marker(out)

    def _told(self, event: Mapping[str, object]) -> None:
        model = event.get("model")
        if model and isinstance(model, str):
            self.model = model
        if event.get("service_tier") is not None:
            self.served_as(event["service_tier"])
        if event.get("usage"):
            self._count(as_object(event["usage"]))

    def _choice(self, choice: Mapping[str, object], key: str) -> None:
        delta = as_object(choice.get(key))
        content = delta.get("content")
        if content:
            self._content(content)
        if delta.get("tool_calls"):
            for tool in as_list(delta["tool_calls"]):
                self._tools.add(as_object(tool))
        if delta.get("function_call"):  # before tools, and still what some servers send
            self._tools.add({"index": 0, "function": delta["function_call"]})
        if delta.get("refusal"):
            refusal = as_text(delta["refusal"])
            self.keep(len(refusal))
            self._refusal.append(refusal)
        if choice.get("finish_reason"):
            self._finish = as_text(choice["finish_reason"]) or self._finish

    def _content(self, content: object) -> None:
        if isinstance(content, str):
            self.text(content)
            return
        for part in as_list(content):
            self.text(as_text(as_object(part).get("text")))

    def _count(self, usage: Mapping[str, object]) -> None:
        prompt, output = as_int(usage.get("prompt_tokens")), as_int(usage.get("completion_tokens"))
        if prompt is None and output is None:
            return
        details = as_object(usage.get("prompt_tokens_details"))
        cached = details.get("cached_tokens", usage.get("prompt_cache_hit_tokens"))  # DeepSeek
        read = as_int(cached) or 0
        written = as_int(details.get("cache_write_tokens")) or 0
        self.usage = Usage(max(0, (prompt or 0) - read - written), read, written, output or 0)
        self.usage_known = True


def _answer_of(event: Mapping[str, object]) -> Mapping[str, object] | None:
    """The first choice. Some servers leave the index out."""
    for each in as_list(event.get("choices")):
        choice = as_object(each)
        if not choice.get("index"):
            return choice
    return None
