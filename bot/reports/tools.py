"""The operators' view of the tools: the existing ones, the offered ones, their health."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bot.chat.window import BYTES_PER_TOKEN
from bot.domain.tool_status import ToolHealth, ToolReport, ToolsetCost, ToolStatus
from tools.attached import AttachedFile
from tools.capabilities import Capabilities
from tools.catalog import BoundTool, ToolCatalog, missing_capabilities
from tools.contract import AnyTool
from tools.policy import ToolPolicy
from tools.products import Reading

# By capability, the table of kortex.toml that binds it; a tool's own port has [adapters.NAME].
_SETTING = {
    "logs": "[observe.logs]",
    "metrics": "[observe.metrics]",
    "traces": "[observe.traces]",
    "errors": "[observe.errors]",
    "rollouts": "[kubernetes]",
    "kubernetes": "[kubernetes]",
    "offer": "[kubernetes]",
    "admin": "[control_plane]",
    "platform": "[platform]",
    "patterns": "[patterns]",
    "operations": "[[actions]]",
    "proposals": "[[actions]]",
}


@dataclass(frozen=True, slots=True)
class Purpose:
    """An asker with a purpose, in no particular channel."""

    purpose: str
    channel: str = ""
    session_name: str = ""
    connection_ids: frozenset[str] = frozenset()
    products: tuple[str, ...] = ()
    reading: Reading = Reading.ALL
    roles: frozenset[str] = frozenset()
    files: tuple[AttachedFile, ...] = ()


def tool_report(
    tools: Sequence[AnyTool],
    policy: ToolPolicy,
    bound: Capabilities | None,
    health: Mapping[str, ToolHealth],
    *,
    notes: Iterable[str] = (),
) -> ToolReport:
    """`bound` is the configuration, None if unknown; `health` is by tool id, `unknown` for unknown
    names.
    """
    everywhere = replace(policy, sessions={}, channels=(), purposes=frozenset(), roles={})
    catalog = ToolCatalog(tools, everywhere)
    entries = [catalog.get(tool.contract.id) for tool in tools]
    statuses = [_status(entry, everywhere, bound, health) for entry in entries if entry]
    if "unknown" in health:
        made_up = "names invented by a model"
        statuses.append(ToolStatus("unknown", (made_up,), "", health["unknown"]))
    return ToolReport(
        sorted(statuses, key=lambda each: each.id),
        toolset_costs(tools, policy, bound),
        tuple(notes),
    )


def toolset_costs(
    tools: Sequence[AnyTool], policy: ToolPolicy, bound: Capabilities | None = None
) -> tuple[ToolsetCost, ...]:
    """The cost of every toolset, and of all tools together as `all`, for comparison.

    Without restrictions of sessions and channels. `bound` leaves unconfigured tools out.
    """
    everywhere = replace(policy, sessions={}, channels=(), purposes=frozenset(), roles={})
    catalog = ToolCatalog(tools, everywhere, bound)
    everyone = policy.granted_connections
    shown = {
        name: catalog.visible(Purpose(name, connection_ids=everyone)) for name in policy.toolsets
    }
    together = {each.name: each for named in shown.values() for each in named}
    return tuple(
        ToolsetCost(name, len(found), round(sum(d.size_bytes for d in found) / BYTES_PER_TOKEN))
        for name, found in [*shown.items(), ("all", tuple(together.values()))]
    )


def _status(
    entry: BoundTool,
    policy: ToolPolicy,
    bound: Capabilities | None,
    health: Mapping[str, ToolHealth],
) -> ToolStatus:
    contract = entry.contract
    named = tuple(n for n in sorted(policy.toolsets) if policy.allows(contract, Purpose(n)))
    missing = missing_capabilities(contract, bound) if bound else ()
    tables = dict.fromkeys(_SETTING.get(each, f"[adapters.{each}]") for each in missing)
    reason = f"not set: {', '.join(tables)}" if missing else ""
    if not named:
        reason = "no toolset has it, or [policy] denies it"
    elif contract.requires_connection and not policy.granted_connections:
        reason = reason or "not set: [platform.connections]"
    return ToolStatus(contract.id, named, reason, health.get(contract.id, ToolHealth()))
