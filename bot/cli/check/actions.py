"""`kortex check` on actions: the declared ones, where orders go, and whether an effect can be measured.

No order is sent.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from adapters.http.client import reach_alone
from adapters.llm.triage.case import ROLLBACK_ACTION
from adapters.llm.triage.provider import NAME as TRIAGE
from bot.actions.catalog import ActionCatalog, ActionRule, CatalogError
from bot.app import rules
from bot.app.http_access import plane_host
from bot.cli.check import time_budget
from bot.cli.check.backends import REACHED, reached
from bot.cli.check.installation import InstallationProbe
from bot.cli.check.observe import MOST_NAMES
from bot.cli.check.time_budget import probed
from bot.reports.finding import Finding
from bot.settings.actions import ActionSettings
from bot.settings.model import ControlPlaneSettings, Settings
from bot.settings.reflexes import ReflexAction
from tools.capabilities import Interval, MetricQuery, Metrics
from tools.errors import ToolError
from tools.signals import Discovered

RECENT: Final = timedelta(minutes=30)
MOST_ACTIONS: Final = 5


async def check_actions(asked: InstallationProbe) -> Sequence[Finding]:
    """The declared actions, a connection to each host of theirs, and the metrics of their effects."""
    of = asked.of
    executors, effects = await asyncio.gather(
        _executors(of.settings),
        check_effects(rules.action_rules(of.settings), of.products, of.observed.metrics, of.now),
    )
    return [*declared(of.settings), *executors, *effects]


def declared(settings: Settings) -> Sequence[Finding]:
    """Which actions may be proposed, and whether triage would propose one. Asks no system."""
    try:
        catalog = ActionCatalog(rules.action_rules(settings))
    except CatalogError as error:
        return [Finding("actions", False, str(error))]
    own = [each.rule.name for each in catalog.all()]
    names = ", ".join(own)
    reflexes = sum(isinstance(action, ReflexAction) for action in settings.actions)
    if reflexes:
        names += f"; {reflexes} of them in {settings.reflexes.file}, fired only by Confirm"
    found = [Finding("actions", True, names or "none: nothing can be proposed", bool(names))]
    if own and settings.llm.default_provider == TRIAGE and ROLLBACK_ACTION not in own:
        words = f"triage proposes only {ROLLBACK_ACTION}, but no action has that name"
        mend = f"Name your rollback action {ROLLBACK_ACTION}, or set a model as default_provider."
        found.append(Finding("actions of triage", False, words, warning=True, mend=mend))
    return found


async def _executors(settings: Settings) -> Sequence[Finding]:
    hosts: dict[str, list[str]] = {}
    for action in settings.actions:
        for url in _addresses(action):
            parts = urlsplit(url)
            names = hosts.setdefault(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", [])
            names += [] if action.name in names else [action.name]
    plane = settings.control_plane
    return await asyncio.gather(
        *(
            probed(
                f"actions at {host}", partial(_reached, plane, host), after=f": {', '.join(names)}"
            )
            for host, names in hosts.items()
        )
    )


async def _reached(plane: ControlPlaneSettings, host: str) -> str:
    name = urlsplit(host).hostname or ""
    if name == plane_host(plane):
        return await reached(plane, host, "control_plane.info_url")
    await reach_alone(host, name)
    return REACHED


def _addresses(action: ActionSettings) -> Iterator[str]:
    if action.endpoint.kind != "rehearsal":
        yield action.endpoint.url
    yield from (u for u in (action.status_url, action.count_url, action.fingerprint_url) if u)


async def check_effects(
    actions: Sequence[ActionRule], products: Sequence[str], metrics: Metrics | None, now: datetime
) -> Sequence[Finding]:
    """A warning for each of the first `MOST_ACTIONS` actions with a metric that has no data.

    A backend that does not answer has a row of its own.
    """
    verified = [one for one in actions if one.verify_metric][:MOST_ACTIONS]
    own = [each for each in products if any(one.fits(each) for one in verified)]
    if metrics is None or not own:
        return []
    when = Interval(now - RECENT, now)
    try:
        async with asyncio.timeout(time_budget.within(time_budget.PROBE_S)):
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
