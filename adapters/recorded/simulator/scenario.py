"""An incident of the simulated shop: what happens, what misleads, and what is true."""

from dataclasses import dataclass
from datetime import datetime

from adapters.recorded.simulator.faults import Fault
from tools.capabilities import Deploy


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
