"""The reserved provider `koder-ai`, which is never available."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from adapters.llm.config import ProviderConfig
from adapters.llm.exchange import only
from adapters.llm.framing import ROUND_LIMIT_S
from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, StreamChunk
from adapters.llm.port import Model, Price

_REASON: Final = "koder-ai is reserved for a model that does not exist yet"


class KoderAI:
    supports_tools = False
    supports_streaming = False
    limits_by_model = False
    round_limit_s = ROUND_LIMIT_S
    max_context_tokens = 0
    is_local = False

    def __init__(self, config: ProviderConfig) -> None:
        self.name = config.name

    @property
    def unavailable_reason(self) -> str | None:
        return _REASON

    async def models(self) -> Sequence[Model]:
        return ()

    def price_of(self, model: str) -> Price | None:
        del model
        return None

    def stream(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        del request
        return only(ErrorChunk(ErrorKind.UNAVAILABLE, _REASON))

    async def aclose(self) -> None: ...
