"""From settings to the outside: providers, and the capabilities that tools are given.

Part of the composition root; `bot.app` decides what is put together.
"""

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from pydantic import JsonValue

from adapters.control_plane.admin_info import HttpAdminInfo
from adapters.control_plane.urls import BadTemplate, check_template
from adapters.http import http_client
from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access, from_kubeconfig, in_cluster
from adapters.kubernetes.reader import KubernetesReader
from adapters.kubernetes.rollouts import KubernetesRollouts
from adapters.llm.config import ProviderConfig
from adapters.llm.hosted import HostedProvider
from adapters.llm.model_table import ModelOverride
from adapters.llm.port import Cost, Provider, Tier
from adapters.llm.registry import create, known
from adapters.llm.triage.provider import NAME as TRIAGE
from adapters.llm.triage.provider import Triage
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.jaeger import JaegerTraces
from adapters.observe.loki import LokiLogs
from adapters.observe.prometheus import PrometheusMetrics
from adapters.observe.recorded_history import RecordedHistory
from adapters.observe.recorded_incidents import RecordedIncidents
from adapters.observe.simulator.past_incidents import past_incidents
from adapters.observe.tempo import TempoTraces
from bot.actions.catalog import ActionCatalog
from bot.actions.freeze import FreezeJudge
from bot.chat.models import Choice, KnownModel, Models
from bot.confinement import local_order
from bot.domain.freeze import FreezeWindow
from bot.settings.model import (
    ControlPlaneSettings,
    KubernetesSettings,
    LlmSettings,
    ModelSettings,
    ObserveSettings,
    ProviderSettings,
    Settings,
)
from bot.settings.reading import ConfigurationError
from bot.store.engine import Database
from bot.store.switch import StoredSwitch
from tools.capabilities import (
    AdminInfo,
    Clock,
    Deploys,
    IncidentHistory,
    Kubernetes,
    Logs,
    Metrics,
    Traces,
)
from tools.errors import InvalidArguments

BACKEND_CONNECTIONS = 32  # per backend: more parallel queries would queue there anyway


@dataclass(frozen=True, slots=True)
class Observed:
    """What one channel's tools look at; None is not configured."""

    logs: Logs | None
    metrics: Metrics | None
    traces: Traces | None
    deploys: Deploys | None
    incidents: IncidentHistory | None
    rollouts: Deploys | None
    kubernetes: Kubernetes | None
    admin: AdminInfo | None


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
    """The default provider and its fallbacks; of them the local ones, where only those may be asked."""
    names = list(dict.fromkeys([llm.default_provider, *llm.fallback_providers]))
    return [providers[n] for n in (local_order(names, providers) if llm.is_local_only else names)]


def models_of(llm: LlmSettings, providers: Mapping[str, Provider]) -> Models:
    """What may be asked of each provider, with the windows of the model table."""
    choices = {name: _choice(provider, llm) for name, provider in providers.items()}
    return Models(choices, frugal=llm.mode == "frugal")


def _choice(provider: Provider, llm: LlmSettings) -> Choice:
    settings = llm.providers.get(provider.name, ProviderSettings())
    hosted = provider if isinstance(provider, HostedProvider) else None
    configured = hosted.model if hosted else settings.model
    full = KnownModel("", provider.max_context_tokens, configured)
    fast = settings.fast_model
    if fast in ("", configured):
        return Choice(full)
    window = provider.max_context_tokens
    return Choice(
        full, KnownModel(fast, hosted.table.context_tokens(fast, window) if hosted else window)
    )


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
    price = own.usd_per_mtok
    if price is None:
        cost = None
    else:
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        cost = Cost(*(round(usd * 1_000_000) for usd in (price.input, read, write, price.output)))
    return ModelOverride(
        cost, own.context_tokens, Tier(own.tier) if own.tier else None, own.display_name, own.api
    )


