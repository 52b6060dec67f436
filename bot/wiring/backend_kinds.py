"""From one backend's settings to what reads it, by its kind. None where no kind is set."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Final

import httpx

from adapters.observe.aws import CLOUDWATCH, CLOUDWATCH_LOGS, Aws, AwsService
from adapters.observe.cloudwatch_logs import CloudWatchLogs
from adapters.observe.cloudwatch_metrics import CloudWatchMetrics
from adapters.observe.conventions import Conventions
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.datadog import SERVICE, Datadog
from adapters.observe.elasticsearch import Elasticsearch, LogFields
from adapters.observe.field_logs import FieldLogs
from adapters.observe.grafana import proxied, read_through
from adapters.observe.jaeger import JaegerTraces
from adapters.observe.loki import LokiLogs
from adapters.observe.named_metrics import NamedMetrics
from adapters.observe.prometheus import PrometheusMetrics
from adapters.observe.tempo import TempoTraces
from adapters.observe.victorialogs import VictoriaLogs
from adapters.sigv4 import AwsKey
from bot.settings.observe import LogsBackend, MetricsBackend, ObservedBackend, TracesBackend
from bot.settings.reading import ConfigurationError
from bot.wiring.ways import backend_client
from tools.capabilities import Clock, Logs, Metrics, Traces

_DATADOG: Final = "https://api.datadoghq.com"  # of the US1 site


def open_logs(
    backend: LogsBackend, product_labels: Sequence[str], table: str, stack: AsyncExitStack
) -> Logs | None:
    """`table` is what an error names, such as `observe.logs`. Raises ConfigurationError."""
    codec, url = UnsealedCodec(), f"{table}.url"
    match backend.kind:
        case "none" | "recorded":
            return None
        case "loki":
            client = _client(backend, table, stack)
            try:
                return LokiLogs(client, codec, backend.selector, backend.tenant, product_labels)
            except ValueError as error:
                raise ConfigurationError(f"{table}.{error}") from error
        case "victorialogs":
            client = backend_client(backend.url, backend, url, stack)
            return FieldLogs(VictoriaLogs(client), codec, backend.product_field, product_labels)
        case "elasticsearch" | "opensearch":
            client = backend_client(backend.url, backend, url, stack)
            name = "Elasticsearch" if backend.kind == "elasticsearch" else "OpenSearch"
            store = Elasticsearch(client, backend.index, _fields(backend), name)
            return FieldLogs(store, codec, backend.product_field, product_labels)
        case "cloudwatch":
            aws = _aws(CLOUDWATCH_LOGS, backend, table, stack)
            source = CloudWatchLogs(aws, backend.log_groups, backend.product_field)
            return FieldLogs(source, codec, source.product_field)


def open_metrics(
    backend: MetricsBackend,
    product_labels: Sequence[str],
    clock: Clock,
    table: str,
    stack: AsyncExitStack,
) -> Metrics | None:
    """As `open_logs`."""
    match backend.kind:
        case "none" | "recorded":
            return None
        case "prometheus":
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
        case "datadog":
            client = backend_client(backend.url or _DATADOG, backend, f"{table}.url", stack)
            tag = backend.product_label or next(iter(product_labels), SERVICE)
            conventions = conventions_of(backend)
            return NamedMetrics(Datadog(client, tag, conventions), clock, conventions)
        case "cloudwatch":
            aws = _aws(CLOUDWATCH, backend, table, stack)
            source = CloudWatchMetrics(aws, backend.namespaces, backend.product_label)
            return NamedMetrics(source, clock, conventions_of(backend))


def conventions_of(metrics: MetricsBackend) -> Conventions:
    """What names mean here: the operator's own before the shipped ones."""
    return Conventions({name: one.model_dump() for name, one in metrics.signals.items()})


def open_traces(backend: TracesBackend, table: str, stack: AsyncExitStack) -> Traces | None:
    """As `open_logs`."""
    if backend.kind in ("none", "recorded"):
        return None
    client = _client(backend, table, stack)
    if backend.kind == "tempo":
        return TempoTraces(client, backend.tenant)
    return JaegerTraces(client, backend.api)


def _client(backend: ObservedBackend, table: str, stack: AsyncExitStack) -> httpx.AsyncClient:
    """Directly, or through Grafana's proxy."""
    uid = backend.data_source_uid
    address = proxied(backend.url, uid) if uid else backend.url
    client = backend_client(address, backend, f"{table}.url", stack)
    if backend.data_source:
        read_through(client, backend.data_source)
    return client


def _fields(backend: LogsBackend) -> LogFields:
    return LogFields(
        backend.time_field,
        backend.message_field,
        backend.level_field,
        backend.host_field,
        backend.trace_field,
    )


def _aws(
    service: AwsService, backend: LogsBackend | MetricsBackend, table: str, stack: AsyncExitStack
) -> Aws:
    """Without an address, the region's own. Raises ConfigurationError for what is missing."""
    for needed in ("region", "access_key_id", "secret_access_key"):
        if not getattr(backend, needed):
            raise ConfigurationError(f'{table}.{needed}: kind "cloudwatch" needs it')
    if backend.token.get_secret_value() or backend.user:
        raise ConfigurationError(
            f"{table}: AWS is asked with access keys, not with a token or user"
        )
    address = backend.url or f"https://{service.signed_as}.{backend.region}.amazonaws.com"
    key = AwsKey(
        backend.access_key_id,
        backend.secret_access_key.get_secret_value(),
        backend.session_token.get_secret_value(),
    )
    client = backend_client(address, backend, f"{table}.url", stack)
    return Aws(service, client, key, backend.region)
