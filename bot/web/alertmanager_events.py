"""Alertmanager's webhook (version 4) as incidents: one alert of one start is one incident.

A group is sent again whole on every change and every repeat interval, so what counts is the alert's
fingerprint and start, never the request. While an alert fires, `endsAt` is the year 1.
https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from pydantic import AwareDatetime, BaseModel, Field, JsonValue

from bot.ports.ingested_events import IngestedEvent
from tools.product_names import product_in

SOURCE = "alertmanager"
ProductOf = Callable[[Mapping[str, str]], str]
_TITLE = ("summary", "title", "message")


class _Alert(BaseModel):
    status: Literal["firing", "resolved"]
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    starts_at: AwareDatetime = Field(alias="startsAt")
    ends_at: AwareDatetime | None = Field(default=None, alias="endsAt")
    fingerprint: str = Field(min_length=1, max_length=128)

    def event(self, received_at: datetime, product_of: ProductOf) -> IngestedEvent:
        """The incident opens with the alert and closes when it is resolved."""
        identity = f"{self.fingerprint}:{self.starts_at.isoformat()}"
        name = self.labels.get("alertname", "")
        data: dict[str, JsonValue] = {
            "incident_id": identity,
            "title": _first(self.annotations, _TITLE) or name,
            "severity": self.labels.get("severity", ""),
            "status": self.status,
            "labels": dict(self.labels),
            "annotations": dict(self.annotations),
        }
        ended = self.ends_at if self.ends_at and self.ends_at > self.starts_at else received_at
        return IngestedEvent(
            id=f"{identity}:{self.status}",
            source=SOURCE,
            type=f"com.alertmanager.alert.{self.status}",
            product=product_of(self.labels) or name or "unknown",
            at=self.starts_at if self.status == "firing" else ended,
            data=data,
        )


class AlertmanagerPayload(BaseModel):
    """One request. More alerts than `max_alerts` are left out by the sender."""

    version: Literal["4"]
    alerts: list[_Alert] = Field(max_length=10_000)

    def events(
        self, received_at: datetime, product_of: ProductOf = product_in
    ) -> list[IngestedEvent]:
        """An event per alert; `product_of` says from its labels whose it is."""
        return [alert.event(received_at, product_of) for alert in self.alerts]


def _first(texts: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((texts[name] for name in names if texts.get(name)), "")
