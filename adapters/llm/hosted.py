"""What providers reached with a key over HTTPS share: address, key, model table, availability."""

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
    """A model service. The key is needed only for the vendor's own address: a server of one's
    own may do without.
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
        """The configured model."""
        return self.config.model or self.default_model

    def base_url(self) -> str:
        """The configured address, or the vendor's."""
        return self.config.base_url or self.default_base_url

    @property
    def address(self) -> httpx.URL:
        """The URL of the resource, the provider being available."""
        if self.url is None:
            raise AssertionError("an unavailable provider was asked to send")
        return self.url

    @property
    def is_vendors_own(self) -> bool:
        """Whether requests go to the vendor itself."""
        return self.url is not None and self.url.host == httpx.URL(self.default_base_url).host

    @property
    def unavailable_reason(self) -> str | None:
        """See `Provider`."""
        if self._unusable is not None:
            return self._unusable
        if self.url is None:
            return f"base_url is not an http(s) address: {self.config.base_url!r}"
        if not self.config.api_key and self.is_vendors_own:
            return "no api_key is configured"
        return None

    async def models(self) -> Sequence[Model]:
        """The configured models, then the table's. No request is made."""
        first = (self.model, self.config.fast_model)
        return self.table.models(first, self.max_context_tokens)

    def price_of(self, model: str) -> Price | None:
        """See `Provider`."""
        return self.table.price_of(model)

    def stream(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """See `Provider`."""
        reason = self.unavailable_reason
        if reason is None:
            return self.exchange_for(request)
        return only(ErrorChunk(ErrorKind.UNAVAILABLE, f"{self.name}: {reason}"))

    async def aclose(self) -> None:
        """Close the connections. Harmless when none was opened, and twice."""
        if self._exchange is not None:
            await self._exchange.aclose()

    def secrets(self) -> Sequence[str]:
        """What goes into headers of its requests."""
        return (self.config.api_key,)

    @abstractmethod
    def headers(self) -> Mapping[str, str]:
        """Sent with every request."""

    @abstractmethod
    def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """One round, the provider being available."""

    def model_for(self, request: CompleteRequest) -> str:
        """The model a request means."""
        return request.model or self.model

    def max_tokens_for(self, request: CompleteRequest) -> int:
        """The output bound of a request, within the configured one."""
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
        """Send a body to the provider's resource, or to another one of the same host."""
        if self._exchange is None:
            raise AssertionError("an unavailable provider was asked to send")
        return self._exchange.stream(url or self.address, body, decoder, read_error, headers)

    async def ask(self, method: str, url: httpx.URL) -> object:
        """One question outside of a conversation; the JSON answered. Raises AdapterError."""
        if self._exchange is None:
            raise AssertionError("an unavailable provider was asked to send")
        return await self._exchange.ask(method, url)