def _extra(settings: ProviderSettings) -> Mapping[str, JsonValue]:
    """What only one provider or another knows."""
    return {
        "access_key_id": settings.access_key_id,
        "api": settings.api,
        "effort": settings.effort,
        "local": settings.local,
        "num_ctx": settings.num_ctx,
        "region": settings.region,
        "secret_access_key": settings.secret_access_key.get_secret_value(),
        "session_token": settings.session_token.get_secret_value(),
        "stream_options": settings.stream_options,
        "streaming": settings.streaming,
    }


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Kubernetes cluster: what may be read of it, and what its identity may do."""

    api: KubernetesApi
    reader: KubernetesReader
    rollouts: KubernetesRollouts


async def open_cluster(settings: KubernetesSettings, stack: AsyncExitStack) -> Cluster | None:
    """None when no cluster is configured. Raises ConfigurationError."""
    if settings.kind in ("none", "recorded"):
        return None
    try:
        access = await asyncio.to_thread(_access, settings)
        api = KubernetesApi(access)
        stack.push_async_callback(api.aclose)
        return Cluster(
            api,
            KubernetesReader(api, settings.namespaces),
            KubernetesRollouts(api, settings.product_label, settings.namespaces),
        )
    except (ValueError, InvalidArguments) as error:
        raise ConfigurationError(f"kubernetes: {error}") from error


def _access(settings: KubernetesSettings) -> Access:
    if settings.kind == "cluster":
        return in_cluster()
    return from_kubeconfig(Path(settings.kubeconfig).expanduser(), settings.context)


def make_observed(
    settings: ObserveSettings,
    clock: Clock,
    stored_deploys: Deploys,
    stored_incidents: IncidentHistory,
    stack: AsyncExitStack,
    cluster: "Cluster | None" = None,
    admin: AdminInfo | None = None,
) -> Callable[[str], Observed]:
    """What a channel, given by name, looks at. Recorded backends play one incident per channel.

    Raises ConfigurationError where recorded and live backends are mixed.
    """
    kinds = {settings.logs.kind, settings.metrics.kind, settings.traces.kind} - {"none"}
    if kinds == {"recorded"}:
        return _recorded(clock, stored_incidents)
    if "recorded" in kinds:
        raise ConfigurationError(
            "observe: recorded backends stand alone; set every kind to recorded, or none of them"
        )
    live = Observed(
        logs=_logs(settings, stack),
        metrics=_metrics(settings, clock, stack),
        traces=_traces(settings, stack),
        deploys=stored_deploys,
        incidents=stored_incidents,
        rollouts=cluster.rollouts if cluster else None,
        kubernetes=cluster.reader if cluster else None,
        admin=admin,
    )
    return lambda _channel: live


def _recorded(clock: Clock, stored: IncidentHistory) -> Callable[[str], Observed]:
    incidents = RecordedIncidents(clock, UnsealedCodec())
    first = next(iter(incidents.scenarios))
    history = RecordedHistory(past_incidents(incidents.anchor), beside=stored)

    def of(channel: str) -> Observed:
        recorded = incidents.of_channel(channel) or incidents.of(first)
        return Observed(
            logs=recorded.logs,
            metrics=recorded.metrics,
            traces=recorded.traces,
            deploys=recorded.deploys,
            incidents=history,
            rollouts=None,
            kubernetes=recorded.kubernetes,
            admin=recorded.admin,
        )

    return of


def _logs(settings: ObserveSettings, stack: AsyncExitStack) -> Logs | None:
    logs = settings.logs
    if logs.kind != "loki":
        return None
    client = _client(logs.url, logs.token.get_secret_value(), "observe.logs.url", stack)
    return LokiLogs(client, UnsealedCodec(), logs.selector, logs.tenant)


def _metrics(settings: ObserveSettings, clock: Clock, stack: AsyncExitStack) -> Metrics | None:
    metrics = settings.metrics
    if metrics.kind != "prometheus":
        return None
    client = _client(metrics.url, metrics.token.get_secret_value(), "observe.metrics.url", stack)
    return PrometheusMetrics(client, clock, metrics.product_label, metrics.tenant)


def _traces(settings: ObserveSettings, stack: AsyncExitStack) -> Traces | None:
    traces = settings.traces
    if traces.kind in ("none", "recorded"):
        return None
    client = _client(traces.url, traces.token.get_secret_value(), "observe.traces.url", stack)
    if traces.kind == "tempo":
        return TempoTraces(client, traces.tenant)
    return JaegerTraces(client, traces.api)


def make_admin_info(settings: ControlPlaneSettings, stack: AsyncExitStack) -> AdminInfo | None:
    """None when the control plane is not asked. Raises ConfigurationError."""
    if settings.kind != "http":
        return None
    try:
        check_template(settings.info_url)
    except BadTemplate as error:
        raise ConfigurationError(f"control_plane.info_url: {error}") from error
    token = settings.token.get_secret_value()
    client = _client(settings.info_url, token, "control_plane.info_url", stack)
    return HttpAdminInfo(client, settings.info_url)


def _client(url: str, bearer: str, key: str, stack: AsyncExitStack) -> httpx.AsyncClient:
    host = urlsplit(url).hostname
    if not host:
        raise ConfigurationError(f"{key}: needs an address such as http://loki:3100")
    client = http_client(
        base_url=url.rstrip("/"),
        headers={"Authorization": f"Bearer {bearer}"} if bearer else None,
        max_connections=BACKEND_CONNECTIONS,
        allowed_hosts=frozenset({host}),
    )
    stack.push_async_callback(client.aclose)
    return client


async def open_freezes(
    database: Database,
    actions: ActionCatalog,
    marker: Path | None,
    windows: Sequence[FreezeWindow],
) -> FreezeJudge:
    """The kill switch and the windows; a freeze that an earlier process could not store holds."""
    switch = StoredSwitch(database, marker)
    await switch.sync()
    return FreezeJudge(switch, actions, windows)
