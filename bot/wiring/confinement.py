"""What "local-only" means for this configuration: who may be asked, and which hosts are local.

The guard itself is in `adapters.http.egress`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from pydantic import BaseModel

from adapters.http.egress import LocalHosts
from adapters.llm.port import Provider
from bot.settings.model import ProviderSettings, Settings
from bot.settings.named_backends import NAMED
from bot.settings.reading import ConfigurationError

OLLAMA = "ollama"
# Whatever names a host: no client minds the case of a scheme, or space before it.
_ADDRESS = re.compile(r"\s*[a-z][a-z0-9+.-]*://", re.ASCII | re.IGNORECASE)
_NOT_ADAPTERS = {"slack", "database", "http"}


def local_order(names: Sequence[str], providers: Mapping[str, Provider]) -> list[str]:
    """The local ones of an order; Ollama stands in where no local model is among them."""
    local = [name for name in names if providers[name].is_local]
    if any(name != "triage" for name in local) or not providers[OLLAMA].is_local:
        return local
    return [OLLAMA, *local]


def local_hosts(settings: Settings, providers: Mapping[str, Provider]) -> LocalHosts:
    """What is declared local: the list of hosts, and the servers of local providers.

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
    """What is edited in stays inside too; what counts as inside, only a restart changes.

    Raises ConfigurationError.
    """
    if settings.llm.is_local_only:
        local_hosts(edited.model_copy(update={"llm": settings.llm}), providers)


def _host_of(provider: ProviderSettings) -> str:
    url = provider.base_url or provider.endpoint
    return _host_in(url if "://" in url else f"//{url}")


def _host_in(url: str) -> str:
    try:
        return urlsplit(url.strip()).hostname or ""
    except ValueError:  # half an IPv6 address: nobody's name, so it is not declared either
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
