"""Alertmanager's webhook (version 4), and Grafana's, which has its fields and more.

A group is sent again whole on every change and every repeat interval, so what counts is an alert's
fingerprint and start, never the request. While an alert fires, `endsAt` is the year 1.
https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
https://grafana.com/docs/grafana/latest/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier/
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Final, Literal, Self

import orjson
import structlog
from pydantic import AwareDatetime, BeforeValidator, Field, TypeAdapter, model_validator

from bot.alerts.wire import Headers, Unreadable, has_token, parsed, since
from bot.domain.alerts import Alert, AlertState
from tools.outside_json import Entries, Lenient, OutsideModel, Text, Texts, readable, set_instant

_log = structlog.stdlib.get_logger(__name__)

ALERTMANAGER: Final = "alertmanager"
GRAFANA: Final = "grafana"
_TITLE: Final = ("summary", "title", "message")


_UNSET: Final = datetime(1, 1, 1, tzinfo=UTC)
_Status = Annotated[
    Literal["firing", "resolved"],
    BeforeValidator(lambda word: word.strip().lower() if isinstance(word, str) else word),
]


class AlertmanagerAlert(OutsideModel):
    status: _Status
    labels: Lenient[Texts] = Field(default_factory=dict)
    annotations: Lenient[Texts] = Field(default_factory=dict)
    starts_at: Lenient[AwareDatetime] = Field(default=_UNSET, alias="startsAt")
    ends_at: Lenient[AwareDatetime | None] = Field(default=None, alias="endsAt")
    fingerprint: Lenient[Annotated[str, Field(max_length=128)]] = ""

    @model_validator(mode="after")
    def _can_be_recognised(self) -> Self:
        if not self.fingerprint and not self.labels:
            raise ValueError("it has neither a fingerprint nor labels")
        return self

    @property
    def identity(self) -> str:
        """Its fingerprint; without one, a digest of its labels, which Alertmanager takes too."""
        labels = orjson.dumps(self.labels, option=orjson.OPT_SORT_KEYS)
        return self.fingerprint or hashlib.sha256(labels).hexdigest()[:16]

    @property
    def title(self) -> str:
        """What its author wrote of it, else its name."""
        written = (self.annotations[name] for name in _TITLE if self.annotations.get(name))
        return next(written, self.labels.get("alertname", ""))

    def began(self, received_at: datetime) -> datetime:
        """When it began to fire, as far as its sender says."""
        return set_instant(self.starts_at) or received_at

    def ended(self, received_at: datetime) -> datetime:
        """When it was resolved, as far as its sender says."""
        ended = set_instant(self.ends_at)
        return ended if ended and ended > self.starts_at else received_at


class _Group(OutsideModel):
    group_key: Lenient[Annotated[Text, Field(max_length=65_536)]] = Field(
        default="", alias="groupKey"
    )
    alerts: list[object] = Field(max_length=10_000)


ALERTS: Final = TypeAdapter(Entries[AlertmanagerAlert])


@dataclass(frozen=True, slots=True)
class GroupWire:
    """A sender of such groups, believed by a bearer token."""

    source: str
    token: str

    def admits(self, headers: Headers, body: bytes) -> bool:  # noqa: ARG002 - as the port says
        return has_token(headers, self.token)

    def read(
        self,
        headers: Headers,  # noqa: ARG002 - as the port says
        body: bytes,
        received_at: datetime,
    ) -> Sequence[Alert]:
        """The readable alerts of the group. Raises Unreadable when none of them is.

        Alertmanager does not send a refused group again, so one odd alert must not lose the rest.
        """
        group = parsed(_Group, body)
        alerts, unreadable = readable(ALERTS, group.alerts)
        if unreadable and not alerts:
            raise Unreadable(f"none of the {unreadable} alerts can be read")
        if unreadable:
            _log.warning("alerts.unreadable", source=self.source, count=unreadable)
        return [self._alert(each, group.group_key, received_at) for each in alerts]

    def _alert(self, told: AlertmanagerAlert, group: str, received_at: datetime) -> Alert:
        state = AlertState(told.status)
        at = told.starts_at if state is AlertState.FIRING else told.ended(received_at)
        return Alert(
            source=self.source,
            group=group or told.identity,
            id=told.identity,
            state=state,
            title=told.title,
            labels=_named(told.labels),
            changed_at=since(at, received_at),
        )


def _named(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if value}
