"""The OpenAI provider: Responses or chat/completions at OpenAI, or at a compatible server.

`extra`: `api` ("responses" or "chat"; by default the model decides at OpenAI, and compatible
servers get chat/completions), `stream_options` (false: the server rejects them), `prompt_cache_key`
(true: a compatible server accepts it in chat/completions; OpenAI always gets it), `effort` (of
reasoning models), `local` (true: the server is inside the network).
"""

from collections.abc import AsyncGenerator, Mapping
from typing import ClassVar, Final

from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, StreamChunk
from adapters.llm.openai.decode import OpenAIDecoder, read_error
from adapters.llm.openai.encode import PROVIDER, encode, must_not_reason_with_tools
from adapters.llm.openai.responses_decode import ResponsesDecoder
from adapters.llm.openai.responses_encode import encode_responses

_RESPONSES: Final = "responses"


class OpenAI(HostedProvider):
    vendor: ClassVar[str] = PROVIDER
    default_base_url: ClassVar[str] = "https://api.openai.com"
    default_model: ClassVar[str] = "gpt-6.1-sol"
    default_context_tokens: ClassVar[int] = 128_000
    resource: ClassVar[str] = "chat/completions"

    def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.config.api_key}"} if self.config.api_key else {}

    def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        model, max_tokens = self.model_for(request), self.max_tokens_for(request)
        extra = self.config.extra
        if self.uses_responses(model):
            body = encode_responses(request, model, max_tokens, extra)
            path = self.address.path.removesuffix(self.resource) + _RESPONSES
            url = self.address.copy_with(path=path)
            return self.post(body, ResponsesDecoder(), read_error, url=url)
        body = encode(request, model, max_tokens, extra, is_vendors_own=self.is_vendors_own)
        return self.post(body, OpenAIDecoder(), read_error)

    def uses_responses(self, model: str) -> bool:
        chosen = self.table.own(model).api or self.config.extra.get("api")
        if chosen:
            return chosen == _RESPONSES
        return self.is_vendors_own and must_not_reason_with_tools(model)  # there it may
