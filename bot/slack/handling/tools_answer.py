"""`/kortex tools`: every tool and how it does, what of the operator's own was not loaded, in Slack's mrkdwn."""

from bot.domain.tool_status import ToolReport, ToolStatus
from bot.slack.text.mrkdwn import escape, visible

_TOOLS = 80  # a private answer of some 10,000 characters; MCP servers may bring hundreds
_NOTES = 20
_NOTE_CHARS = 300


def tools_answer(report: ToolReport) -> str:
    """Tools with trouble first; then what is offered, then what is not."""
    shown = sorted(report.tools, key=_order)[:_TOOLS]
    more = len(report.tools) - len(shown)
    return "\n".join(
        (
            "*Tools* (calls of this process since it started)",
            *map(_line, shown),
            *([f"• and {more} more: `kortex tools` lists them"] if more else []),
            *_notes(report),
            "*Toolsets*",
            *(f"• {escape(each.name)}: {each.as_words()}" for each in report.toolsets),
        )
    )


def _order(tool: ToolStatus) -> tuple[bool, int, str]:
    failed = sum(n for outcome, n in tool.health.outcomes.items() if outcome != "ok")
    return bool(tool.reason), -failed, tool.id


def _line(tool: ToolStatus) -> str:
    return f"• `{escape(visible(tool.id))}` {escape(visible(tool.as_words()))}"


def _notes(report: ToolReport) -> list[str]:
    if not report.notes:
        return []
    told = [f"• {escape(visible(each)[:_NOTE_CHARS])}" for each in report.notes[:_NOTES]]
    more = len(report.notes) - len(told)
    return ["*Your own*", *told, *([f"• and {more} more"] if more else [])]
