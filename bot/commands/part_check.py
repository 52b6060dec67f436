"""`kortex check` on parts: does the trail hold, are plugins there, what do a channel's products bound?"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from adapters.errors import AdapterError
from adapters.plugins.tool import PluginTool
from bot.domain.channel import ChannelRule
from bot.ports.failures import StorageUnavailable
from bot.reports.finding import Finding
from bot.reports.tools import Purpose
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.wiring import rules
from bot.wiring.plugins import Plugins
from bot.wiring.trail import verified
from tools.contract import AnyTool
from tools.policy import ToolPolicy
from tools.products import Reading

PROBE_S = 5.0


async def check_plugins(plugins: Plugins, settings: Settings) -> list[Finding]:
    """A connection is made and nothing is asked: `kortex check --plugin FILE` does that."""
    if not settings.plugins.folder:
        return [Finding("plugins", False, "not set in [plugins]", configured=False)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_finding(tool)) for tool in plugins.tools]
    bad = [
        Finding(f"plugin {Path(problem.file).name}", False, str(problem))
        for problem in plugins.problems
    ]
    found = [*(task.result() for task in tasks), *bad]
    return found or [Finding("plugins", True, f"none in {settings.plugins.folder}")]


async def _finding(tool: PluginTool) -> Finding:
    manifest = tool.manifest
    where = f"{manifest.endpoint.method} {urlsplit(manifest.endpoint.url).netloc}"
    try:
        async with asyncio.timeout(PROBE_S):
            await tool.reach()
    except (AdapterError, TimeoutError) as error:
        why = f"unreachable, {error or f'no answer within {PROBE_S:.0f} s'}"
        return Finding(f"plugin {manifest.name}", False, f"{where}: {why}")
    sessions = ", ".join(manifest.allowed_sessions)
    return Finding(f"plugin {manifest.name}", True, f"{where} is there, sessions {sessions}")


async def check_audit(settings: Settings) -> Finding:
    """The key, and whether all that was written so far holds."""
    keys = rules.audit_keys(settings)
    if not keys.keyed:
        weak = (
            "no [audit] key: the chain finds accidents, not forgery by who can write the database"
        )
        return Finding("audit", False, weak, configured=False)
    detail = f"sealed with the key {settings.audit.key_id!r}"
    try:
        found = await verified(settings)
    except (ConfigurationError, StorageUnavailable) as error:
        return Finding("audit", False, f"{detail}; the trail could not be read: {error}")
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
    return [
        Finding(f"channel {rule.match}", True, _words(rule, _untold(rule, policy, tools)))
        for rule in rules.channel_rules(settings)
    ]


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
