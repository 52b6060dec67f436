"""`[observe]`: where logs, metrics, traces and errors are read, and what their names mean."""

from typing import Literal, Self

from pydantic import Field, model_validator

from bot.settings.access import TENANT_HEADER, AccessSettings, HeaderText
from bot.settings.error_tracker import ErrorsSettings
from bot.settings.named_backends import BackendName, ByName, HoldsNamed
from bot.settings.observe_kinds import (
    LOGS_KEYS,
    METRICS_KEYS,
    DataSourceUid,
    LogStoreSettings,
    MetricStoreSettings,
    check_keys,
)
from bot.settings.section import Duration, LinkTemplate, Section, absent_table


class ObservedBackend(AccessSettings):
    """The common settings of logs, metrics and traces. `tenant` is sent as X-Scope-OrgID.

    `link` is the button of an opened result. With `data_source` (a name) or `data_source_uid`,
    `url` is a Grafana, and requests go through its proxy.
    """

    url: str = ""
    link: LinkTemplate = ""
    tenant: HeaderText = ""
    data_source: str = ""
    data_source_uid: DataSourceUid = ""

    @model_validator(mode="after")
    def _one_data_source(self) -> Self:
        if self.data_source and self.data_source_uid:
            raise ValueError("set one of data_source and data_source_uid")
        return self

    @model_validator(mode="after")
    def _one_tenant(self) -> Self:
        if self.tenant and any(name.lower() == TENANT_HEADER.lower() for name in self.headers):
            raise ValueError(f"tenant is sent as {TENANT_HEADER}; set one of them")
        return self


class LogsBackend(ObservedBackend, LogStoreSettings):
    """One store of logs. `selector` is LogQL with `$product`; empty, the label is found."""

    kind: Literal[
        "loki", "victorialogs", "elasticsearch", "opensearch", "cloudwatch", "recorded", "none"
    ] = "none"
    selector: str = ""

    @model_validator(mode="after")
    def _keys_of_the_kind(self) -> Self:
        check_keys(LOGS_KEYS, self)
        return self


class NamedLogsSettings(LogsBackend, ByName):
    """`[observe.logs.NAME]`."""


class LogsSettings(LogsBackend, HoldsNamed):
    """`[observe.logs]`: what every channel looks at that chooses no other, and those by name."""

    named: dict[BackendName, NamedLogsSettings] = Field(default_factory=dict)


class SignalSettings(Section):
    """`[observe.metrics.signals.NAME]`: what a metric of that name means, before any convention.

    NAME may hold `*`. `over` is the metric that it is a share of, `where` its matchers in PromQL.
    """

    role: Literal[
        "traffic", "errors", "latency", "cpu", "memory", "disk", "pool", "queue", "restarts",
        "network", "other", "none",
    ]  # fmt: skip
    type: Literal["counter", "gauge", "histogram", ""] = ""
    unit: str = ""
    worse: Literal["up", "down", "either", ""] = ""
    combine: Literal["sum", "max", "min", "avg", ""] = ""
    where: str = ""
    over: str = ""
    # The value from which it is bad, for any earlier value.
    limit: float | None = Field(default=None, ge=0, le=1e15)


class MetricsBackend(ObservedBackend, MetricStoreSettings):
    """One store of metrics. `product_label` alone names a series' product; empty, it is discovered.

    It is a label, a tag of Datadog or a dimension of CloudWatch. An empty `scrape_interval` is
    learned from the data.
    """

    kind: Literal["prometheus", "datadog", "cloudwatch", "recorded", "none"] = "none"
    product_label: str = ""
    scrape_interval: Duration | None = None
    signals: dict[str, SignalSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _keys_of_the_kind(self) -> Self:
        check_keys(METRICS_KEYS, self)
        return self


class NamedMetricsSettings(MetricsBackend, ByName):
    """`[observe.metrics.NAME]`."""


class MetricsSettings(MetricsBackend, HoldsNamed):
    """`[observe.metrics]`: what every channel looks at that chooses no other, and those by name."""

    named: dict[BackendName, NamedMetricsSettings] = Field(default_factory=dict)


class TracesBackend(ObservedBackend):
    """One store of traces. `api` is Jaeger's."""

    kind: Literal["jaeger", "tempo", "recorded", "none"] = "none"
    api: Literal["v1", "v3"] = "v1"


class NamedTracesSettings(TracesBackend, ByName):
    """`[observe.traces.NAME]`."""


class TracesSettings(TracesBackend, HoldsNamed):
    """`[observe.traces]`: what every channel looks at that chooses no other, and those by name."""

    named: dict[BackendName, NamedTracesSettings] = Field(default_factory=dict)


class ObserveSettings(Section):
    """`[observe]`.

    `product_labels` name a product before the usual labels do, in metrics, logs, alerts and
    Deployments. A family's own `product_label` comes before them.
    """

    product_labels: tuple[str, ...] = ()
    logs: LogsSettings = absent_table()
    metrics: MetricsSettings = absent_table()
    traces: TracesSettings = absent_table()
    errors: ErrorsSettings = absent_table()
