"""What admins are answered in private, in Slack's mrkdwn: `/kortex audit`, `tools` and `freeze`.

Freezing is the one command that does not wait for its audit row: it takes effect first, and the row
is written with the switch as soon as the database can be written.
"""

import re
from collections.abc import Sequence
from datetime import UTC
from typing import Final

from bot.domain.audit import AuditEntry
from bot.domain.provider_status import ProviderStatus
from bot.domain.tool_status import ToolReport, ToolStatus
from bot.ports.audit_log import AuditReader
from bot.ports.failures import StorageUnavailable
from bot.ports.proposals import KillSwitch
from bot.slack.text.mrkdwn import escape, visible

ROWS = 15
_USER_ID = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)
_MAX_WORDS = 160
# The fields that best distinguish rows, in this order, if the row has them.
_TELLING = ("action", "product", "tool", "model", "guard", "verdict", "state", "command", "why")

MAX_REASON: Final = 200
FROZEN = (
    "🧊 Frozen: no action runs, on any replica, until `/kortex freeze off`. "
    "Actions already sent cannot be recalled."
)
FROZEN_HERE = (
    "🧊 Frozen in this process. The database cannot be written now, so no other replica can run an "
    "action either. I keep trying to store it. Only `/kortex freeze off` ends it."
)
LIFTED = "Freeze ended: confirmed actions run again. Quiet hours and freeze windows still apply."
NOT_LIFTED = "Still frozen: the database cannot be written now. Try again later."
UNREADABLE = "I cannot read whether actions are frozen, so none runs for now."
USAGE = (
    "Use `/kortex freeze on [reason]` or `/kortex freeze off`; `/kortex freeze` shows the state."
)


async def audit_answer(audit_log: AuditReader) -> str:
    """The newest rows and the head to compare with. Raises StorageUnavailable."""
    entries = await audit_log.entries(newest=True, limit=ROWS)
    if not entries:
        return "The audit log is empty."
    head = entries[-1]
    return "\n".join(
        (
            f"*Audit log*: {head.seq:,} rows, {_sealed(head)}",
            *_rows(entries),
            "On the host, `kortex audit verify --checkpoint FILE` proves it whole; "
            "`kortex audit export --since 24h` prints it.",
        )
    )


def _sealed(head: AuditEntry) -> str:
    key = f"key `{escape(head.key_id)}`" if head.key_id else "no key"
    return f"head `{escape(head.mac[:16])}`, {key}"


def _rows(entries: Sequence[AuditEntry]) -> list[str]:
    return [
        f"• {each.seq:,} · {each.at:%Y-%m-%d %H:%M:%S} UTC · {escape(each.kind)} · {_about(each)}"
        for each in reversed(entries)
    ]


def _about(entry: AuditEntry) -> str:
    if entry.erased_by is not None:
        return f"erased (row {entry.erased_by:,})"
    told = [str(entry.body[name]) for name in _TELLING if entry.body.get(name)]
    words = escape(visible(", ".join(told))[:_MAX_WORDS])
    return " · ".join(filter(None, (_name(entry.actor), words)))


def _name(actor: str) -> str:
    # A mention in a private answer does not notify, and shows the name people know.
    return f"<@{actor}>" if _USER_ID.fullmatch(actor) else escape(visible(actor))


_TOOLS = 80  # a private answer of some 10,000 characters; MCP servers may bring hundreds
_NOTES = 20
_NOTE_CHARS = 300


def tools_answer(report: ToolReport) -> str:
    """Failing tools first, then the offered ones, then the unavailable ones."""
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


def providers_lines(report: Sequence[ProviderStatus]) -> Sequence[str]:
    lines = (
        f"• {escape(visible(each.name))}: {escape(visible(each.as_words()))}" for each in report
    )
    return ("*Providers*", *lines) if report else ("No provider is configured.",)


async def freeze_answer(switch: KillSwitch, user: str, arguments: str) -> str:
    """Freeze, lift or report, and say the new state."""
    wanted, _, reason = arguments.strip().partition(" ")
    match wanted.casefold():
        case "on":
            stored = await switch.freeze(user, reason.strip()[:MAX_REASON])
            return FROZEN if stored else FROZEN_HERE
        case "off":
            try:
                await switch.lift(user)
            except StorageUnavailable:
                return NOT_LIFTED
            return LIFTED
        case "" | "status":
            return await freeze_state(switch)
        case _:
            return USAGE


async def freeze_state(switch: KillSwitch) -> str:
    """The state of the switch, and who set it, or that it cannot be read."""
    try:
        freeze = await switch.state()
    except StorageUnavailable:
        return UNREADABLE
    if not freeze.on:
        return "Actions are not frozen."
    since = f" since {freeze.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if freeze.at else ""
    why = f": {escape(visible(freeze.reason))}" if freeze.reason else ""
    return f"🧊 Frozen{since} by {_name(freeze.by)}{why}."
