"""The format of a simulated incident: its fault, events, misleading noise, and truth."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from importlib import resources
from typing import Any, Final

from adapters.recorded.simulator.topology import SHOP
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
    service: str
    level: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Truth:
    """The answer. `kind` deploy | saturation | nothing; `culprit` empty and `since` None if nothing."""

    kind: str
    culprit: str
    decoys: tuple[str, ...]
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    channel: str
    products: tuple[str, ...]  # what the channel is about
    truth: Truth
    deploys: tuple[Deploy, ...]  # newest first
    fault: Fault | None = None
    chronic: tuple[Chronic, ...] = ()
    lines: tuple[OneLine, ...] = ()


# What a healthy shop logs anyway; every scenario adds its own.
ORDINARY: Final = tuple(Chronic(**one) for one in SHOP["ordinary"])
_WRITTEN: Final = tomllib.loads(
    resources.files(__package__).joinpath("scenarios.toml").read_text(encoding="utf-8")
)


def scenario_at(name: str, anchor: datetime) -> Scenario:
    """A scenario of `scenarios.toml`. The anchor is the instant at which people begin to ask."""
    written = _placed(_WRITTEN[name], anchor)
    fault = written.get("fault")
    return Scenario(
        name=name,
        channel=written["channel"],
        products=written["products"],
        truth=Truth(**written["truth"]),
        deploys=tuple(Deploy(**one) for one in written["deploys"]),
        fault=Fault(**fault) if fault else None,
        chronic=tuple(Chronic(**one) for one in written["chronic"]),
        lines=tuple(OneLine(**one) for one in written["lines"]),
    )


INCIDENTS: Final[Mapping[str, Callable[[datetime], Scenario]]] = {
    name: partial(scenario_at, name) for name in _WRITTEN
}


def _placed(value: Any, anchor: datetime) -> Any:
    match value:
        case {"minutes_ago": minutes}:
            return anchor - timedelta(minutes=minutes)
        case dict():
            return {name: _placed(member, anchor) for name, member in value.items()}
        case list():
            return tuple(_placed(member, anchor) for member in value)
        case _:
            return value
