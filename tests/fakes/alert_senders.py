"""Senders of alerts as their wires see them: a golden request each, authenticated, and what it says."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bot.alerts.alertmanager import GroupWire
from bot.alerts.cloudevents import CloudEventsWire
from bot.alerts.pagerduty import PagerDutyWire
from bot.alerts.wire import AlertWire

GOLDEN = Path(__file__).parent.parent / "golden" / "alerts"
SECRET = "a secret that the sender has"
JSON = {"content-type": "application/json"}
STRUCTURED = {"content-type": "application/cloudevents+json"}


def signature(body: bytes, secret: str = SECRET) -> str:
    """PagerDuty's, over those bytes."""
    return "v1=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Sender:
    """`wire` believes what `headers_of` a body say."""

    wire: AlertWire
    media: Mapping[str, str] = field(default_factory=lambda: JSON)
    signs: bool = False

    @property
    def body(self) -> bytes:
        return (GOLDEN / f"{self.wire.source}.json").read_bytes()

    def headers_of(self, body: bytes, secret: str = SECRET) -> dict[str, str]:
        shown = (
            {"x-pagerduty-signature": signature(body, secret)}
            if self.signs
            else {"authorization": f"Bearer {secret}"}
        )
        return {**self.media, **shown}


def senders(secret: str = SECRET) -> dict[str, Sender]:
    """All four, by name."""
    every = [
        Sender(GroupWire("alertmanager", secret)),
        Sender(GroupWire("grafana", secret)),
        Sender(PagerDutyWire(secret), signs=True),
        Sender(CloudEventsWire(secret), STRUCTURED),
    ]
    return {each.wire.source: each for each in every}
