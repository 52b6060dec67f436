"""The events of the Responses API, folded into chunks.

Only finished items count, so a cut one never does. `input_tokens` includes cached tokens, so they
are taken out.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from adapters.llm.decoding import EventDecoder, OpenCall, new_call_id
from adapters.llm.messages import ErrorKind, StopReason, StreamChunk, Usage
from adapters.llm.openai.decode import error_of
from adapters.llm.wire_json import as_int, as_list, as_object, as_text, dump_text

_OF_NO_USE_AGAIN: Final = frozenset({"status", "logprobs", "annotations"})


class ResponsesDecoder(EventDecoder):
    provider: ClassVar[str] = "openai"

    def __init__(self, call_id: Callable[[], str] = new_call_id) -> None:
        super().__init__(call_id)
        self._calls: list[OpenCall] = []
        self._items: list[Mapping[str, object]] = []
        self._spoken: set[int | None] = set()
        self._refusal: list[str] = []

    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        match event.get("type"):
            case "response.output_text.delta":
                self._spoken.add(as_int(event.get("output_index")))
                self.text(as_text(event.get("delta")))
            case "response.refusal.delta":
                self._refuse(as_text(event.get("delta")))
            case "response.output_item.done":
                self._item(as_object(event.get("item")), as_int(event.get("output_index")))
            case (
                "response.completed"
                | "response.incomplete"
                | "response.failed"
                | "response.cancelled"
            ):
                self._end(as_object(event.get("response")), out)
            case "error":
                self.fail_as(out, error_of(event.get("error") or event))
            case "response.created" | "response.in_progress":
                response = as_object(event.get("response"))
                self.model = as_text(response.get("model")) or self.model
            case _:
                if event.get("error") and not event.get("type"):  # a gateway's own failure
                    self.fail_as(out, error_of(event["error"]))

    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        if answer.get("error") and not answer.get("status"):
            self.fail_as(out, error_of(answer["error"]))
            return
        for index, item in enumerate(as_list(answer.get("output"))):
            self._item(as_object(item), index)
        if as_text(answer.get("status")):
            self._end(answer, out)

    def _item(self, item: Mapping[str, object], index: int | None) -> None:
        match item.get("type"):
            case "function_call" if not self._has_call(item):
                arguments = as_text(item.get("arguments"))
                call_id, name = as_text(item.get("call_id")), as_text(item.get("name"))
                self._calls.append(self.begin(call_id, name, arguments))
            case "message":
                self._message(item, index)
            case "reasoning":
                pass
            case _:
                self.at_list_price = self.at_list_price and not _is_vendors_tool(item)
                return
        self.keep(_size(item))
        self._items.append(item)

    def _refuse(self, words: str) -> None:
        self.keep(len(words))
        self._refusal.append(words)

    def _has_call(self, item: Mapping[str, object]) -> bool:
        call_id = as_text(item.get("call_id"))
        return bool(call_id) and any(call.id == call_id for call in self._calls)

    def _message(self, item: Mapping[str, object], index: int | None) -> None:
        for part in map(as_object, as_list(item.get("content"))):
            if part.get("type") == "refusal" and not self._refusal:
                self._refuse(as_text(part.get("refusal")))
            elif index not in self._spoken:
                self.text(as_text(part.get("text")))
        self._spoken.add(index)

    def _end(self, response: Mapping[str, object], out: list[StreamChunk]) -> None:
        self.model = as_text(response.get("model")) or self.model
        self.served_as(response.get("service_tier"))
        if not self._items:  # a compatible server may send the items only here
            for index, item in enumerate(as_list(response.get("output"))):
                self._item(as_object(item), index)
        self._count(as_object(response.get("usage")))
        why = as_text(as_object(response.get("incomplete_details")).get("reason"))
        status = response.get("status")
        if status == "failed" or response.get("error"):
            self.fail_as(out, error_of(response.get("error")))
        elif why == "content_filter":
            self.fail(out, ErrorKind.REFUSED, "a content filter stopped the answer")
        elif self._refusal:
            self.fail(out, ErrorKind.REFUSED, f"the model declined: {''.join(self._refusal)[:200]}")
        elif status == "incomplete":
            self.finish(out, StopReason.MAX_TOKENS, self._calls)
        elif status == "cancelled":
            self.fail(out, ErrorKind.CUT, "the answer was cancelled at the backend")
        else:
            self.finish(out, StopReason.END_TURN, self._calls, self._to_replay())

    def _to_replay(self) -> tuple[str, ...]:
        """All items in order if one is encrypted reasoning; else the text suffices."""
        reasons = any(as_text(item.get("encrypted_content")) for item in self._items)
        if not reasons:
            return ()
        return tuple(dump_text(_kept(item)) for item in self._items)

    def _count(self, usage: Mapping[str, object]) -> None:
        given, output = as_int(usage.get("input_tokens")), as_int(usage.get("output_tokens"))
        if given is None and output is None:
            return
        details = as_object(usage.get("input_tokens_details"))
        read = as_int(details.get("cached_tokens")) or 0
        written = as_int(details.get("cache_write_tokens")) or 0
        self.usage = Usage(max(0, (given or 0) - read - written), read, written, output or 0)
        self.usage_known = True


def _is_vendors_tool(item: Mapping[str, object]) -> bool:
    return as_text(item.get("type")) in {
        "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"
    }  # fmt: skip


def _size(item: Mapping[str, object]) -> int:
    return len(dump_text(item))


def _kept(item: Mapping[str, object]) -> Mapping[str, object]:
    """The fields that the API accepts back; an id would refer to an item that it did not store."""
    dropped = _OF_NO_USE_AGAIN if item.get("type") == "reasoning" else _OF_NO_USE_AGAIN | {"id"}
    kept = {key: value for key, value in item.items() if key not in dropped}
    if kept.get("arguments") == "":
        kept["arguments"] = "{}"  # written so by strict tools without parameters, refused back
    return kept
