"""From one backend's settings to what reads it, by its kind. None where no kind is set.

Each kind is imported where one is configured, for most have none."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx

from adapters.aws.credentials import AwsCredentials, AwsKey
from adapters.control_plane.admin_info import HttpAdminInfo
from adapters.control_plane.port import BadTemplate, check_template
from adapters.deploys.feed import DeployFeed
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.grafana import proxied, read_through
from adapters.platform.connections import PREFIX
from bot.app.http_access import backend_client
from bot.settings.deploys import DeployFeedSettings
from bot.settings.environment import environment
from bot.settings.error_tracker import ErrorsBackend
from bot.settings.model import (
    ControlPlaneSettings,
    KubernetesSettings,
    PatternsSettings,
    PlatformSettings,
    Settings,
)
from bot.settings.observe import LogsBackend, MetricsBackend, ObservedBackend, TracesBackend
from bot.settings.reading import ConfigurationError, needing_extra
from tools.capabilities import AdminInfo, Clock, Logs, Metrics, Platform, Traces
from tools.cluster_offer import Patterns
from tools.error_issues import ErrorIssues
from tools.errors import InvalidArguments
from tools.port import Port

if TYPE_CHECKING:
    from adapters.kubernetes.api import KubernetesApi
    from adapters.kubernetes.config import Access
    from adapters.kubernetes.offer import KubernetesOffer
    from adapters.kubernetes.reader import KubernetesReader
    from adapters.kubernetes.rollouts import KubernetesRollouts
    from adapters.observe.aws import Aws, AwsService
    from adapters.observe.conventions import Conventions


_DATADOG: Final = "https://api.datadoghq.com"  # of the US1 site


def open_logs(
    backend: LogsBackend, product_labels: Sequence[str], table: str, stack: AsyncExitStack
) -> Logs | None:
    """`table` is what an error names, such as `observe.logs`. Raises ConfigurationError."""
    match backend.kind:
        case "none" | "recorded":
            return None
        case "loki":
            from adapters.observe.loki import LokiLogs

            client = _client(backend, table, stack)
            selector, tenant = backend.selector, backend.tenant
            try:
                return LokiLogs(client, UnsealedCodec(), selector, tenant, product_labels)
            except ValueError as error:
                raise ConfigurationError(f"{table}.{error}") from error
        case "victorialogs" | "elasticsearch" | "opensearch" | "cloudwatch":
            return _open_fields(backend, product_labels, table, stack)


def _open_fields(
    backend: LogsBackend, product_labels: Sequence[str], table: str, stack: AsyncExitStack
) -> Logs:
    from adapters.observe.field_logs import FieldLogs

    codec = UnsealedCodec()
    if backend.kind == "cloudwatch":
        with needing_extra("aws", f"{table}.kind"):
            from adapters.observe.aws import CLOUDWATCH_LOGS
        from adapters.observe.cloudwatch_logs import CloudWatchLogs

        aws = _aws(CLOUDWATCH_LOGS, backend, table, stack)
        groups = CloudWatchLogs(aws, backend.log_groups, backend.product_field)
        return FieldLogs(groups, codec, groups.product_field)
    client = backend_client(backend.url, backend, f"{table}.url", stack)
    if backend.kind == "victorialogs":
        from adapters.observe.victorialogs import VictoriaLogs

        return FieldLogs(VictoriaLogs(client), codec, backend.product_field, product_labels)
    from adapters.observe.elasticsearch import Elasticsearch, LogFields

    fields = LogFields(
        backend.time_field,
        backend.message_field,
        backend.level_field,
        backend.host_field,
        backend.trace_field,
    )
    name = "OpenSearch" if backend.kind == "opensearch" else "Elasticsearch"
    store = Elasticsearch(client, backend.index, fields, name)
    return FieldLogs(store, codec, backend.product_field, product_labels)


def open_metrics(
    backend: MetricsBackend,
    product_labels: Sequence[str],
    clock: Clock,
    table: str,
    stack: AsyncExitStack,
) -> Metrics | None:
    match backend.kind:
        case "none" | "recorded":
            return None
        case "prometheus":
            from adapters.observe.prometheus import PrometheusMetrics

            scraped = backend.scrape_interval
            return PrometheusMetrics(
                _client(backend, table, stack),
                clock,
                backend.product_label,
                backend.tenant,
                scraped.total_seconds() if scraped else None,
                conventions_of(backend),
                product_labels,
            )
        case "datadog" | "cloudwatch":
            return _open_named(backend, clock, table, stack)


def _open_named(
    backend: MetricsBackend, clock: Clock, table: str, stack: AsyncExitStack
) -> Metrics:
    from adapters.observe.named_metrics import NamedMetrics

    conventions = conventions_of(backend)
    if backend.kind == "cloudwatch":
        with needing_extra("aws", f"{table}.kind"):
            from adapters.observe.aws import CLOUDWATCH
        from adapters.observe.cloudwatch_metrics import CloudWatchMetrics

        aws = _aws(CLOUDWATCH, backend, table, stack)
        listed = CloudWatchMetrics(aws, backend.namespaces, backend.product_label)
        return NamedMetrics(listed, clock, conventions)
    from adapters.observe.datadog import SERVICE, Datadog

    client = backend_client(backend.url or _DATADOG, backend, f"{table}.url", stack)
    tagged = Datadog(client, backend.product_label or SERVICE, conventions)
    return NamedMetrics(tagged, clock, conventions)


def conventions_of(metrics: MetricsBackend) -> "Conventions":
    """What names mean here: the operator's own before the shipped ones."""
    from adapters.observe.conventions import Conventions

    return Conventions({name: one.model_dump() for name, one in metrics.signals.items()})


