"""`kortex check` on `verify_metric`: an action whose metric has no data can never be told to have helped."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from bot.actions.catalog import ActionRule
from bot.commands.part_check import MOST_NAMES
from bot.commands.patience import PROBE_S, within
from bot.reports.finding import Finding
from tools.capabilities import Interval, MetricQuery, Metrics
from tools.errors import ToolError
from tools.signals import Discovered

RECENT: Final = timedelta(minutes=30)
MOST_ACTIONS: Final = 5


async def check_effects(
    actions: Sequence[ActionRule], products: Sequence[str], metrics: Metrics | None, now: datetime
) -> Sequence[Finding]:
    """A warning for each of the first `MOST_ACTIONS` whose metric no product of it with metrics has.

    A backend that does not answer is told elsewhere.
    """
    verified = [one for one in actions if one.verify_metric][:MOST_ACTIONS]
    own = [each for each in products if any(one.fits(each) for one in verified)]
    if metrics is None or not own:
        return []
    when = Interval(now - RECENT, now)
    try:
        async with asyncio.timeout(within(PROBE_S)):
            known = await metrics.discover(own, when)
            found = await asyncio.gather(*(_unread(one, known, metrics, when) for one in verified))
    except (ToolError, TimeoutError):
        return []
    return [one for one in found if one is not None]


async def _unread(
    rule: ActionRule, known: Discovered, metrics: Metrics, when: Interval
) -> Finding | None:
    own = (one for one in known.products if rule.fits(one))
    product = next((one for one in own if known.of(one)), None)
    if product is None:
        return None
    read = await metrics.query_range(MetricQuery(product, rule.verify_metric, when))
    if any(value is not None for one in read.series for _, value in one.points):
        return None
    names = ", ".join(one.name for one in known.of(product)[:MOST_NAMES])
    words = (
        f"{rule.name}: verify_metric {rule.verify_metric}: no data of {product} in the last half "
        f"hour; its metrics are {names}"
    )
    mend = "Set verify_metric to the name of a metric that `kortex check` lists for the product."
    return Finding("actions", False, words, warning=True, mend=mend)
