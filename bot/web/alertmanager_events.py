"""Alertmanager's webhook (version 4) as incidents: one alert of one start is one incident.

What counts is the alert's fingerprint and start, never the request: see `bot.alerts.alertmanager`.
"""

from datetime import datetime
from typing import Annotated, Literal

import structlog
from pydantic import BeforeValidator, Field, JsonValue

from adapters.ingested_event import IngestedEvent
from bot.alerts.alertmanager import ALERTMANAGER, ALERTS, AlertmanagerAlert
from bot.domain.alerts import ProductOf
from tools.outside_json import OutsideModel, as_text, readable
from tools.product_names import product_in

_log = structlog.stdlib.get_logger(__name__)


def _event(alert: AlertmanagerAlert, received_at: datetime, product_of: ProductOf) -> IngestedEvent:
    identity = f"{alert.identity}:{alert.starts_at.isoformat()}"
    name = alert.labels.get("alertname", "")
    data: dict[str, JsonValue] = {
        "incident_id": identity,
        "title": alert.title,
        "severity": alert.labels.get("severity", ""),
        "status": alert.status,
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
    }
    return IngestedEvent(
        id=f"{identity}:{alert.status}",
        source=ALERTMANAGER,
        type=f"com.alertmanager.alert.{alert.status}",
        product=product_of(alert.labels) or name or "unknown",
        at=alert.began(received_at) if alert.status == "firing" else alert.ended(received_at),
        data=data,
    )


class AlertmanagerPayload(OutsideModel):
    """One request. More alerts than `max_alerts` are left out by the sender."""

    version: Annotated[Literal["4"], BeforeValidator(as_text)]
    alerts: list[object] = Field(max_length=10_000)

    def events(
        self, received_at: datetime, product_of: ProductOf = product_in
    ) -> list[IngestedEvent]:
        """An event per readable alert; `product_of` names the product by the labels."""
        alerts, unreadable = readable(ALERTS, self.alerts)
        if unreadable:
            _log.warning("alerts.unreadable", source=ALERTMANAGER, count=unreadable)
        return [_event(alert, received_at, product_of) for alert in alerts]
