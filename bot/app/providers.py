"""From settings to model providers, and which of them local-only mode lets Kortex ask."""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

from pydantic import BaseModel, JsonValue

from adapters.http.egress import LocalHosts
from adapters.llm.config import ProviderConfig
from adapters.llm.hosted import HostedProvider
from adapters.llm.model_table import ModelOverride
from adapters.llm.port import Price, Provider, Tier
from adapters.llm.registry import create, known
from adapters.llm.triage.provider import NAME as TRIAGE
from adapters.llm.triage.provider import Triage
from bot.chat.models import Choice, KnownModel, Models
from bot.settings.model import LlmSettings, ModelSettings, ProviderSettings, Settings
from bot.settings.named_backends import NAMED
from bot.settings.reading import ConfigurationError

OLLAMA = "ollama"
# Any text that names a host: clients ignore the case of a scheme, and space before it.
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.ASCII | re.IGNORECASE)
_NOT_ADAPTERS = {"slack", "database", "http"}


def installation_key(settings: Settings) -> bytes:
    """A key that replicas share and outsiders do not know, for cursors and redaction marks.

    Made from the configured secrets; without any (the demo) it is the same on every machine and
    protects nothing but accidents.
    """
    material = "\0".join(sorted(settings.secrets()))
    return hashlib.sha256(f"kortex installation key\0{material}".encode()).digest()


def make_providers(
    llm: LlmSettings, stack: AsyncExitStack, *, triage_pace_s: float = 0.0
) -> Mapping[str, Provider]:
    """Every known provider by name, configured or not, in the order in which they are asked.

    Raises ConfigurationError for a name that is no provider.
    """
    order = [llm.default_provider, *llm.fallback_providers]
    names = dict.fromkeys([*order, *llm.providers, *known(), TRIAGE])
    return {name: _provider(name, llm, stack, triage_pace_s) for name in names}


def asked_in_order(llm: LlmSettings, providers: Mapping[str, Provider]) -> Sequence[Provider]:
    """The default provider and its fallbacks, triage after all of them unless switched off.

    Of them the local ones, where only those may be asked.
    """
    last = [TRIAGE] if llm.triage_fallback else []
    names = list(dict.fromkeys([llm.default_provider, *llm.fallback_providers, *last]))
    return [providers[n] for n in (local_order(names, providers) if llm.is_local_only else names)]


def models_of(llm: LlmSettings, providers: Mapping[str, Provider]) -> Models:
    """What may be asked of each provider, with the windows of the model table."""
    choices = {name: _choice(provider, llm) for name, provider in providers.items()}
    return Models(choices, frugal=llm.mode == "frugal")


def _choice(provider: Provider, llm: LlmSettings) -> Choice:
    settings = llm.providers.get(provider.name, ProviderSettings())
    hosted = provider if isinstance(provider, HostedProvider) else None
    configured = hosted.model if hosted else settings.model
    own = llm.models.get(configured, ModelSettings()).images
    sees = hosted.table.sees_images(configured) if hosted else own is True
    full = KnownModel("", provider.max_context_tokens, configured, sees_images=sees)
    fast = settings.fast_model
    if fast in ("", configured):
        return Choice(full)
    window = provider.max_context_tokens
    if hosted is None:
        return Choice(full, KnownModel(fast, window))
    table = hosted.table
    seeing = table.sees_images(fast)
    return Choice(full, KnownModel(fast, table.context_tokens(fast, window), sees_images=seeing))


def _provider(name: str, llm: LlmSettings, stack: AsyncExitStack, pace_s: float) -> Provider:
    if name == TRIAGE:
        return Triage(pace_s=pace_s)
    settings = llm.providers.get(name, ProviderSettings())
    try:
        provider = create(
            ProviderConfig(
                name=name,
                api_key=settings.api_key.get_secret_value(),
                base_url=settings.base_url or settings.endpoint,
                model=settings.model,
                fast_model=settings.fast_model,
                max_tokens=settings.max_tokens,
                timeout_s=settings.timeout.total_seconds(),
                extra=_extra(settings),
                models={model: _override(own) for model, own in llm.models.items()},
            )
        )
    except LookupError as error:
        raise ConfigurationError(f"llm.providers.{name}: {error}") from error
    stack.push_async_callback(provider.aclose)
    return provider


