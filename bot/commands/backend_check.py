"""`kortex check` on what tools look at: each backend is asked for something small."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from adapters.errors import AdapterError
from adapters.fault import fault_of
from bot.commands.installation import Asked, Installation
from bot.commands.part_check import MOST_NAMES, sight, words_of
from bot.commands.patience import PROBE_S, within
from bot.reports.finding import Finding
from bot.settings.error_tracker import ErrorsBackend
from bot.settings.named_backends import FAMILIES, Family
from bot.settings.observe import ObserveSettings
from bot.wiring import rules
from bot.wiring.backends import Cluster
from bot.wiring.chosen import named_of
from bot.wiring.observed import Observed
from tools.capabilities import Traces
from tools.cluster_objects import ObjectQuery
from tools.error_issues import ErrorIssues, IssueQuery
from tools.errors import InvalidArguments, ToolError

TOO_MUCH = "this identity may do more than read; give it get and list on what it needs"
UNKNOWN_TRACE_ID = "f" * 32  # nobody's: only whether the backend answers counts
RECENT = timedelta(minutes=5)
UNKNOWN_PRODUCT = "kortex-check"


async def check_observed(asked: Asked) -> Sequence[Finding]:
    """Logs, metrics, traces and errors."""
    of = asked.of
    observe = of.settings.observe
    names = {name for family in FAMILIES for name in named_of(observe, family)}
    async with asyncio.TaskGroup() as group:
        left = {family: _left(observe, family, of.products) for family in FAMILIES}
        default = group.create_task(_seen(observe, of.observed, left, of.now))
        named = {name: group.create_task(_named(asked.of, name)) for name in sorted(names)}
    told = [
        replace(each, part=f"{each.part} {name}")
        for name, task in named.items()
        for each in task.result()
        if each.configured
    ]
    return [*default.result(), *told]


def _left(observe: ObserveSettings, family: Family, products: Sequence[str]) -> Sequence[str]:
    """Those that no named backend of the family has: the default answers for them."""
    taken = {one for table in named_of(observe, family).values() for one in table.products}
    return [one for one in products if one not in taken]


async def _seen(
    observe: ObserveSettings,
    observed: Observed,
    products: Mapping[Family, Sequence[str]],
    now: datetime,
) -> Sequence[Finding]:
    """`products` are those that each family is to know."""
    seen, traces, errors = await asyncio.gather(
        sight(observe, observed, products, now),
        _traces(observe.traces.kind, observed.traces),
        tracked(observe.errors, observed.errors, products["errors"], now),
    )
    return [*seen, traces, errors]


async def _named(of: Installation, name: str) -> Sequence[Finding]:
    """The backends of that name, and nothing of a family that has none."""
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
    return await _seen(view, only, dict.fromkeys(FAMILIES, sorted(products)), of.now)


async def _traces(kind: str, traces: Traces | None) -> Finding:
    if traces is None:
        return Finding("traces", False, "not set in [observe.traces]", configured=False)
    return await _probe("traces", kind, "a trace that nobody has", traces.get(UNKNOWN_TRACE_ID))


async def tracked(
    backend: ErrorsBackend, errors: ErrorIssues | None, products: Sequence[str], now: datetime
) -> Finding:
    """Its projects are listed, and the issues of one of them."""
    if errors is None:
        return Finding("errors", False, "not set in [observe.errors]", configured=False)
    wanted = list(dict.fromkeys([*backend.projects, *products]))
    try:
        async with asyncio.timeout(within(PROBE_S)):
            found = await errors.discover(wanted)
            asked = next(iter(found), None)
            if asked:
                await errors.search(IssueQuery(asked, now - RECENT, now, limit=1))
    except (ToolError, TimeoutError) as error:
        words = f"{backend.kind}: {words_of(error)}"
        return Finding("errors", False, words, fault=fault_of(error))
    without = [one for one in wanted if one not in found]
    none = f"; none of {', '.join(without[:MOST_NAMES])}" if without else ""
    words = (
        f"{len(found)} products of {len(wanted)} have a project{none}"
        if wanted
        else f"{len(found)} projects"
    )
    return Finding("errors", bool(found), f"{backend.kind} answers; {words}", warning=not wanted)


async def check_cluster(asked: Asked) -> Sequence[Finding]:
    """It answers, and this identity may do no more than read."""
    cluster = asked.of.cluster
    if cluster is None:
        unset = asked.of.settings.kubernetes.kind in ("none", "recorded")
        return [Finding("kubernetes", False, "not set in [kubernetes]", False)] if unset else []
    try:
        async with asyncio.timeout(within(PROBE_S)):
            excess = await cluster.api.excess(cluster.reader.namespaces)
            await cluster.reader.table(ObjectQuery("pods"))
    except (ToolError, TimeoutError) as error:
        return [Finding("kubernetes", False, words_of(error)[:200], fault=fault_of(error))]
    if excess:
        return [Finding("kubernetes", False, f"{TOO_MUCH}: {', '.join(excess)}")]
    words = f"answers; this identity can only read, cluster-wide and in {_spaces(cluster)}"
    return [Finding("kubernetes", True, words)]


def _spaces(cluster: Cluster) -> str:
    return ", ".join(dict.fromkeys((cluster.api.namespace, *cluster.reader.namespaces)))


async def check_control_plane(asked: Asked) -> Sequence[Finding]:
    """What a product says of itself; to know none of that name is an answer too."""
    of = asked.of
    if of.settings.control_plane.kind != "http":
        return [Finding("control plane", False, "not set in [control_plane]", configured=False)]
    if of.observed.admin is None:
        return []  # could not be made, and is told so
    product = next(iter(of.products), UNKNOWN_PRODUCT)
    question = of.observed.admin.info(product, of.call)
    return [await _probe("control plane", "http", f"the state of {product}", question)]


async def check_platform(asked: Asked) -> Sequence[Finding]:
    """Each connection is tried: a token that ended is somebody's alone."""
    of, platform = asked.of, asked.of.observed.platform
    kind = of.settings.platform.kind
    if platform is None:
        unset = Finding("platform", False, "not set in [platform]", configured=False)
        return [unset] if kind in ("none", "recorded") else []
    connections = rules.connection_rules(of.settings)
    if not connections:
        is_set = kind != "none"  # else the recorded one, which nobody asked for
        words = "no [platform.connections], so nobody can ask it"
        return [Finding("platform", False, words, configured=is_set)]
    return await asyncio.gather(
        *(
            _probe(
                f"platform {one.id.partition(':')[2]}",
                kind,
                "its figures",
                platform.stats(replace(of.call, connection_ids=frozenset({one.id}))),
            )
            for one in connections
        )
    )


