"""The Nirmata provider: models behind Nirmata's own service.

Whether it takes tools is asked of its capabilities endpoint; where there is none, tools are tried,
and emulated once it says that they are not supported. `extra`: `streaming` (false: one answer in
one piece), `local`.
"""

import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import ClassVar, Final

from adapters.errors import AdapterError
from adapters.llm.config import ProviderConfig
from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, StreamChunk
from adapters.llm.nirmata.decode import NirmataDecoder
from adapters.llm.nirmata.encode import encode
from adapters.llm.nirmata.errors import lacks_tools, read_error
from adapters.llm.wire_json import as_int, as_object

# A backend that is upgraded may gain tools; asking again now and then is cheap.
_REMEMBER_S: Final = 300.0
_CAPABILITIES: Final = "capabilities"
_CHAT: Final = "chat"


class Nirmata(HostedProvider):
    """Implements `Provider`."""

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
        self._tools: tuple[float, int] | None = None  # until when, how many a request may have

    def headers(self) -> Mapping[str, str]:
        """Sent with every request."""
        key = self.config.api_key
        return {"authorization": f"NIRMATA-API {key}"} if key else {}

    async def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """One round. A backend found to have no tools is asked again with emulated ones."""
        native = not request.tools or len(request.tools) <= await self._max_tools()
        async with aclosing(self._round(request, native_tools=native)) as chunks:
            async for chunk in chunks:
                if native and request.tools and _refused_tools(chunk):
                    self._tools = (self._clock() + _REMEMBER_S, 0)
                    break
                yield chunk
            else:
                return
        async with aclosing(self._round(request, native_tools=False)) as chunks:
            async for chunk in chunks:
                yield chunk

    def _round(
        self, request: CompleteRequest, *, native_tools: bool
    ) -> AsyncGenerator[StreamChunk, None]:
        model = self.model_for(request)
        streaming = self.config.extra.get("streaming") is not False
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

    async def _max_tools(self) -> int:
        """How many tools a request may have; many, where the backend does not say."""
        if self._tools is not None and self._clock() < self._tools[0]:
            return self._tools[1]
        path = self.address.path.removesuffix(_CHAT) + _CAPABILITIES
        try:
            answer = as_object(await self.ask("GET", self.address.copy_with(path=path)))
        except AdapterError:
            answer = {}  # older backends have no such endpoint; the request itself will tell
        supported = answer.get("tools_supported") is not False
        most = as_int(answer.get("max_tools"))
        allowed = (_ANY if most is None else most) if supported else 0
        self._tools = (self._clock() + _REMEMBER_S, allowed)
        return allowed


_ANY: Final = 1_000_000


def _refused_tools(chunk: StreamChunk) -> bool:
    return (
        isinstance(chunk, ErrorChunk)
        and chunk.kind is ErrorKind.BAD_REQUEST
        and lacks_tools(chunk.message)
    )
