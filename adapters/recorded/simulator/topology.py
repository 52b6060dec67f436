"""The simulated shop: its services, their calls, and the routes that people use.

Numbers describe a healthy day; a scenario's fault changes them.
"""

from dataclasses import dataclass
from functools import cache


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

ROUTES = (
    Route(
        "GET /products",
        (Call("catalog", "GET /v1/products"), Call("recommendations", "GET /v1/similar", 0.6)),
        traffic=0.70,
        sampled=0.30,
        slow_ms=450.0,
    ),
    Route(
        "POST /cart", (Call("cart", "POST /v1/items"),), traffic=0.22, sampled=0.25, slow_ms=350.0
    ),
    Route(
        "POST /checkout",
        (Call("checkout", "POST /v1/orders"),),
        traffic=0.08,
        sampled=0.45,
        slow_ms=900.0,
    ),
)

_CHECKOUT_CALLS = (
    Call("cart", "GET /v1/cart"),
    Call("pricing", "GET /v1/quote"),
    Call("inventory", "POST /v1/reservations"),
    Call("payments", "POST /v1/authorizations"),
    Call("shipping", "POST /v1/labels", 0.9),
    Call("orders-db", "INSERT orders", times=2),
)

SERVICES = (
    Service("web", "v5.31.2", 9.0, 0.0006, 0.38, 0.52, 3, (Call("gateway", "proxy"),)),
    Service("gateway", "v3.8.0", 4.0, 0.0005, 0.42, 0.40, 3),
    Service("checkout", "v2.3.7", 34.0, 0.0012, 0.36, 0.55, 3, _CHECKOUT_CALLS),
    Service(
        "cart",
        "v1.44.0",
        9.0,
        0.0008,
        0.33,
        0.47,
        calls=(Call("inventory", "GET /v1/stock", 0.6), Call("pricing", "GET /v1/quote", 0.4)),
    ),
    Service(
        "catalog",
        "v4.12.1",
        14.0,
        0.0007,
        0.45,
        0.61,
        3,
        (Call("pricing", "GET /v1/quote", 0.5), Call("inventory", "GET /v1/stock", 0.3)),
    ),
    Service("pricing", "v2.9.4", 4.5, 0.0004, 0.35, 0.38),
    Service("inventory", "v3.2.0", 11.0, 0.0015, 0.40, 0.58),
    Service(
        "payments",
        "v6.1.3",
        26.0,
        0.0010,
        0.30,
        0.49,
        calls=(Call("payments-db", "SELECT authorizations", times=2),),
    ),
    Service(
        "recommendations",
        "v1.19.2",
        28.0,
        0.0020,
        0.55,
        0.66,
        calls=(Call("catalog", "GET /v1/products", 0.3),),
    ),
    Service("shipping", "v2.0.8", 19.0, 0.0018, 0.27, 0.44),
    Service("orders-db", "15.6", 3.0, 0.0001, 0.34, 0.71, 1, datastore=True),
    Service("payments-db", "15.6", 3.5, 0.0001, 0.31, 0.73, 1, datastore=True),
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
