"""`kortex check`: does what is configured work? Every part is tried, none is changed."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime

from bot.actions.catalog import ActionCatalog, CatalogError
from bot.app import build_base
from bot.commands.alert_check import check_alerts
from bot.commands.mcp_check import report as mcp_report
from bot.commands.part_check import check_audit, check_channels, check_plugins, sight
from bot.commands.provider_check import check_providers
from bot.commands.role_check import check_roles
from bot.ports.failures import StorageUnavailable
from bot.reports.finding import Finding
from bot.reports.tools import toolset_costs
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.settings.reflexes import ReflexAction
from bot.slack.connection.startup import StartupError, check_slack
from bot.slack.received.payloads import SlackIdentity
from bot.store import schema
from bot.store.database import Database
from bot.wiring import rules
from bot.wiring.audit_outlets import check_sinks
from bot.wiring.backends import Cluster
from bot.wiring.observed import Observed, make_observed
from bot.wiring.toolboxes import OwnTools, policy_of
from tools.capabilities import (
    CallContext,
    Patterns,
    Platform,
)
from tools.cluster_objects import ObjectQuery
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.errors import InvalidArguments, ToolError

PROBE_TIMEOUT_S = 10.0
TOO_MUCH = "this identity may do more than read; give it get, list and watch on what it needs"
UNKNOWN_TRACE_ID = "f" * 32  # nobody's: only whether the backend answers counts


async def examine(settings: Settings) -> list[Finding]:
    """Try everything. Raises nothing that an operator can mend: it becomes a finding."""
    slack, identity = await _slack(settings)
    findings = [*_variables(settings), _actions(settings), await check_audit(settings), slack]
    findings += [*await check_sinks(settings), *await check_roles(settings, identity)]
    findings += await check_alerts(settings, identity)
    async with AsyncExitStack() as stack:
        try:
            base = await build_base(settings, stack)
            found = await _database(base.stores.database)
        except (ConfigurationError, StorageUnavailable) as error:
            part = "mcp" if str(error).startswith("mcp.") else "database"
            return [*findings, Finding(part, False, str(error))]
        findings.append(found)
        findings += await check_providers(base.providers, base.rounds.providers)
        observed = make_observed(
            settings, base.clock, base.stores.deploys, base.stores.incidents, stack, base.cluster
        )
        named = dict.fromkeys(one for channel in settings.channels for one in channel.products)
        products = tuple(one for one in named if one != "*")
        findings += await _backends(settings, observed(""), products, base.clock.now())
        findings.append(await _cluster(base.cluster))
        findings += await _platform(settings, observed("").platform, base.clock.now())
        findings.append(await _patterns(settings, observed("").patterns))
        findings += await check_plugins(base.plugins, settings)
        findings += await mcp_report(base.mcp, base.redactor)
        findings += _toolsets((base.plugins, base.mcp), settings)
    return findings


def _variables(settings: Settings) -> list[Finding]:
    """A misspelt one by itself, the others in one row: not every key is wanted everywhere."""
    misspelt = [
        Finding("environment", False, f"{each.key}: {each.as_words()}", warning=True)
        for each in settings.unset
        if each.near
    ]
    others = ", ".join(f"{u.variable} ({u.key})" for u in settings.unset if not u.near)
    empty = [Finding("environment", False, f"no value for {others}", configured=False)]
    return misspelt + (empty if others else [])


async def _database(database: Database) -> Finding:
    at = await schema.standing(database)
    newer = f"schema {at.revision}, expanded by a newer version, which serves this one too"
    said = "schema current" if at.revision == at.newest else newer
    return Finding("database", True, f"{database.dialect}, {said}")


def _toolsets(own: Sequence[OwnTools], settings: Settings) -> list[Finding]:
    """What each toolset costs with all of its backends configured, and what channels bound."""
    tools = [*core_tools(CursorSigner(bytes(32))), *(tool for each in own for tool in each.tools)]
    try:
        policy = policy_of(settings, own)
    except ConfigurationError as error:
        return [Finding("policy", False, str(error))]
    costs = [
        Finding(f"toolset {cost.name}", True, cost.as_words())
        for cost in toolset_costs(tools, policy)
    ]
    return [*costs, *check_channels(settings, policy, tools)]


def _actions(settings: Settings) -> Finding:
    try:
        catalog = ActionCatalog(rules.action_rules(settings))
    except CatalogError as error:
        return Finding("actions", False, str(error))
    names = ", ".join(a.rule.name for a in catalog.all())
    reflexes = sum(isinstance(action, ReflexAction) for action in settings.actions)
    if reflexes:
        names += f"; {reflexes} of them in {settings.reflexes.file}, fired by a Confirm only"
    return Finding("actions", True, names or "none: nothing can be proposed", bool(names))


async def _slack(settings: Settings) -> tuple[Finding, SlackIdentity | None]:
    try:
        identity = await check_slack(rules.slack_access(settings))
    except StartupError as error:
        return Finding("slack", False, str(error)), None
    detail = f"{settings.slack.mode} mode, workspace {identity.team}"
    return Finding("slack", True, detail), identity


async def _backends(
    settings: Settings, observed: Observed, products: Sequence[str], now: datetime
) -> list[Finding]:
    found = await sight(settings.observe, observed, products, now)
    found.append(await _traces(settings, observed))
    return found


async def _cluster(cluster: Cluster | None) -> Finding:
    if cluster is None:
        return Finding("kubernetes", False, "not set in [kubernetes]", configured=False)
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            excess = await cluster.api.excess(cluster.reader.namespaces)
            await cluster.reader.table(ObjectQuery("pods"))
    except (ToolError, TimeoutError) as error:
        return Finding("kubernetes", False, f"{error or 'no answer'}"[:200])
    if excess:
        return Finding("kubernetes", False, f"{TOO_MUCH}: {', '.join(excess)}")
    return Finding(
        "kubernetes",
        True,
        "answers; this identity can only read, cluster-wide and in " + _spaces(cluster),
    )


def _spaces(cluster: Cluster) -> str:
    return ", ".join(dict.fromkeys((cluster.api.namespace, *cluster.reader.namespaces)))


async def _platform(settings: Settings, platform: Platform | None, now: datetime) -> list[Finding]:
    """Each connection is tried: a token that ended is somebody's alone."""
    if platform is None:
        return [Finding("platform", False, "not set in [platform]", configured=False)]
    connections = rules.connection_rules(settings)
    if not connections:
        is_set = settings.platform.kind != "none"  # else the recorded one, which nobody asked for
        words = "no [platform.connections], so nobody can ask it"
        return [Finding("platform", False, words, configured=is_set)]
    call = CallContext(
        actor="operator", team="", channel="", session_id="check", session_name="check",
        turn_id="check", tool_call_id="check", purpose="check", now=now,
    )  # fmt: skip
    return [
        await _probe(
            f"platform {one.id.partition(':')[2]}",
            settings.platform.kind,
            platform.stats(replace(call, connection_ids=frozenset({one.id}))),
        )
        for one in connections
    ]


async def _patterns(settings: Settings, patterns: Patterns | None) -> Finding:
    if patterns is None or not settings.patterns.folder:
        return Finding("patterns", False, "not set in [patterns]", configured=False)
    return await _probe("patterns", settings.patterns.folder, patterns.search("runbook", 1))


async def _traces(settings: Settings, observed: Observed) -> Finding:
    if observed.traces is None:
        return Finding("traces", False, "not set in [observe.traces]", configured=False)
    return await _probe(
        "traces", settings.observe.traces.kind, observed.traces.get(UNKNOWN_TRACE_ID)
    )


async def _probe(part: str, kind: str, question: Awaitable[object]) -> Finding:
    try:
        async with asyncio.timeout(PROBE_TIMEOUT_S):
            await question
    except InvalidArguments as error:
        return Finding(part, True, f"{kind} answers ({error.message[:80]})")
    except (ToolError, TimeoutError) as error:
        return Finding(part, False, f"{kind}: {error or 'no answer'}")
    return Finding(part, True, f"{kind} answers")
