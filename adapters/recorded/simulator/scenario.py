"""The format of a simulated incident: its fault, events, misleading noise, and truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from tools.capabilities import Deploy

RECOVERY_S: Final = 45.0  # the queues are empty before the next sample but one


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of one service: it starts, grows over `ramp_s`, and stays until `ended_at`, if ever.

    `added_self_ms` is own time added to every request; `extra_calls` more calls per request to a
    dependency; `connections_ratio` what a datastore's pool climbs to (None: not affected).
    """

    service: str
    started_at: datetime
    ramp_s: float
    added_self_ms: float = 0.0
    added_error_ratio: float = 0.0
    extra_calls: Mapping[str, int] = field(default_factory=dict)
    added_cpu_ratio: float = 0.0
    connections_ratio: float | None = None
    error_text: str = "internal error"
    timeout_ms: float = 0.0  # how long a request lasts before it fails this way
    wait_operation: str = ""  # the span in which added time is spent; empty: the service's own
    ended_at: datetime | None = None

    def intensity(self, at_s: float) -> float:
        """0 before the start and after its end, 1 when fully grown. `at_s`: since the epoch."""
        elapsed_s = at_s - self.started_at.timestamp()
        if elapsed_s < 0:
            return 0.0
        grown = min(1.0, (elapsed_s + 1.0) / self.ramp_s)
        if self.ended_at is None:
            return grown
        over_s = at_s - self.ended_at.timestamp()
        return grown if over_s < 0 else grown * max(0.0, 1.0 - over_s / RECOVERY_S)


@dataclass(frozen=True, slots=True)
class Chronic:
    """Lines a service writes all day, `per_minute` on average. `{n}` and `{id}` in text vary."""

    service: str
    level: str
    per_minute: float
    text: str
    since: datetime | None = None  # None: it has always been there
    until: datetime | None = None  # None: it goes on


@dataclass(frozen=True, slots=True)
class OneLine:
    """A line written once."""

    service: str
    level: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The answer. `kind` deploy | saturation | nothing; `culprit` empty and `since` None if nothing."""

    kind: str
    culprit: str
    since: datetime | None
    decoys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that sets one incident apart from a healthy day."""

    name: str
    channel: str
    products: tuple[str, ...]  # what the channel is about
    truth: Truth
    fault: Fault | None
    deploys: tuple[Deploy, ...]  # newest first
    chronic: tuple[Chronic, ...] = ()
    lines: tuple[OneLine, ...] = ()


def deployed(
    product: str, version: str, before: str, at: datetime, by: str, commit: str, took_s: float
) -> Deploy:
    return Deploy(
        product, version, at, by, commit=commit, previous_version=before, duration_s=took_s
    )


# What a healthy shop logs anyway; every scenario adds its own.
ORDINARY = (
    Chronic("shipping", "warn", 0.20, "carrier rate API answered 429, retrying in {n} ms"),
    Chronic("shipping", "error", 0.03, "carrier label API timed out after 5000 ms order={id}"),
    Chronic(
        "recommendations", "warn", 0.50, "feature store miss for user {id}, using popular items"
    ),
    Chronic("catalog", "error", 0.05, "image variant {id} not found in bucket shop-images"),
    Chronic("web", "error", 0.06, "client disconnected before response body was sent req={id}"),
    Chronic("cart", "warn", 0.30, "cart {id} expired while being read"),
    Chronic("payments", "warn", 0.15, "issuer declined authorization {id} code=51"),
    Chronic("orders-db", "info", 0.20, "checkpoint complete: wrote {n} buffers"),
    Chronic("payments-db", "info", 0.20, "checkpoint complete: wrote {n} buffers"),
)
