"""What one kind of backend of `[observe]` needs and the others do not, and which key is whose."""

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field, SecretStr

from bot.settings.section import NotEmpty, Section

_OF_AWS: Final = ("region", "access_key_id", "secret_access_key", "session_token")
_OF_SEARCH: Final = (
    "index", "time_field", "message_field", "level_field", "host_field", "trace_field",
    "product_field",
)  # fmt: skip
# The keys of each kind that not every kind has.
OWN_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "loki": ("selector", "tenant", "data_source", "data_source_uid"),
    "victorialogs": ("product_field",),
    "elasticsearch": _OF_SEARCH,
    "opensearch": _OF_SEARCH,
    "cloudwatch": ("product_field", "log_groups", *_OF_AWS),
    "recorded": (),
}
# As Grafana checks it: util.IsValidShortUID, and empty for none.
DataSourceUid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{0,40}$")]
_SHARED: Final = frozenset(key for keys in OWN_KEYS.values() for key in keys)


class AwsSettings(Section):
    """Where and as whom AWS is asked; a `session_token` only with temporary keys."""

    region: str = ""
    access_key_id: str = ""
    secret_access_key: SecretStr = SecretStr("")
    session_token: SecretStr = SecretStr("")


class LogStoreSettings(AwsSettings):
    """Stores of logs whose lines have fields.

    `product_field` names a product; empty, it is found. `index` and the names of fields are
    Elasticsearch's and OpenSearch's: an empty one is looked for by ECS's and OpenTelemetry's names.
    `log_groups` are what names of CloudWatch's groups begin with.
    """

    product_field: str = ""
    index: NotEmpty = "logs-*,filebeat-*"
    time_field: NotEmpty = "@timestamp"
    message_field: NotEmpty = "message"
    level_field: str = ""
    host_field: str = ""
    trace_field: str = ""
    log_groups: tuple[NotEmpty, ...] = ()


def foreign_keys(kind: str, given: frozenset[str]) -> list[str]:
    """Those that another kind has and this one does not; none for a kind that is nothing yet."""
    return sorted(given & _SHARED - set(OWN_KEYS[kind])) if kind in OWN_KEYS else []
