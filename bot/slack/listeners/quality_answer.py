"""What `/kortex quality` shows: how answers were judged, by provider and period, and why not well."""

from collections.abc import Sequence
from datetime import UTC
from typing import Final

from pydantic import JsonValue

from bot.domain.feedback import Judged, Opinion
from bot.domain.ids import Person
from bot.ports.feedback import Feedback
from bot.slack.roles.channel_access import ChannelAccess
from bot.slack.text.blocks import Block, Part, section
from bot.slack.text.links import remark
from bot.slack.text.mrkdwn import escape_within, visible

PERIODS: Final = (1, 7, 30)  # days
_NAMES: Final = {1: "24 hours", 7: "7 days", 30: "30 days"}
_REASONS: Final = 10  # shown of the latest
_READ: Final = 40
_REASON_CHARS: Final = 160
_PROVIDERS: Final = 15  # of each period: a table holds 100 rows
_NO_PROVIDER: Final = "(none asked)"


async def quality_answer(feedback: Feedback, channel_access: ChannelAccess, viewer: Person) -> Part:
    """Reasons only from channels that the viewer may see into. Raises StorageUnavailable."""
    judged = [row for days in PERIODS for row in (await feedback.judged(days))[:_PROVIDERS]]
    lines = ["*How answers were judged* (by when they were given)"]
    lines += [_line(row) for row in judged] or ["• no answer was given in 30 days"]
    told = await _reasons(await feedback.reasons(_READ), channel_access, viewer)
    blocks = (section(lines[0]), _table(judged), section("\n".join(told))) if judged else ()
    return Part("\n".join([*lines, *told]), blocks)


async def _reasons(
    given: Sequence[Opinion], channel_access: ChannelAccess, viewer: Person
) -> list[str]:
    if not given:
        return ["*Latest reasons*", "• none was given"]
    owners: dict[str, str] = {each.place.channel: each.by for each in given}
    seen = await channel_access.of(viewer, owners, owners)
    shown = [each for each in given if each.place.channel in seen.seen][:_REASONS]
    hidden = sum(each.place.channel not in seen.seen for each in given)
    more = [f"• {hidden} more in channels that you are not in"] if hidden else []
    if seen.unread:
        more = [f"• {hidden} more in channels that you are not in, or that I could not check"]
    return ["*Latest reasons*, without names", *map(_reason, shown), *more]


def _reason(each: Opinion) -> str:
    who = _provider(each.provider)
    said = remark(visible(each.reason), _REASON_CHARS)
    place = "a direct message" if each.place.channel.startswith("D") else f"<#{each.place.channel}>"
    return f"• {each.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC · {who} · {place}: “{said}”"


def _line(row: Judged) -> str:
    return (
        f"• {_NAMES[row.days]}: {_provider(row.provider)} 👍 {row.up}, 👎 {row.down}, "
        f"of {row.answers:,} answers"
    )


def _table(judged: Sequence[Judged]) -> Block:
    head: list[JsonValue] = [_raw(t) for t in ("Period", "Provider", "👍", "👎", "Answers")]
    rows: list[JsonValue] = [head]
    for row in judged:
        name = row.provider or _NO_PROVIDER
        cells = (_NAMES[row.days], name, f"{row.up}", f"{row.down}", f"{row.answers:,}")
        rows.append([_raw(visible(cell)[:80]) for cell in cells])
    figure: JsonValue = {"align": "right"}
    return {"type": "table", "rows": rows, "column_settings": [{}, {}, figure, figure, figure]}


def _provider(name: str) -> str:
    return escape_within(visible(name), 60) if name else _NO_PROVIDER


def _raw(text: str) -> Block:
    return {"type": "raw_text", "text": text or " "}