async def check_feeds(asked: Asked) -> Sequence[Finding]:
    """Each of `[deploys]` is asked for what it deployed in the last minutes."""
    of = asked.of
    return await asyncio.gather(
        *(
            _probe(
                f"deploys {name}",
                f"{of.settings.deploys[name].kind}, {project}",
                "its last deploys",
                feed.since(of.now - RECENT),
            )
            for name, feeds in of.feeds.items()
            for project, feed in feeds.items()
        )
    )


async def check_patterns(asked: Asked) -> Sequence[Finding]:
    """The folder is read."""
    folder, patterns = asked.of.settings.patterns.folder, asked.of.observed.patterns
    if patterns is None or not folder:
        return [Finding("patterns", False, "not set in [patterns]", configured=False)]
    return [await _probe("patterns", folder, "a runbook", patterns.search("runbook", 1))]


async def _probe(part: str, kind: str, asked_for: str, question: Awaitable[object]) -> Finding:
    try:
        async with asyncio.timeout(within(PROBE_S)):
            await question
    except InvalidArguments as error:
        return Finding(part, True, f"{kind} answers ({error.message[:80]})")
    except (AdapterError, ToolError, TimeoutError) as error:
        return Finding(part, False, f"{kind}: {words_of(error)}", fault=fault_of(error))
    return Finding(part, True, f"{kind} answers (asked for {asked_for})")
