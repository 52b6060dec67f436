"""What an Ollama server says about itself: its address, its models, and which of them have tools."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import httpx

from adapters.errors import AdapterError
from adapters.llm.config import endpoint
from adapters.llm.exchange import Exchange
from adapters.llm.wire_json import as_list, as_object, as_text, dump

_DEFAULT_PORT: Final = 11434
# A model pulled anew may gain tools; asking again now and then is cheap.
_REMEMBER_S: Final = 300.0


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
    """A model the server has; `capabilities` empty when an older server does not say."""

    name: str
    capabilities: frozenset[str]

    @property
    def can_chat(self) -> bool:
        """False for models that only embed."""
        return not self.capabilities or "completion" in self.capabilities


class OllamaServer:
    """Questions to one server. Answers about tools are remembered for five minutes."""

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
        """Whether a model has tools of its own; yes where the server does not say."""
        known = self._has_tools.get(model)
        if known is not None and self._clock() < known[0]:
            return known[1]
        try:
            capabilities = await self._capabilities_of(model)
        except AdapterError:
            return True  # the request itself will tell what is wrong
        return self.remember(model, not capabilities or "tools" in capabilities)

    async def _capabilities_of(self, model: str) -> frozenset[str]:
        """From the list of models; older servers tell it only of one model at a time."""
        names = {model, f"{model}:latest"}
        for pulled in await self.pulled():
            if pulled.name in names and pulled.capabilities:
                return pulled.capabilities
        show = self._root.join("api/show")
        return _capabilities(await self._exchange.ask("POST", show, dump({"model": model})))

    def remember(self, model: str, has_tools: bool) -> bool:
        """Note what was learned, and return it."""
        self._has_tools[model] = (self._clock() + _REMEMBER_S, has_tools)
        return has_tools


def _capabilities(entry: object) -> frozenset[str]:
    return frozenset(as_text(name) for name in as_list(as_object(entry).get("capabilities")))
