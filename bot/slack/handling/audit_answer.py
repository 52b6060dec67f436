"""`/kortex audit`: where the trail stands and what was written last, in Slack's mrkdwn."""

import re
from collections.abc import Sequence

from bot.domain.audit import TrailEntry
from bot.ports.trail import Trail
from bot.slack.text.mrkdwn import escape, visible

ROWS = 15
_USER_ID = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)
_MAX_WORDS = 160
# What tells one row from another at a glance, in this order, if the row has it.
_TELLING = ("action", "product", "tool", "model", "guard", "verdict", "state", "command", "why")


async def audit_answer(trail: Trail) -> str:
    """The newest rows and the head to compare with. Raises StorageUnavailable."""
    entries = await trail.entries(newest=True, limit=ROWS)
    if not entries:
        return "The audit trail is empty."
    head = entries[-1]
    return "\n".join(
        (
            f"*Audit trail*: {head.seq:,} rows, {_sealed(head)}",
            *_rows(entries),
            "On the host, `kortex audit verify --checkpoint FILE` proves it whole; "
            "`kortex audit export --since 24h` prints it.",
        )
    )


def _sealed(head: TrailEntry) -> str:
    key = f"key `{escape(head.key_id)}`" if head.key_id else "no key"
    return f"head `{escape(head.mac[:16])}`, {key}"


def _rows(entries: Sequence[TrailEntry]) -> list[str]:
    return [
        f"• {each.seq:,} · {each.at:%Y-%m-%d %H:%M:%S} UTC · {escape(each.kind)} · {_about(each)}"
        for each in reversed(entries)
    ]


def _about(entry: TrailEntry) -> str:
    if entry.erased_by is not None:
        return f"erased (row {entry.erased_by:,})"
    told = [str(entry.body[name]) for name in _TELLING if entry.body.get(name)]
    words = escape(visible(", ".join(told))[:_MAX_WORDS])
    return " · ".join(filter(None, (_name(entry.actor), words)))


def _name(actor: str) -> str:
    # A mention in a private answer notifies nobody and shows the name people know.
    return f"<@{actor}>" if _USER_ID.fullmatch(actor) else escape(visible(actor))
