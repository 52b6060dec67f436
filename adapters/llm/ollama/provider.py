"""The Ollama provider: the operator's own models, with native tools or emulated ones.

A server reports its address, its models and their tool support. `extra`: `num_ctx` (tokens of
context to load a model with; default 16384), `local` (false: the server is outside the network).
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

import httpx

from adapters.errors import AdapterError
from adapters.llm.config import ProviderConfig, endpoint, unusable
from adapters.llm.exchange import Exchange
from adapters.llm.failures import from_adapter_error
from adapters.llm.framing import round_limit_s
from adapters.llm.messages import CompleteRequest, ErrorChunk, ErrorKind, StreamChunk
from adapters.llm.ollama.decode import OllamaDecoder, lacks_tools, read_error
from adapters.llm.ollama.encode import encode
from adapters.llm.port import Model, Price, Tier
from adapters.llm.wire_json import as_int, as_list, as_object, as_text, dump

_DEFAULT_PORT: Final = 11434
# A model that is pulled again may gain tools; asking again sometimes is cheap.
_REMEMBER_S: Final = 300.0


_DEFAULT_URL: Final = "http://127.0.0.1:11434"
# Room for a toolset, an investigation's prompt and its distilled results; Ollama's own default of
# 4096 on small machines is not.
_DEFAULT_NUM_CTX: Final = 16_384
_CLOUD_HOST: Final = "ollama.com"


def address(base_url: str) -> httpx.URL | None:
    """The server's root, from `host:port`, `http://host:port`, or any of its API paths."""
    text = base_url.strip()
    url = endpoint(text if "://" in text else f"http://{text}", "", "api")
    if url is None:
        return None
    path = url.path.removesuffix("/api").removesuffix("/v1")
    default = None if "://" in text else _DEFAULT_PORT
    return url.copy_with(path=f"{path}/", query=None, port=url.port or default)


def runs_in_cloud(model: str) -> bool:
    """Whether a model's name says that a local server passes its prompts on to ollama.com."""
    return model.endswith(("-cloud", ":cloud"))


@dataclass(frozen=True, slots=True)
class PulledModel:
    """A model on the server; `capabilities` is empty on older servers."""

    name: str
    capabilities: frozenset[str]

    @property
    def can_chat(self) -> bool:
        return not self.capabilities or "completion" in self.capabilities


