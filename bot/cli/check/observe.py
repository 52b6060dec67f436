"""`kortex check` on logs, metrics, traces and errors: each backend is asked for something small."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from bot.app.backend_selection import Observed, named_of
from bot.cli.check import time_budget
from bot.cli.check.backends import RECENT, UNKNOWN_PRODUCT, answers
from bot.cli.check.installation import Installation, InstallationProbe
from bot.cli.check.time_budget import failed, unset
from bot.reports.finding import Finding
from bot.settings.error_tracker import ErrorsBackend
from bot.settings.named_backends import FAMILIES, Family
from bot.settings.observe import ObserveSettings
from tools.capabilities import Interval, LogQuery, Logs, Metrics, Traces
from tools.error_issues import ErrorIssues, IssueQuery
from tools.errors import InvalidArguments, ToolError
from tools.signals import ROLES, Discovered

UNKNOWN_TRACE_ID = "f" * 32  # an unused id: only a response matters
WINDOW = timedelta(hours=1)
MOST_PRODUCTS = 20  # that have a line of their own
MOST_NAMES = 5
MOST_TOGETHER = 3  # products named in front of a line


async def check_observed(asked: InstallationProbe) -> Sequence[Finding]:
    of = asked.of
    observe = of.settings.observe
    names = {name for family in FAMILIES for name in named_of(observe, family)}
    async with asyncio.TaskGroup() as group:
        left = {family: _left(observe, family, of.products) for family in FAMILIES}
        default = group.create_task(_sight_findings(observe, of.observed, left, of.now))
        named = {name: group.create_task(_named(asked.of, name)) for name in sorted(names)}
    told = [
        replace(each, part=f"{each.part} {name}")
        for name, task in named.items()
        for each in task.result()
        if each.configured
    ]
    return [*default.result(), *told]


def _left(observe: ObserveSettings, family: Family, products: Sequence[str]) -> Sequence[str]:
    """The products without a named backend in this family: the default backend serves them."""
    taken = {one for table in named_of(observe, family).values() for one in table.products}
    return [one for one in products if one not in taken]


async def _sight_findings(
    observe: ObserveSettings,
    observed: Observed,
    products: Mapping[Family, Sequence[str]],
    now: datetime,
) -> Sequence[Finding]:
    seen, traces, errors = await asyncio.gather(
        matched_products(observe, observed, products, now),
        _traces(observe.traces.kind, observed.traces),
        tracked(observe.errors, observed.errors, products["errors"], now),
    )
    return [*seen, traces, errors]


async def _named(of: Installation, name: str) -> Sequence[Finding]:
    seen, observe = of.observed_as(name), of.settings.observe
    only = Observed(
        logs=seen.logs if name in observe.logs.named else None,
        metrics=seen.metrics if name in observe.metrics.named else None,
        traces=seen.traces if name in observe.traces.named else None,
        errors=seen.errors if name in observe.errors.named else None,
    )
    tables = {family: named_of(observe, family).get(name) for family in FAMILIES}
    view = observe.model_copy(update={f: table for f, table in tables.items() if table})
    products = {p for table in tables.values() if table for p in table.products}
    return await _sight_findings(view, only, dict.fromkeys(FAMILIES, sorted(products)), of.now)


async def _traces(kind: str, traces: Traces | None) -> Finding:
    if traces is None:
        return unset("traces", "[observe.traces]")
    return await answers("traces", kind, "an unknown trace", partial(traces.get, UNKNOWN_TRACE_ID))


async def tracked(
    backend: ErrorsBackend, errors: ErrorIssues | None, products: Sequence[str], now: datetime
) -> Finding:
    """Its projects are listed, and the issues of one of them."""
    if errors is None:
        return unset("errors", "[observe.errors]")
    wanted = list(dict.fromkeys([*backend.projects, *products]))
    try:
        async with asyncio.timeout(time_budget.within(time_budget.PROBE_S)):
            found = await errors.discover(wanted)
            asked = next(iter(found), None)
            if asked:
                await errors.search(IssueQuery(asked, now - RECENT, now, limit=1))
    except (ToolError, TimeoutError) as error:
        return failed("errors", error, f"{backend.kind}: ")
    without = [one for one in wanted if one not in found]
    none = f"; none of {', '.join(without[:MOST_NAMES])}" if without else ""
    words = (
        f"{len(found)} of {len(wanted)} products have a project{none}"
        if wanted
        else f"{len(found)} projects"
    )
    return Finding("errors", bool(found), f"{backend.kind} answers; {words}", warning=not wanted)


async def matched_products(
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
        return unset("logs", "[observe.logs]")
    try:
        async with asyncio.timeout(time_budget.within(time_budget.PROBE_S)):
            found = await logs.discover(products, when)
            nobody = bool(products) and len(found.without) == len(found.products)
            there = (await logs.discover((), when)).products if nobody else ()
            if len(found.without) == len(found.products):
                await _check_query(logs, next(iter(products), UNKNOWN_PRODUCT), when)
    except (ToolError, TimeoutError) as error:
        return failed("logs", error, f"{kind}: ")
    words = _matched("logs", found.products, found.without, list(found.labels)) + _known(there)
    some = len(found.without) < len(found.products)
    mend = "" if some else _elsewhere("logs")
    return Finding("logs", some, f"{kind} answers; {words}", warning=not products, mend=mend)


async def _check_query(logs: Logs, product: str, when: Interval) -> None:
    """Read one line. Refused labels look like no labels, but a refused query is an error."""
    with suppress(InvalidArguments):  # the backend answered: it has no such product
        await logs.query(LogQuery(product, when, limit=1))


async def _metrics(
    kind: str, metrics: Metrics | None, products: Sequence[str], when: Interval
) -> list[Finding]:
    if metrics is None:
        return [unset("metrics", "[observe.metrics]")]
    try:
        async with asyncio.timeout(time_budget.within(time_budget.PROBE_S)):
            found = await metrics.discover(products, when)
            nobody = bool(products) and len(found.without) == len(found.products)
            known = (await metrics.discover((), when)).products if nobody else ()
    except (ToolError, TimeoutError) as error:
        return [failed("metrics", error, f"{kind}: ")]
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
    alike: dict[str, list[str]] = {}
    for one in products:
        alike.setdefault(_roles(found, one), []).append(one)
    for roles, of in alike.items():
        more = f" and {len(of) - MOST_TOGETHER} more" if len(of) > MOST_TOGETHER else ""
        yield Finding(f"metrics of {', '.join(of[:MOST_TOGETHER])}{more}", True, roles)


def _elsewhere(family: Family) -> str:
    return (
        f"For products in another store, add [observe.{family}.NAME] with them "
        "(docs/backends.md). For another label, set [observe] product_labels."
    )


def _matched(what: str, products: Sequence[str], without: Sequence[str], labels: list[str]) -> str:
    by = f", by {', '.join(labels[:MOST_NAMES])}" if labels else ""
    none = f"; none of {', '.join(without[:MOST_NAMES])}" if without else ""
    return f"{len(products) - len(without)} of {len(products)} products have {what}{by}{none}"


def _known(products: Sequence[str]) -> str:
    more = ", ..." if len(products) > MOST_PRODUCTS else ""
    return f"; it has {', '.join(products[:MOST_PRODUCTS])}{more}" if products else ""


def _roles(found: Discovered, product: str) -> str:
    best = {role: found.best(product, role) for role in ROLES if role != "other"}
    have = [f"{role} {one.name}" for role, one in best.items() if one is not None]
    missing = [role for role, one in best.items() if one is None]
    others = sum(one.role == "other" for one in found.of(product))
    more = f", {others} others" if others else ""
    return f"{', '.join(have) or 'nothing known'}{more}; no {', '.join(missing) or 'gap'}"
