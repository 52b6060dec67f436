"""The OpenAI provider: chat/completions at OpenAI, or at a server that speaks it.

`extra`: `stream_usage` (false: the server does not know `stream_options`), `reasoning_effort`,
`max_context_tokens`, `local` (true: the server is inside the network), `prices` (see
`adapters.llm.prices`).
"""

from collections.abc import AsyncGenerator, Mapping
from typing import ClassVar

from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, StreamChunk
from adapters.llm.openai.decode import OpenAIDecoder
from adapters.llm.openai.encode import encode
from adapters.llm.openai.errors import read_error


class OpenAI(HostedProvider):
    """Implements `Provider`."""

    vendor: ClassVar[str] = "openai"
    default_base_url: ClassVar[str] = "https://api.openai.com"
    default_model: ClassVar[str] = "gpt-5"
    default_context_tokens: ClassVar[int] = 128_000
    resource: ClassVar[str] = "chat/completions"

    def headers(self) -> Mapping[str, str]:
        """Sent with every request."""
        return {"authorization": f"Bearer {self.config.api_key}"} if self.config.api_key else {}

    def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """One round."""
        body = encode(
            request,
            self.model_for(request),
            self.max_tokens_for(request),
            self.config.extra,
            is_vendors_own=self.is_vendors_own,
        )
        return self.post(body, OpenAIDecoder(), read_error)
