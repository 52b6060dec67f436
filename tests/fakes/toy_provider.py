"""A model provider as CONTRIBUTING's recipe has one written: this file and a registry line.

Its wire: POST /v1/toy; lines of JSON, `{"say": text}`, `{"use": name, "with": {...}}`, `{"end": n}`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import ClassVar

from adapters.llm.chat_completions import chat_messages, chat_tool
from adapters.llm.decoding import NdjsonDecoder, OpenCall, new_call_id
from adapters.llm.failures import VendorError
from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, StopReason, StreamChunk, Usage
from adapters.llm.transcript import turns
from adapters.llm.wire_json import as_int, as_object, as_text, dump, dump_text


class ToyDecoder(NdjsonDecoder):
    """A fold over one answer."""

    provider: ClassVar[str] = "toy"

    def __init__(self, call_id: Callable[[], str] = new_call_id) -> None:
        super().__init__(call_id)
        self._calls: list[OpenCall] = []

    def on_event(self, event: Mapping[str, object], out: list[StreamChunk]) -> None:
        """One line."""
        self.text(as_text(event.get("say")))
        if "use" in event:
            arguments = dump_text(as_object(event.get("with")))
            self._calls.append(OpenCall("", as_text(event["use"]), [arguments]))
        if "end" in event:
            self.usage, self.usage_known = Usage(output=as_int(event["end"]) or 0), True
            self.finish(out, StopReason.END_TURN, self._calls)

    def on_whole(self, answer: Mapping[str, object], out: list[StreamChunk]) -> None:
        """An answer that was not streamed has the same form."""
        self.on_event(answer, out)


class Toy(HostedProvider):
    """Implements `Provider`."""

    vendor: ClassVar[str] = "toy"
    default_base_url: ClassVar[str] = "https://toy.example"
    default_model: ClassVar[str] = "toy-1"
    default_context_tokens: ClassVar[int] = 32_000
    resource: ClassVar[str] = "toy"

    def headers(self) -> Mapping[str, str]:
        """Sent with every request."""
        return {"authorization": f"Bearer {self.config.api_key}"}

    def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """One round."""
        body = {
            "model": self.model_for(request),
            "tools": [chat_tool(tool) for tool in request.tools],
            "messages": chat_messages(request.system, turns(request.messages)),
        }
        return self.post(dump(body), ToyDecoder(), lambda *_: VendorError("", "", None))
