"""From settings to the outside: providers, the cluster, the freezes; `bot.wiring.observed` has the rest.

`bot.app` decides what is put together.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
from pydantic import JsonValue

from adapters.control_plane.client import HttpControlPlane
from adapters.control_plane.orders import Executors, Rehearsal
from adapters.control_plane.pipelines import GitHub, GitLab, Pipelines
from adapters.control_plane.port import ExecutorKind
from adapters.llm.config import ProviderConfig
from adapters.llm.hosted import HostedProvider
from adapters.llm.model_table import ModelOverride
from adapters.llm.port import Price, Provider, Tier
from adapters.llm.registry import create, known
from adapters.llm.triage.provider import NAME as TRIAGE
from adapters.llm.triage.provider import Triage
from bot.actions.catalog import ActionCatalog
from bot.actions.freeze import FreezeJudge
from bot.chat.models import Choice, KnownModel, Models
from bot.domain.freeze import FreezeWindow
from bot.settings.environment import environment
from bot.settings.model import (
    KubernetesSettings,
    LlmSettings,
    ModelSettings,
    ProviderSettings,
    Settings,
)
from bot.settings.reading import ConfigurationError
from bot.store.database import Database
from bot.store.kill_switch import StoredKillSwitch
from bot.wiring.confinement import local_order
from tools.errors import InvalidArguments

if TYPE_CHECKING:
    from adapters.kubernetes.api import KubernetesApi
    from adapters.kubernetes.config import Access
    from adapters.kubernetes.offer import KubernetesOffer
    from adapters.kubernetes.reader import KubernetesReader
    from adapters.kubernetes.rollouts import KubernetesRollouts


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
    """What only one provider or another knows."""
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


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kubernetes cluster: what may be read of it, and what its identity may do."""

    api: "KubernetesApi"
    reader: "KubernetesReader"
    rollouts: "KubernetesRollouts"
    offer: "KubernetesOffer"


async def open_cluster(
    settings: KubernetesSettings, stack: AsyncExitStack, product_labels: Sequence[str] = ()
) -> Cluster | None:
    """None when no cluster is configured: then nothing of it is imported.

    `product_labels` are `[observe]`'s. Raises ConfigurationError.
    """
    if settings.kind in ("none", "recorded"):
        return None
    from adapters.kubernetes.api import KubernetesApi
    from adapters.kubernetes.offer import KubernetesOffer
    from adapters.kubernetes.reader import KubernetesReader
    from adapters.kubernetes.rollouts import KubernetesRollouts

    try:
        access = await asyncio.to_thread(_access, settings)
        api = KubernetesApi(access)
        stack.push_async_callback(api.aclose)
        offer = KubernetesOffer(api)
        labels = [one for one in (settings.product_label, *product_labels) if one]
        return Cluster(
            api,
            KubernetesReader(api, settings.namespaces, offer),
            KubernetesRollouts(api, labels, settings.namespaces),
            offer,
        )
    except (ValueError, InvalidArguments) as error:
        raise ConfigurationError(f"kubernetes: {error}") from error


def _access(settings: KubernetesSettings) -> "Access":
    from adapters.kubernetes.config import from_kubeconfig, in_cluster

    if settings.kind == "cluster":
        return in_cluster()
    path = Path(settings.kubeconfig).expanduser()
    return from_kubeconfig(path, settings.context, environment())


async def open_freezes(
    database: Database,
    actions: ActionCatalog,
    marker: Path | None,
    windows: Sequence[FreezeWindow],
) -> FreezeJudge:
    """The kill switch and the windows; a freeze that an earlier process could not store holds."""
    switch = StoredKillSwitch(database, marker)
    await switch.sync()
    return FreezeJudge(switch, actions, windows)


def make_executors(credentials: Callable[[str], str], client: httpx.AsyncClient) -> Executors:
    """`credentials` gives an action's token; it is asked when an order is sent, after a Confirm."""
    return Executors(
        {
            ExecutorKind.CONTROL_PLANE: HttpControlPlane(client, credentials),
            ExecutorKind.GITHUB: Pipelines(GitHub(), client, credentials),
            ExecutorKind.GITLAB: Pipelines(GitLab(), client, credentials),
            ExecutorKind.REHEARSAL: Rehearsal(),
        }
    )