def open_traces(backend: TracesBackend, table: str, stack: AsyncExitStack) -> Traces | None:
    if backend.kind in ("none", "recorded"):
        return None
    client = _client(backend, table, stack)
    if backend.kind == "tempo":
        from adapters.observe.tempo import TempoTraces

        return TempoTraces(client, backend.tenant)
    from adapters.observe.jaeger import JaegerTraces

    return JaegerTraces(client, backend.api)


def open_errors(backend: ErrorsBackend, table: str, stack: AsyncExitStack) -> ErrorIssues | None:
    if backend.kind == "none":
        return None
    from adapters.observe.sentry import Sentry

    client = backend_client(backend.url, backend, f"{table}.url", stack)
    return Sentry(client, backend.organization, backend.projects)


def _client(backend: ObservedBackend, table: str, stack: AsyncExitStack) -> httpx.AsyncClient:
    uid = backend.data_source_uid
    address = proxied(backend.url, uid) if uid else backend.url
    client = backend_client(address, backend, f"{table}.url", stack)
    if backend.data_source:
        read_through(client, backend.data_source)
    return client


def _aws(
    service: "AwsService", backend: LogsBackend | MetricsBackend, table: str, stack: AsyncExitStack
) -> "Aws":
    with needing_extra("aws", f"{table}.kind"):
        from adapters.observe.aws import Aws

    key_id, secret = backend.access_key_id, backend.secret_access_key.get_secret_value()
    if not backend.region:
        raise ConfigurationError(f'{table}.region: kind "cloudwatch" needs it')
    if bool(key_id) != bool(secret):
        missing = "secret_access_key" if key_id else "access_key_id"
        raise ConfigurationError(f"{table}.{missing}: an access key has two parts")
    if backend.token.get_secret_value() or backend.user:
        raise ConfigurationError(
            f"{table}: AWS is asked with access keys, not with a token or user"
        )
    address = backend.url or f"https://{service.signed_as}.{backend.region}.amazonaws.com"
    key = AwsKey(key_id, secret, backend.session_token.get_secret_value()) if key_id else None
    credentials = AwsCredentials(backend.region, key, backend.profile)
    client = backend_client(address, backend, f"{table}.url", stack)
    return Aws(service, client, credentials, backend.region)


