"""`kortex check` on parts: does the trail hold, are plugins there, what do channels bound and tools see?"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from adapters.errors import AdapterError
from adapters.fault import fault_of
from adapters.plugins.tool import PluginTool
from bot.commands.patience import PROBE_S, unanswered, within
from bot.domain.channel import ChannelRule
from bot.ports.failures import StorageUnavailable
from bot.reports.finding import Finding
from bot.reports.tools import Purpose
from bot.settings.model import Settings
from bot.settings.named_backends import FAMILIES, Family
from bot.settings.observe import ObserveSettings
from bot.settings.reading import ConfigurationError
from bot.wiring import rules
from bot.wiring.chosen import named_of, picked_words, picks_of
from bot.wiring.observed import Observed
from bot.wiring.plugins import Plugins
from bot.wiring.trail import verified
from tools.capabilities import Interval, Logs, Metrics
from tools.contract import AnyTool
from tools.errors import ToolError
from tools.policy import ToolPolicy
from tools.products import Reading
from tools.signals import ROLES, Discovered

WINDOW = timedelta(hours=1)
MOST_PRODUCTS = 20  # that have a line of their own
MOST_NAMES = 5
MOST_TOGETHER = 3  # products named in front of a line


def words_of(error: Exception) -> str:
    """What to say of a question that failed; one that took too long has no words of its own."""
    return str(error) or unanswered(PROBE_S)


async def check_plugins(plugins: Plugins, settings: Settings) -> list[Finding]:
    """A connection is made and nothing is asked: `kortex check --plugin FILE` does that."""
    if not settings.plugins.folder:
        return [Finding("plugins", False, "not set in [plugins]", configured=False)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_finding(tool)) for tool in plugins.tools]
    found = [*(task.result() for task in tasks), *plugin_problems(plugins)]
    return found or [Finding("plugins", True, f"none in {settings.plugins.folder}")]


def plugin_problems(plugins: Plugins) -> list[Finding]:
    """Each manifest that was not loaded."""
    return [
        Finding(f"plugin {Path(problem.file).name}", False, str(problem))
        for problem in plugins.problems
    ]


async def _finding(tool: PluginTool) -> Finding:
    manifest = tool.manifest
    where = f"{manifest.endpoint.method} {urlsplit(manifest.endpoint.url).netloc}"
    try:
        async with asyncio.timeout(within(PROBE_S)):
            await tool.reach()
    except (AdapterError, TimeoutError) as error:
        words = f"{where}: unreachable, {words_of(error)}"
        return Finding(f"plugin {manifest.name}", False, words, fault=fault_of(error))
    sessions = ", ".join(manifest.allowed_sessions)
    return Finding(f"plugin {manifest.name}", True, f"{where} is there, sessions {sessions}")


async def check_audit(settings: Settings, *, readable: bool = True) -> Finding:
    """The key, and whether all that was written so far holds, where the database is `readable`."""
    keys = rules.audit_keys(settings)
    if not keys.keyed:
        weak = (
            "no [audit] key: the chain finds accidents, not forgery by who can write the database"
        )
        return Finding("audit", False, weak, configured=False)
    detail = f"sealed with the key {settings.audit.key_id!r}"
    if not readable:
        words = f"{detail}; the trail cannot be read: see the database"
        return Finding("audit", False, words, mend="Mend the database first.")
    try:
        found = await verified(settings)
    except (ConfigurationError, StorageUnavailable) as error:
        words = f"{detail}; the trail could not be read: {error}"
        return Finding("audit", False, words, mend="Mend the database first.")
    if found is None:
        return Finding("audit", True, f"{detail}; the trail is empty")
    if found.bad is not None:
        what = f"the trail does not hold at row {found.bad.seq}: {found.bad.reason}"
        return Finding("audit", False, f"{what}; see `kortex audit verify`")
    return Finding("audit", True, f"{detail}; {found.rows} rows hold")


def check_channels(
    settings: Settings, policy: ToolPolicy, tools: Sequence[AnyTool]
) -> list[Finding]:
    """One finding a channel's rule; what is not bounded is said, never an error."""
    found = []
    several = any(named_of(settings.observe, family) for family in FAMILIES)
    for rule in rules.channel_rules(settings):
        looks_at = picks_of(settings.observe, rule)
        words = _words(rule, _untold(rule, policy, tools))
        words += f"; looks at {picked_words(settings.observe, looks_at)}" if several else ""
        known = looks_at.are_known
        found.append(Finding(f"channel {rule.match}", known, words, warning=not known))
    return found


def _untold(rule: ChannelRule, policy: ToolPolicy, tools: Sequence[AnyTool]) -> list[str]:
    asking = Purpose(rule.toolset, rule.match, connection_ids=policy.granted_connections)
    everywhere = replace(policy, sessions={})
    anywhere = [tool.contract for tool in tools if everywhere.allows(tool.contract, asking)]
    return sorted(each.short_name for each in anywhere if not each.products.can_be_told)


