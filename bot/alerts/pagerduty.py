"""PagerDuty's webhooks, version 3: an incident there is one incident here.

Each request is signed over its bytes: `X-PagerDuty-Signature: v1=<hex>,v1=<hex>`, several while a
secret is being changed. https://developer.pagerduty.com/docs/webhooks-overview (verifying
signatures). It has no time, so a client may replay an old request: it changes nothing, because
later events win.
"""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import AwareDatetime, Field, JsonValue, TypeAdapter, ValidationError

from bot.alerts.wire import Headers, parsed, since, unreadable
from bot.domain.alerts import Alert, AlertState
from tools.outside_json import Lenient, OutsideModel, Text, shaped

PAGERDUTY: Final = "pagerduty"
_MOST_SIGNATURES: Final = 8
# The events of an incident that change whether it is firing.
_STATES: Final = {
    "incident.triggered": AlertState.FIRING,
    "incident.reopened": AlertState.FIRING,
    "incident.resolved": AlertState.RESOLVED,
}


class _Named(OutsideModel):
    summary: Lenient[Text] = ""


class _Incident(OutsideModel):
    id: Text = Field(min_length=1, max_length=256)
    title: Lenient[Text] = ""
    urgency: Lenient[Text] = ""
    service: Lenient[_Named | None] = None
    priority: Lenient[_Named | None] = None


_INCIDENT: Final = TypeAdapter(_Incident)


class _Event(OutsideModel):
    event_type: str
    occurred_at: Lenient[AwareDatetime | None] = None
    data: dict[str, JsonValue] = Field(default_factory=dict)


class _Delivery(OutsideModel):
    event: _Event


@dataclass(frozen=True, slots=True)
class PagerDutyWire:
    """`secret` is the subscription's."""

    secret: str

    @property
    def source(self) -> str:
        return PAGERDUTY

    def admits(self, headers: Headers, body: bytes) -> bool:
        if not self.secret:
            return False
        digest = hmac.new(self.secret.encode(), body, hashlib.sha256).hexdigest()
        given = headers.get("x-pagerduty-signature", "").split(",")[:_MOST_SIGNATURES]
        wanted = f"v1={digest}".encode()
        # Every one is compared, so that timing does not show which one fits.
        fits = [
            hmac.compare_digest(each.strip().encode("utf-8", "replace"), wanted) for each in given
        ]
        return any(fits)

    def read(
        self,
        headers: Headers,  # noqa: ARG002 - as the port says
        body: bytes,
        received_at: datetime,
    ) -> Sequence[Alert]:
        """The incident, where it was triggered, reopened or resolved. Raises Unreadable."""
        event = parsed(_Delivery, body).event
        state = _STATES.get(event.event_type)
        if state is None:  # a test ping, a note, an acknowledgement
            return ()
        try:
            incident = shaped(_INCIDENT, event.data)
        except ValidationError as error:
            raise unreadable(error) from None
        service = incident.service.summary if incident.service else ""
        priority = incident.priority.summary if incident.priority else ""
        labels = {"service": service, "urgency": incident.urgency, "priority": priority}
        alert = Alert(
            source=PAGERDUTY,
            group=incident.id,
            id=incident.id,
            state=state,
            title=incident.title,
            labels={name: value for name, value in labels.items() if value},
            changed_at=since(event.occurred_at, received_at),
        )
        return (alert,)
