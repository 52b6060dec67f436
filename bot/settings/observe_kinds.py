"""The keys of each kind of backend of `[observe]`, and which kind needs which key."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, SecretStr

from bot.settings.section import NotEmpty, Section

_OF_AWS: Final = ("region", "access_key_id", "secret_access_key", "session_token", "profile")
_OF_SEARCH: Final = (
    "index", "time_field", "message_field", "level_field", "host_field", "trace_field",
    "product_field",
)  # fmt: skip
_PROXIED: Final = ("tenant", "data_source", "data_source_uid")
# The keys of each kind that not every kind of its family has.
LOGS_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "loki": ("selector", *_PROXIED),
    "victorialogs": ("product_field",),
    "elasticsearch": _OF_SEARCH,
    "opensearch": _OF_SEARCH,
    "cloudwatch": ("product_field", "log_groups", *_OF_AWS),
}
METRICS_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "prometheus": ("scrape_interval", *_PROXIED),
    "datadog": (),
    "cloudwatch": ("namespaces", *_OF_AWS),
}
# As Grafana checks it: util.IsValidShortUID, and empty for none.
DataSourceUid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")]


class AwsSettings(Section):
    """The region and identity for AWS; a `session_token` only with temporary keys.

    Without keys botocore looks for credentials, in `profile` if it is set.
    """

    region: str = ""
    access_key_id: str = ""
    secret_access_key: SecretStr = SecretStr("")
    session_token: SecretStr = SecretStr("")
    profile: str = ""


class LogStoreSettings(AwsSettings):
    """Log stores whose lines have fields.

    `product_field` names a product; empty, it is discovered. `index` and the field names are for
    Elasticsearch and OpenSearch: an empty one is looked up by ECS's and OpenTelemetry's names.
    `log_groups` are prefixes of CloudWatch's groups.
    """

    product_field: str = ""
    index: NotEmpty = "logs-*,filebeat-*"
    time_field: NotEmpty = "@timestamp"
    message_field: NotEmpty = "message"
    level_field: str = ""
    host_field: str = ""
    trace_field: str = ""
    log_groups: tuple[NotEmpty, ...] = ()


class MetricStoreSettings(AwsSettings):
    """Stores of metrics other than Prometheus-compatible ones.

    `namespaces` are CloudWatch's, empty: all.
    """

    namespaces: tuple[NotEmpty, ...] = ()


def check_keys(family: Mapping[str, tuple[str, ...]], backend: Section) -> None:
    """Raises ValueError for a key that another kind of the family has and the backend's has not."""
    kind = str(getattr(backend, "kind", ""))
    if kind not in family:
        return
    others = {key for keys in family.values() for key in keys} - set(family[kind])
    fields = type(backend).model_fields
    for key in sorted(others & backend.model_fields_set):
        if getattr(backend, key) != fields[key].default:  # dumped settings have them all
            raise ValueError(f"{key} is not a key of kind {kind!r}")