def _words(rule: ChannelRule, untold: Sequence[str]) -> str:
    if not rule.products:
        return "no products set: proposals and tools may be about any product"
    own = ", ".join(rule.products)
    match rule.reading:
        case Reading.ALL:
            return f"proposals only for {own}; reading = all: tools read every product"
        case Reading.STRICT:
            without = f"; not offered: {', '.join(untold)}" if untold else ""
            return f"proposals and tools only for {own}{without}"
        case Reading.PRODUCTS:
            blind = f"; cannot tell whose data these read: {', '.join(untold)}"
            more = f"{blind} (reading = strict denies them)"
            return f"proposals and tools only for {own}{more if untold else ''}"


async def sight(
    settings: ObserveSettings,
    observed: Observed,
    products: Mapping[Family, Sequence[str]],
    now: datetime,
) -> list[Finding]:
    """Nothing matched is not ok: a label or a selector is wrong, or the names are.

    Where no product is named for a family, all that its backend knows are looked at, and none is
    only odd.
    """
    when = Interval(now - WINDOW, now)
    logs, metrics = await asyncio.gather(
        _logs(settings.logs.kind, observed.logs, products["logs"], when),
        _metrics(settings.metrics.kind, observed.metrics, products["metrics"], when),
    )
    return [logs, *metrics]


async def _logs(kind: str, logs: Logs | None, products: Sequence[str], when: Interval) -> Finding:
    if logs is None:
        return Finding("logs", False, "not set in [observe.logs]", configured=False)
    try:
        async with asyncio.timeout(within(PROBE_S)):
            found = await logs.discover(products, when)
            nobody = bool(products) and len(found.without) == len(found.products)
            there = (await logs.discover((), when)).products if nobody else ()
    except (ToolError, TimeoutError) as error:
        return Finding("logs", False, f"{kind}: {words_of(error)}", fault=fault_of(error))
    words = _matched("logs", found.products, found.without, list(found.labels)) + _known(there)
    some = len(found.without) < len(found.products)
    mend = "" if some else _elsewhere("logs")
    return Finding("logs", some, f"{kind} answers; {words}", warning=not products, mend=mend)


async def _metrics(
    kind: str, metrics: Metrics | None, products: Sequence[str], when: Interval
) -> list[Finding]:
    if metrics is None:
        return [Finding("metrics", False, "not set in [observe.metrics]", configured=False)]
    try:
        async with asyncio.timeout(within(PROBE_S)):
            found = await metrics.discover(products, when)
            nobody = bool(products) and len(found.without) == len(found.products)
            known = (await metrics.discover((), when)).products if nobody else ()
    except (ToolError, TimeoutError) as error:
        words = f"{kind}: {words_of(error)}"
        return [Finding("metrics", False, words, fault=fault_of(error))]
    words = _matched("metrics", found.products, found.without, list(found.labels)) + _known(known)
    there = [product for product in found.products if product not in found.without]
    mend = "" if there else _elsewhere("metrics")
    return [
        Finding(
            "metrics", bool(there), f"{kind} answers; {words}", warning=not products, mend=mend
        ),
        *_measured(found, there[:MOST_PRODUCTS]),
    ]


def _measured(found: Discovered, products: Sequence[str]) -> Iterator[Finding]:
    """One for all products of the same signals."""
    alike: dict[str, list[str]] = {}
    for one in products:
        alike.setdefault(_roles(found, one), []).append(one)
    for roles, of in alike.items():
        more = f" and {len(of) - MOST_TOGETHER} more" if len(of) > MOST_TOGETHER else ""
        yield Finding(f"metrics of {', '.join(of[:MOST_TOGETHER])}{more}", True, roles)


def _elsewhere(family: Family) -> str:
    return (
        f"Products of another store: name it as [observe.{family}.NAME] with its products "
        "(docs/backends.md). Another label here: name it in [observe] product_labels."
    )


def _matched(what: str, products: Sequence[str], without: Sequence[str], labels: list[str]) -> str:
    """`3 products of 4 have logs, by service_name, app; none of cart`."""
    by = f", by {', '.join(labels[:MOST_NAMES])}" if labels else ""
    none = f"; none of {', '.join(without[:MOST_NAMES])}" if without else ""
    return f"{len(products) - len(without)} products of {len(products)} have {what}{by}{none}"


def _known(products: Sequence[str]) -> str:
    """`; it knows checkout, web`: names to choose from, where none of those named is there."""
    more = ", ..." if len(products) > MOST_PRODUCTS else ""
    return f"; it knows {', '.join(products[:MOST_PRODUCTS])}{more}" if products else ""


def _roles(found: Discovered, product: str) -> str:
    """`latency http_server_duration_p99, cpu container_cpu_usage_seconds_total; no errors, disk`."""
    best = {role: found.best(product, role) for role in ROLES if role != "other"}
    have = [f"{role} {one.name}" for role, one in best.items() if one is not None]
    missing = [role for role, one in best.items() if one is None]
    others = sum(one.role == "other" for one in found.of(product))
    more = f", {others} others" if others else ""
    return f"{', '.join(have) or 'nothing known'}{more}; no {', '.join(missing) or 'gap'}"
