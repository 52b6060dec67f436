"""The providers by name, one line each."""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from adapters.llm.anthropic.provider import Anthropic
from adapters.llm.bedrock.provider import Bedrock
from adapters.llm.config import ProviderConfig
from adapters.llm.koder_ai import KoderAI
from adapters.llm.nirmata.provider import Nirmata
from adapters.llm.ollama.provider import Ollama
from adapters.llm.openai.provider import OpenAI
from adapters.llm.port import Provider


class ClosableProvider(Provider, Protocol):
    async def aclose(self) -> None: ...


_PROVIDERS: Final[Mapping[str, Callable[[ProviderConfig], ClosableProvider]]] = {
    "anthropic": Anthropic,
    "openai": OpenAI,
    "ollama": Ollama,
    "bedrock": Bedrock,
    "nirmata": Nirmata,
}
# Reserved for future models; shown only where configured.
_RESERVED: Final[Mapping[str, Callable[[ProviderConfig], ClosableProvider]]] = {"koder-ai": KoderAI}


def known() -> list[str]:
    """The selectable names; `create` also accepts the reserved ones."""
    return list(_PROVIDERS)


def create(config: ProviderConfig) -> ClosableProvider:
    """The provider named by `config.name`; no connection is made.

    Raises LookupError for an unknown name. A missing key is not an error: see
    `Provider.unavailable_reason`.
    """
    factory = _PROVIDERS.get(config.name) or _RESERVED.get(config.name)
    if factory is None:
        names = ", ".join(known())
        raise LookupError(f"unknown provider {config.name!r}; known: {names}")
    return factory(config)
