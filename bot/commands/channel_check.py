"""`kortex check` on channels: what each one's products bound, and of which tools it cannot be told."""

from collections.abc import Sequence
from dataclasses import replace

from bot.domain.channel import ChannelRule
from bot.reports.finding import Finding
from bot.reports.tools import Purpose
from bot.settings.model import Settings
from bot.wiring import rules
from tools.contract import AnyTool
from tools.policy import ToolPolicy
from tools.products import Reading


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
