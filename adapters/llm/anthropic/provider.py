"""The Anthropic provider: Claude over the Messages API, or a server that speaks it.

`extra`: `effort` ("low" to "max": think before answering), `local` (true: the server is inside the
network).
"""

from collections.abc import AsyncGenerator, Mapping
from typing import ClassVar, Final

from adapters.llm.anthropic.decode import AnthropicDecoder, read_error
from adapters.llm.anthropic.encode import PROVIDER, encode
from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, StreamChunk

_VERSION: Final = "2023-06-01"


class Anthropic(HostedProvider):
    vendor: ClassVar[str] = PROVIDER
    default_base_url: ClassVar[str] = "https://api.anthropic.com"
    default_model: ClassVar[str] = "claude-opus-4-6"
    default_context_tokens: ClassVar[int] = 200_000
    resource: ClassVar[str] = "messages"

    def headers(self) -> Mapping[str, str]:
        headers = {"anthropic-version": _VERSION}
        return {**headers, "x-api-key": self.config.api_key} if self.config.api_key else headers

    def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        model = self.model_for(request)
        body = encode(request, model, self.max_tokens_for(request), self.config.extra)
        return self.post(body, AnthropicDecoder(), read_error)
