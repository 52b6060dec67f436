"""The Nirmata provider: models behind Nirmata's own service.

Its capabilities endpoint says whether it supports tools and streams with them. Without that
endpoint tools are tried, and emulated after a refusal. `extra`: `streaming` (false: one answer in
one piece), `tools_enabled` ("true" or "false", like NIRMATA_TOOLS_ENABLED: the backend is not
asked), `local`.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import ClassVar, Final

from adapters.errors import AdapterError
from adapters.llm.chat_completions import chat_messages, chat_tool
from adapters.llm.config import ProviderConfig
from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, StreamChunk
from adapters.llm.nirmata.decode import NirmataDecoder, lacks_tools, read_error
from adapters.llm.pseudo_tools import emulated
from adapters.llm.transcript import turns
from adapters.llm.wire_json import as_int, as_object, as_text, dump

# An upgraded backend may gain tools; asking again sometimes is cheap.
_REMEMBER_S: Final = 300.0
_ANY: Final = 1_000_000
_CAPABILITIES: Final = "capabilities"
_CHAT: Final = "chat"


def encode(
    request: CompleteRequest, model: str, max_tokens: int, *, native_tools: bool, streaming: bool
) -> bytes:
    """The request body. Without `native_tools` the tools are described in the instructions."""
    if request.tools and not native_tools:
        request = emulated(request)
    body: dict[str, object] = {
        "messages": chat_messages(request.system, turns(request.messages)),
        "max_tokens": max_tokens,
        "stream": streaming,
    }
    if model:
        body["model"] = model
    if request.tools:
        body["tools"] = [chat_tool(tool) for tool in request.tools]
        body["tool_choice"] = "auto"
    return dump(body)


@dataclass(frozen=True, slots=True)
class _Can:
    """A backend's capabilities: the most tools per request, and whether it then streams."""

    tools: int = _ANY
    streams_tools: bool = True


class Nirmata(HostedProvider):
    vendor: ClassVar[str] = "nirmata"
    default_base_url: ClassVar[str] = "https://nirmata.io"
    default_model: ClassVar[str] = ""  # the backend's own choice
    default_context_tokens: ClassVar[int] = 200_000
    version: ClassVar[str] = ""
    resource: ClassVar[str] = f"llm-apps/{_CHAT}"

    limits_by_model = False  # its limits are the account's

    def __init__(self, config: ProviderConfig, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(config)
        self._clock = clock
        self._tools: tuple[float, _Can] | None = None  # until when
        self._tools_enabled = as_text(config.extra.get("tools_enabled")).strip().lower()

    def headers(self) -> Mapping[str, str]:
        key = self.config.api_key
        return {"authorization": f"NIRMATA-API {key}"} if key else {}

    async def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """One round. A backend without tools is asked again with emulated ones."""
        can = await self._can() if request.tools else _Can()
        native = len(request.tools) <= can.tools
        streams = can.streams_tools or not native
        async with aclosing(self._round(request, native_tools=native, streams=streams)) as chunks:
            async for chunk in chunks:
                if native and request.tools and _refused_tools(chunk):
                    self._tools = (self._clock() + _REMEMBER_S, _Can(0))
                    break
                yield chunk
            else:
                return
        async with aclosing(self._round(request, native_tools=False)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _round(
        self, request: CompleteRequest, *, native_tools: bool, streams: bool = True
    ) -> AsyncGenerator[StreamChunk, None]:
        model = self.model_for(request)
        streaming = streams and self.config.extra.get("streaming") is not False
        body = encode(
            request,
            model,
            self.max_tokens_for(request),
            native_tools=native_tools,
            streaming=streaming,
        )
        # What the service's own client sends: either of the two, never both.
        query = {"chunked": "true"} if streaming else {"provider": "bedrock"}
        named = {"model": model} if model else {}
        names = frozenset(tool.name for tool in request.tools)
        decoder = NirmataDecoder(
            model=model, emulated=None if native_tools else names, streamed=streaming
        )
        url = self.address.copy_merge_params({**named, **query})
        return self.post(body, decoder, read_error, url=url)

    async def _can(self) -> _Can:
        if self._tools is not None and self._clock() < self._tools[0]:
            return self._tools[1]
        if self._tools_enabled == "false":
            return _Can(0)
        path = self.address.path.removesuffix(_CHAT) + _CAPABILITIES
        try:
            answer = as_object(await self.ask("GET", self.address.copy_with(path=path)))
        except AdapterError:
            answer = {}  # older backends lack this endpoint; the request itself will show
        is_enabled = self._tools_enabled == "true" or answer.get("tools_supported") is not False
        most = as_int(answer.get("max_tools"))
        allowed = (_ANY if most is None else most) if is_enabled else 0
        can = _Can(allowed, answer.get("streaming_tools") is not False)
        self._tools = (self._clock() + _REMEMBER_S, can)
        return can


def _refused_tools(chunk: StreamChunk) -> bool:
    return (
        isinstance(chunk, ErrorChunk)
        and chunk.kind is ErrorKind.BAD_REQUEST
        and lacks_tools(chunk.message)
    )