def _override(own: ModelSettings) -> ModelOverride:
    usd = own.usd_per_mtok
    if usd is None:
        price = None
    else:
        read = usd.input if usd.cache_read is None else usd.cache_read
        write = usd.input if usd.cache_write is None else usd.cache_write
        buckets = (usd.input, read, write, usd.output)
        uncached, read_micros, write_micros, output = (round(each * 1_000_000) for each in buckets)
        price = Price(uncached, read_micros, write_micros, output)
    return ModelOverride(
        price,
        own.context_tokens,
        Tier(own.tier) if own.tier else None,
        own.display_name,
        own.images,
        own.api,
    )


def _extra(settings: ProviderSettings) -> Mapping[str, JsonValue]:
    return {
        "access_key_id": settings.access_key_id,
        "api": settings.api,
        "effort": settings.effort,
        "local": settings.local,
        "num_ctx": settings.num_ctx,
        "profile": settings.profile,
        "region": settings.region,
        "secret_access_key": settings.secret_access_key.get_secret_value(),
        "session_token": settings.session_token.get_secret_value(),
        "stream_options": settings.stream_options,
        "prompt_cache_key": settings.prompt_cache_key,
        "streaming": settings.streaming,
        "tools_enabled": settings.tools_enabled,
    }


def local_order(names: Sequence[str], providers: Mapping[str, Provider]) -> list[str]:
    """The local ones of an order; Ollama if there is no local model among them."""
    local = [name for name in names if providers[name].is_local]
    if any(name != "triage" for name in local) or not providers[OLLAMA].is_local:
        return local
    return [OLLAMA, *local]


def local_hosts(settings: Settings, providers: Mapping[str, Provider]) -> LocalHosts:
    """The hosts declared local: the list of hosts, and the servers of local providers.

    Raises ConfigurationError for a backend that is configured but not declared.
    """
    own = [
        host
        for name, each in settings.llm.providers.items()
        if name in providers and providers[name].is_local and (host := _host_of(each))
    ]
    local = LocalHosts([*settings.llm.privacy.local_hosts, *own])
    parts = {name: getattr(settings, name) for name in type(settings).model_fields}
    for part, value in parts.items():
        if part in _NOT_ADAPTERS:
            continue
        for key, url in _urls(part, value):
            host = _host_in(url)
            if host and host not in local:
                raise ConfigurationError(
                    f"{key}: {host} is not declared local; add it to llm.privacy.local_hosts, "
                    "or leave local-only mode"
                )
    for name, server in settings.mcp.servers.items():
        if server.command and not server.local:
            raise ConfigurationError(
                f"mcp.servers.{name}: a program may reach any host; set local = true if this one "
                "does not, or leave local-only mode"
            )
    return local


def check_edited(settings: Settings, providers: Mapping[str, Provider], edited: Settings) -> None:
    if settings.llm.is_local_only:
        local_hosts(edited.model_copy(update={"llm": settings.llm}), providers)


def _host_of(provider: ProviderSettings) -> str:
    url = provider.base_url or provider.endpoint
    return _host_in(url if "://" in url else f"//{url}")


def _host_in(url: str) -> str:
    try:
        return urlsplit(url.strip()).hostname or ""
    except ValueError:  # half an IPv6 address: not a host, so not declared either
        return url


def _urls(key: str, value: object) -> Iterator[tuple[str, str]]:
    match value:
        case str() if _ADDRESS.match(value):
            yield key, value.strip()
        case BaseModel():
            names = type(value).model_fields
            skipped = {"providers", "privacy"} if key == "llm" else set()
            for name in names.keys() - skipped:
                yield from _urls(key if name == NAMED else f"{key}.{name}", getattr(value, name))
        case dict():
            for name, item in value.items():
                yield from _urls(f"{key}.{name}", item)
        case tuple():
            for number, item in enumerate(value, start=1):
                yield from _urls(f"{key}[{number}]", item)
        case _:
            return
