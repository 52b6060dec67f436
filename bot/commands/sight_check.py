"""What `kortex check` sees of each product: which have logs and metrics, by which labels, which roles."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta

from bot.reports.finding import Finding
from bot.settings.model import ObserveSettings
from bot.wiring.observed import Observed
from tools.capabilities import Interval, Logs, Metrics
from tools.errors import ToolError
from tools.signals import ROLES, Discovered

PROBE_TIMEOUT_S = 10.0
WINDOW = timedelta(hours=1)
MOST_PRODUCTS = 20  # that have a line of their own
MOST_NAMES = 5


async def sight(
    settings: ObserveSettings, observed: Observed, products: Sequence[str], now: datetime
) -> list[Finding]:
    """Nothing matched is not ok: a label or a selector is wrong, or the names are.

    Where no product is named, all that a backend knows are looked at, and none is only odd.
    """
    when = Interval(now - WINDOW, now)
    if observed.logs is None:
        found = [Finding("logs", False, "not set in [observe.logs]", configured=False)]
    else:
        found = [await _logs(settings.logs.kind, observed.logs, products, when)]
    if observed.metrics is None:
        return [*found, Finding("metrics", False, "not set in [observe.metrics]", configured=False)]
    return [*found, *await _metrics(settings.metrics.kind, observed.metrics, products, when)]


async def _logs(kind: str, logs: Logs, products: Sequence[str], when: Interval) -> Finding:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            found = await logs.discover(products, when)
    except (ToolError, TimeoutError) as error:
        return Finding("logs", False, f"{kind}: {error or 'no answer'}")
    words = _matched("logs", found.products, found.without, list(found.labels))
    some = len(found.without) < len(found.products)
    return Finding("logs", some, f"{kind} answers; {words}", warning=not products)


async def _metrics(
    kind: str, metrics: Metrics, products: Sequence[str], when: Interval
) -> list[Finding]:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            found = await metrics.discover(products, when)
    except (ToolError, TimeoutError) as error:
        return [Finding("metrics", False, f"{kind}: {error or 'no answer'}")]
    words = _matched("metrics", found.products, found.without, list(found.labels))
    there = [product for product in found.products if product not in found.without]
    return [
        Finding("metrics", bool(there), f"{kind} answers; {words}", warning=not products),
        *(Finding(f"metrics of {one}", True, _roles(found, one)) for one in there[:MOST_PRODUCTS]),
    ]


def _matched(what: str, products: Sequence[str], without: Sequence[str], labels: list[str]) -> str:
    """`3 products of 4 have logs, by service_name, app; none of cart`."""
    by = f", by {', '.join(labels[:MOST_NAMES])}" if labels else ""
    none = f"; none of {', '.join(without[:MOST_NAMES])}" if without else ""
    return f"{len(products) - len(without)} products of {len(products)} have {what}{by}{none}"


def _roles(found: Discovered, product: str) -> str:
    """`latency http_server_duration_p99, cpu container_cpu_usage_seconds_total; no errors, disk`."""
    best = {role: found.best(product, role) for role in ROLES if role != "other"}
    have = [f"{role} {one.name}" for role, one in best.items() if one is not None]
    missing = [role for role, one in best.items() if one is None]
    others = sum(one.role == "other" for one in found.of(product))
    more = f", {others} others" if others else ""
    return f"{', '.join(have) or 'nothing known'}{more}; no {', '.join(missing) or 'gap'}"
