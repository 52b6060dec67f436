"""The Bedrock provider: Converse and ConverseStream, with an API key or with AWS access keys.

`extra`: `region` (part of the address and of a signature), `access_key_id`, `secret_access_key`,
`session_token` (SigV4; used only without `api_key`), `streaming` (false: Converse), `effort`,
`local`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final
from urllib.parse import quote

import httpx

from adapters.llm.bedrock.decode import BedrockDecoder, read_error
from adapters.llm.bedrock.encode import PROVIDER, encode
from adapters.llm.config import ProviderConfig
from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, StreamChunk
from adapters.llm.wire_json import as_text
from adapters.sigv4 import AwsKey, signed_headers

_DEFAULT_REGION: Final = "us-east-1"
_SERVICE: Final = "bedrock"


def _now() -> datetime:
    return datetime.now(UTC)


class Bedrock(HostedProvider):
    """Implements `Provider`."""

    vendor: ClassVar[str] = PROVIDER
    default_base_url: ClassVar[str] = f"https://bedrock-runtime.{_DEFAULT_REGION}.amazonaws.com"
    default_model: ClassVar[str] = "us.anthropic.claude-sonnet-4-6"
    default_context_tokens: ClassVar[int] = 200_000
    version: ClassVar[str] = ""
    resource: ClassVar[str] = "model"

    def __init__(self, config: ProviderConfig, clock: Callable[[], datetime] = _now) -> None:
        self._clock = clock
        self._region = as_text(config.extra.get("region")) or _DEFAULT_REGION
        self._key = AwsKey(
            as_text(config.extra.get("access_key_id")),
            as_text(config.extra.get("secret_access_key")),
            as_text(config.extra.get("session_token")),
        )
        super().__init__(config)

    def base_url(self) -> str:
        """The region's own address, unless another is configured."""
        own = f"https://bedrock-runtime.{self._region}.amazonaws.com"
        return self.config.base_url or own

    @property
    def unavailable_reason(self) -> str | None:
        """See `Provider`."""
        if self.url is None:
            return super().unavailable_reason
        if self.config.api_key or (self._key.access_key_id and self._key.secret_access_key):
            return None
        return "neither api_key nor access_key_id and secret_access_key are configured"

    def secrets(self) -> Sequence[str]:
        """The bearer token, or what signs."""
        key = self._key
        return (
            self.config.api_key, key.access_key_id, key.secret_access_key, key.session_token,
            self._region,
        )  # fmt: skip

    def headers(self) -> Mapping[str, str]:
        """Sent with every request."""
        return {"authorization": f"Bearer {self.config.api_key}"} if self.config.api_key else {}

    def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """The HTTP request of one round, and the decoder of its answer."""
        model = self.model_for(request)
        body = encode(request, model, self.max_tokens_for(request), self.config.extra)
        url = self._address(model)
        decoder = BedrockDecoder(model=model)
        return self.post(body, decoder, read_error, url=url, headers=self._signature(url, body))

    def _address(self, model: str) -> httpx.URL:
        """An ARN's `/` belongs to the id. The transport sends `:` as it is, so it is signed so."""
        operation = "converse" if self.config.extra.get("streaming") is False else "converse-stream"
        root = self.address.raw_path.decode("ascii")
        return self.address.copy_with(
            raw_path=f"{root}/{quote(model, safe=':')}/{operation}".encode("ascii")
        )

    def _signature(self, url: httpx.URL, body: bytes) -> Mapping[str, str]:
        if self.config.api_key:
            return {}
        return signed_headers(
            self._key,
            region=self._region,
            service=_SERVICE,
            host=url.netloc.decode("ascii"),
            path=url.raw_path.decode("ascii"),
            body=body,
            headers={"content-type": "application/json"},
            now=self._clock(),
        )
