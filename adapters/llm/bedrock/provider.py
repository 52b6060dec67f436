"""The Bedrock provider: Converse and ConverseStream, with an API key or with AWS credentials.

`extra`: `region` (part of the address and the signature), `access_key_id`, `secret_access_key`,
`session_token` (SigV4; used only without `api_key`), `profile`, `streaming` (false: Converse),
`effort`, `local`. With a region or a profile but without a key, botocore looks for credentials.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import ClassVar, Final
from urllib.parse import quote

import httpx

from adapters.aws.credentials import AwsCredentials, AwsKey
from adapters.errors import AdapterError
from adapters.llm.bedrock.decode import BedrockDecoder, read_error
from adapters.llm.bedrock.encode import PROVIDER, encode
from adapters.llm.config import ProviderConfig
from adapters.llm.hosted import HostedProvider
from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, StreamChunk
from adapters.llm.wire_json import as_text

_DEFAULT_REGION: Final = "us-east-1"
_SERVICE: Final = "bedrock"


class Bedrock(HostedProvider):
    vendor: ClassVar[str] = PROVIDER
    default_base_url: ClassVar[str] = f"https://bedrock-runtime.{_DEFAULT_REGION}.amazonaws.com"
    default_model: ClassVar[str] = "us.anthropic.claude-sonnet-4-6"
    default_context_tokens: ClassVar[int] = 200_000
    version: ClassVar[str] = ""
    resource: ClassVar[str] = "model"

    def __init__(self, config: ProviderConfig) -> None:
        region, profile, key_id, secret, token = (
            as_text(config.extra.get(name))
            for name in ("region", "profile", "access_key_id", "secret_access_key", "session_token")
        )
        self._region = region or _DEFAULT_REGION
        self._key = AwsKey(key_id, secret, token)
        self._is_set_up = bool(config.api_key or (key_id and secret))
        self._is_set_up |= bool((region or profile) and not (key_id or secret))
        given = self._key if key_id else None
        self._credentials = AwsCredentials(self._region, given, profile)
        super().__init__(config)

    def base_url(self) -> str:
        """The region's own address, unless another is configured."""
        own = f"https://bedrock-runtime.{self._region}.amazonaws.com"
        return self.config.base_url or own

    @property
    def unavailable_reason(self) -> str | None:
        if self.url is None:
            return super().unavailable_reason
        if not self._is_set_up:
            return "no api_key, access key, region or profile is configured"
        return self._credentials.problem

    def secrets(self) -> Sequence[str]:
        key = self._key
        return (
            self.config.api_key, key.access_key_id, key.secret_access_key, key.session_token,
            self._region,
        )  # fmt: skip

    def headers(self) -> Mapping[str, str]:
        return {"authorization": f"Bearer {self.config.api_key}"} if self.config.api_key else {}

    async def exchange_for(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        model = self.model_for(request)
        body = encode(request, model, self.max_tokens_for(request), self.config.extra)
        url = self._address(model)
        try:
            headers = await self._signature(str(url), body)
        except AdapterError as error:
            yield ErrorChunk(ErrorKind.UNAVAILABLE, f"{self.name}: {error.message}")
            return
        decoder = BedrockDecoder(model=model)
        async with aclosing(self.post(body, decoder, read_error, url=url, headers=headers)) as told:
            async for chunk in told:
                yield chunk

    def _address(self, model: str) -> httpx.URL:
        """An ARN's `/` is part of the id.

        The transport sends `:` unescaped, so the signature covers it unescaped.
        """
        operation = "converse" if self.config.extra.get("streaming") is False else "converse-stream"
        root = self.address.raw_path.decode("ascii")
        return self.address.copy_with(
            raw_path=f"{root}/{quote(model, safe=':')}/{operation}".encode("ascii")
        )

    async def _signature(self, url: str, body: bytes) -> Mapping[str, str]:
        if self.config.api_key:
            await self._credentials.load()
            return {}
        key = await self._credentials.key()
        from adapters.aws.signing import signed_headers  # the extra kortex[aws]

        return signed_headers(
            key,
            region=self._region,
            service=_SERVICE,
            url=url,
            body=body,
            headers={"content-type": "application/json"},
        )