class OllamaServer:
    """Requests to one server. Tool support is cached for five minutes."""

    def __init__(
        self, exchange: Exchange, root: httpx.URL, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._exchange = exchange
        self._root = root
        self._clock = clock
        self._has_tools: dict[str, tuple[float, bool]] = {}

    async def pulled(self) -> Sequence[PulledModel]:
        """The models of GET /api/tags, newest first. Raises AdapterError."""
        answer = as_object(await self._exchange.ask("GET", self._root.join("api/tags")))
        entries = [as_object(entry) for entry in as_list(answer.get("models"))]
        return [
            PulledModel(as_text(entry.get("name")), _capabilities(entry))
            for entry in entries
            if as_text(entry.get("name"))
        ]

    async def has_tools(self, model: str) -> bool:
        """Whether a model supports tools; yes if the server does not say."""
        known = self._has_tools.get(model)
        if known is not None and self._clock() < known[0]:
            return known[1]
        try:
            capabilities = await self._capabilities_of(model)
        except AdapterError:
            return True  # the request itself will show the error
        return self.remember(model, not capabilities or "tools" in capabilities)

    async def _capabilities_of(self, model: str) -> frozenset[str]:
        """From the list of models; older servers report it only for one model at a time."""
        names = {model, f"{model}:latest"}
        for pulled in await self.pulled():
            if pulled.name in names and pulled.capabilities:
                return pulled.capabilities
        show = self._root.join("api/show")
        return _capabilities(await self._exchange.ask("POST", show, dump({"model": model})))

    def remember(self, model: str, has_tools: bool) -> bool:
        self._has_tools[model] = (self._clock() + _REMEMBER_S, has_tools)
        return has_tools


def _capabilities(entry: object) -> frozenset[str]:
    return frozenset(as_text(name) for name in as_list(as_object(entry).get("capabilities")))


class Ollama:
    supports_tools = True
    supports_streaming = True
    limits_by_model = False

    def __init__(self, config: ProviderConfig) -> None:
        self.config = config
        self.name = config.name
        self.round_limit_s = round_limit_s(config.timeout_s)
        self.max_context_tokens = as_int(config.extra.get("num_ctx")) or _DEFAULT_NUM_CTX
        self._unusable = unusable(config, config.api_key)
        self._root = None if self._unusable else address(config.base_url or _DEFAULT_URL)
        host = self._root.host if self._root else ""
        self.is_local = (
            config.extra.get("local") is not False
            and host.removeprefix("www.") != _CLOUD_HOST
            and not runs_in_cloud(config.model)
        )
        self._exchange: Exchange | None = None
        self._server: OllamaServer | None = None
        if self._root is not None:
            headers = {"authorization": f"Bearer {config.api_key}"} if config.api_key else {}
            self._exchange = Exchange(
                config.name, self._root, headers, config.timeout_s, config.allowed_hosts
            )
            self._server = OllamaServer(self._exchange, self._root)

    @property
    def unavailable_reason(self) -> str | None:
        if self._unusable is not None:
            return self._unusable
        if self._root is None:
            return f"base_url is not an http(s) address: {self.config.base_url!r}"
        return None

    async def models(self) -> Sequence[Model]:
        """The server's models, the configured one first. Raises AdapterError."""
        if self._server is None:
            return ()
        names = [model.name for model in await self._server.pulled() if model.can_chat]
        allowed = [name for name in names if not (self.is_local and runs_in_cloud(name))]
        configured = {self.config.model, f"{self.config.model}:latest"}
        return tuple(
            self._model(name) for name in sorted(allowed, key=lambda name: name not in configured)
        )

    def price_of(self, model: str) -> Price | None:
        """Zero for a model that runs here; unknown for one that runs at ollama.com."""
        free = self.is_local and not runs_in_cloud(model)
        return Price(0, 0, 0, 0) if free else None

    async def stream(self, request: CompleteRequest) -> AsyncGenerator[StreamChunk, None]:
        """One round. A model without tools is asked again with emulated ones."""
        try:
            model = request.model or self.config.model or await self._first_model()
        except AdapterError as error:
            yield from_adapter_error(error)
            return
        refusal = self._refusal(model)
        if refusal is not None or self._server is None:
            yield refusal or ErrorChunk(ErrorKind.UNAVAILABLE, f"{self.name}: no address")
            return
        native = not request.tools or await self._server.has_tools(model)
        async with aclosing(self._round(request, model, native_tools=native)) as chunks:
            async for chunk in chunks:
                if native and isinstance(chunk, ErrorChunk) and lacks_tools(chunk.message):
                    self._server.remember(model, has_tools=False)
                    break
                yield chunk
            else:
                return
        async with aclosing(self._round(request, model, native_tools=False)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        if self._exchange is not None:
            await self._exchange.aclose()

    def _round(
        self, request: CompleteRequest, model: str, *, native_tools: bool
    ) -> AsyncGenerator[StreamChunk, None]:
        if self._exchange is None or self._root is None:
            raise AssertionError("an unavailable provider was asked to send")
        tokens = min(request.max_tokens, self.config.max_tokens)
        body = encode(request, model, tokens, self.max_context_tokens, native_tools=native_tools)
        names = frozenset(tool.name for tool in request.tools)
        decoder = OllamaDecoder(
            emulated=None if native_tools else names, num_ctx=self.max_context_tokens
        )
        return self._exchange.stream(self._root.join("api/chat"), body, decoder, read_error)

    async def _first_model(self) -> str:
        models = await self.models()
        return models[0].id if models else ""

    def _refusal(self, model: str) -> ErrorChunk | None:
        reason = self.unavailable_reason
        if reason is None and not model:
            reason = "the server has no model; pull one"
        if reason is None and self.is_local and runs_in_cloud(model):
            reason = f"{model} runs at {_CLOUD_HOST}, not here"
        return ErrorChunk(ErrorKind.UNAVAILABLE, f"{self.name}: {reason}") if reason else None

    def _model(self, name: str) -> Model:
        tier = Tier.FAST if name == self.config.fast_model else Tier.BALANCED
        return Model(name, name, self.max_context_tokens, tier)