def make_admin_info(settings: ControlPlaneSettings, stack: AsyncExitStack) -> AdminInfo | None:
    """None when the control plane is not asked. Raises ConfigurationError."""
    if settings.kind != "http":
        return None
    try:
        check_template(settings.info_url)
    except BadTemplate as error:
        raise ConfigurationError(f"control_plane.info_url: {error}") from error
    client = backend_client(settings.info_url, settings, "control_plane.info_url", stack)
    return HttpAdminInfo(client, settings.info_url)


def make_platform(settings: PlatformSettings, stack: AsyncExitStack) -> Platform | None:
    """None when there is no platform. Raises ConfigurationError."""
    if settings.kind != "http":
        return None
    from adapters.platform.http_platform import HttpPlatform

    tokens = {f"{PREFIX}{name}": one.token for name, one in settings.connections.items()}
    return HttpPlatform(
        backend_client(settings.url, settings, "platform.url", stack),
        lambda connection: tokens[connection].get_secret_value(),
    )


def make_patterns(settings: PatternsSettings) -> Patterns | None:
    """None without a folder."""
    if not settings.folder:
        return None
    from adapters.written_pages import FolderPages

    return FolderPages(Path(settings.folder).expanduser())


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


def make_feeds(
    settings: Settings, cluster: Cluster | None, stack: AsyncExitStack
) -> Mapping[str, Mapping[str, DeployFeed]]:
    """The feeds of each table, by name. Reads certificates.

    A failed or forbidden feed does not affect the rest. Each kind is imported only if configured,
    because most are not. Raises ConfigurationError.
    """
    return {
        name: _feeds(f"deploys.{name}", feed, settings, cluster, stack)
        for name, feed in settings.deploys.items()
    }


def _feeds(
    key: str,
    feed: DeployFeedSettings,
    settings: Settings,
    cluster: Cluster | None,
    stack: AsyncExitStack,
) -> Mapping[str, DeployFeed]:
    if feed.kind == "flux":
        if cluster is None:
            raise ConfigurationError(f"{key}.kind: Flux is read from a cluster; set [kubernetes]")
        from adapters.deploys.flux import FluxDeploys

        names = settings.kubernetes.namespaces or (cluster.api.namespace,)
        return {name: FluxDeploys(cluster.api, name) for name in names}
    client = backend_client(feed.address, feed, f"{key}.url", stack)
    match feed.kind:
        case "github":
            from adapters.deploys.github import GitHubDeploys

            return {name: GitHubDeploys(client, name) for name in feed.projects}
        case "gitlab":
            from adapters.deploys.gitlab import GitLabDeploys

            return {name: GitLabDeploys(client, name) for name in feed.projects}
        case "argocd":
            from adapters.deploys.argocd import ArgoDeploys

            return {"applications": ArgoDeploys(client, feed.projects)}


Bindings = Mapping[Port[Any], Callable[[httpx.AsyncClient], object]]

# PORT: Adapter. The adapter gets a client that reaches its own address and no other host.
BINDINGS: Bindings = {}


def bound(
    settings: Settings, stack: AsyncExitStack, bindings: Bindings = BINDINGS
) -> Mapping[str, object]:
    """Adapters by their port's name. Raises ConfigurationError for an unknown table."""
    adapters = {port.name: adapter for port, adapter in bindings.items()}
    for name in settings.adapters:
        if name not in adapters:
            raise ConfigurationError(
                f"adapters.{name}: no tool asks it; there are: {', '.join(adapters) or 'none'}"
            )
    return {
        name: adapters[name](backend_client(own.url, own, f"adapters.{name}.url", stack))
        for name, own in settings.adapters.items()
    }
