"""The common part of providers over HTTPS with a key: address, key, model table, availability."""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import ClassVar

import httpx

from adapters.llm.config import ProviderConfig, endpoint, unusable
from adapters.llm.decoding import Decoder
from adapters.llm.exchange import Exchange, ReadError, only
from adapters.llm.framing import round_limit_s
from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, StreamChunk
from adapters.llm.model_table import model_table
from adapters.llm.port import Model, Price


class HostedProvider(ABC):
    """A model service.

    Only the vendor's own address requires the key: a private server may need none.
    """

    vendor: ClassVar[str]
    default_base_url: ClassVar[str]
    default_model: ClassVar[str]
    default_context_tokens: ClassVar[int]
    version: ClassVar[str] = "v1"
    resource: ClassVar[str]

    supports_tools = True
    supports_streaming = True
    limits_by_model = True

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config
        self.name = config.name
        self.round_limit_s = round_limit_s(config.timeout_s)
        self.is_local = config.extra.get("local") is True
        self.table = model_table(self.vendor, config.models)
        self.max_context_tokens = self.table.context_tokens(self.model, self.default_context_tokens)
        self._unusable = unusable(config, *self.secrets())
        usable = self._unusable is None
        self.url = endpoint(self.base_url(), self.version, self.resource) if usable else None
        self._exchange: Exchange | None = None
        if self.url is not None:
            self._exchange = Exchange(
                self.name, self.url, self.headers(), config.timeout_s, config.allowed_hosts
            )

    @property
    def model(self) -> str:
        return self.config.model or self.default_model

    def base_url(self) -> str:
        """The configured address, or the vendor's."""
        return self.config.base_url or self.default_base_url

    @property
    def address(self) -> httpx.URL:
        """The URL of the resource. Requires an available provider."""
        if self.url is None:
            raise AssertionError("an unavailable provider was asked to send")
        return self.url

    @property
    def is_vendors_own(self) -> bool:
        return self.url is not None and self.url.host == httpx.URL(self.default_base_url).host

    @property
    def unavailable_reason(self) -> str | None:
        if self._unusable is not None:
            return self._unusable
        if self.url is None:
            return f"base_url is not an http(s) address: {self.config.base_url!r}"
        if not self.config.api_key and self.is_vendors_own:
            return "no api_key is configured"
        return None

    async def models(self) -> Sequence[Model]:
        first = (self.model, self.config.fast_model)
        return self.table.models(first, self.max_context_tokens)

    def price_of(self, model: str) -> Price | None:
        return self.table.price_of(model)

    def stream(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        reason = self.unavailable_reason
        if reason is None:
            return self.exchange_for(request)
        return only(ErrorChunk(ErrorKind.UNAVAILABLE, f"{self.name}: {reason}"))

    async def aclose(self) -> None:
        """Close the connections. Safe without connections, and twice."""
        if self._exchange is not None:
            await self._exchange.aclose()

    def secrets(self) -> Sequence[str]:
        return (self.config.api_key,)

    @abstractmethod
    def headers(self) -> Mapping[str, str]: ...

    @abstractmethod
    def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]: ...

    def model_for(self, request: CompleteRequest) -> str:
        return request.model or self.model

    def max_tokens_for(self, request: CompleteRequest) -> int:
        """The request's output limit, capped by the configured one."""
        return min(request.max_tokens, self.config.max_tokens)

    def post(
        self,
        body: bytes,
        decoder: Decoder,
        read_error: ReadError,
        *,
        url: httpx.URL | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[StreamChunk, None]:
        """Send a body to the provider's resource, or to another one on the same host."""
        if self._exchange is None:
            raise AssertionError("an unavailable provider was asked to send")
        return self._exchange.stream(url or self.address, body, decoder, read_error, headers)

    async def ask(self, method: str, url: httpx.URL) -> object:
        """Send one request outside a conversation; returns the JSON answer. Raises AdapterError."""
        if self._exchange is None:
            raise AssertionError("an unavailable provider was asked to send")
        return await self._exchange.ask(method, url)
