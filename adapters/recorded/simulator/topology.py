"""The simulated shop of `shop.toml`: its services, their calls, and the routes that people use.

Numbers describe a healthy day; a scenario's fault changes them.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Call:
    """One dependency: `share` of the caller's requests make it, `times` in a row."""

    target: str
    operation: str
    share: float = 1.0
    times: int = 1


@dataclass(frozen=True, slots=True)
class Service:
    """A service on a healthy day. `self_ms` is its median own time per request, at low load."""

    name: str
    version: str
    self_ms: float
    error_ratio: float
    cpu_ratio: float
    memory_ratio: float
    hosts: int = 2
    calls: tuple[Call, ...] = ()
    datastore: bool = False

    def host(self, number: int) -> str:
        return f"{self.name}-{number % self.hosts + 1}"


@dataclass(frozen=True, slots=True)
class Route:
    """A way into the shop. `traffic` is its share of requests; `sampled` its share of kept traces."""

    name: str
    calls: tuple[Call, ...]
    traffic: float
    sampled: float
    slow_ms: float


PEAK_REQUESTS_PER_SECOND = 220.0  # at the front door, at the busiest hour

SHOP: Final = tomllib.loads(
    resources.files(__package__).joinpath("shop.toml").read_text(encoding="utf-8")
)


def _calls(rows: Iterable[Mapping[str, Any]]) -> tuple[Call, ...]:
    return tuple(Call(**row) for row in rows)


ROUTES: Final = tuple(Route(**{**one, "calls": _calls(one["calls"])}) for one in SHOP["routes"])
SERVICES: Final = tuple(
    Service(**one, calls=_calls(SHOP["calls"].get(one["name"], ()))) for one in SHOP["services"]
)
PRODUCTS = tuple(service.name for service in SERVICES)
BY_NAME = {service.name: service for service in SERVICES}
HOSTS = {name: tuple(map(one.host, range(one.hosts))) for name, one in BY_NAME.items()}


@cache
def calls_of(name: str) -> tuple[Call, ...]:
    """What a service calls; the gateway's calls are the routes', weighted by their traffic."""
    if name != "gateway":
        return BY_NAME[name].calls
    return tuple(
        Call(call.target, call.operation, call.share * route.traffic, call.times)
        for route in ROUTES
        for call in route.calls
    )


@cache
def leaves_first() -> tuple[str, ...]:
    """The services ordered so that each comes after everything it calls."""
    order: dict[str, None] = {}

    def visit(name: str) -> None:
        for call in calls_of(name):
            visit(call.target)
        order.setdefault(name)

    visit("web")
    return tuple(order)
