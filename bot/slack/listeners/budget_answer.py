"""Private reports for admins: `/kortex budget` and `/kortex quality`."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from pydantic import JsonValue

from bot.chat.budget_report import BudgetReport
from bot.domain.feedback import Judged, Opinion
from bot.domain.ids import ALERTS, Person
from bot.ports.feedback import Feedback
from bot.ports.ledger import SpentBy
from bot.slack.roles.channel_access import ChannelAccess
from bot.slack.text.blocks import Block, Part, section
from bot.slack.text.links import remark
from bot.slack.text.mrkdwn import escape, escape_within, visible

_USER_ID = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)
_CHANNEL_ID = re.compile(r"[CG][A-Z0-9]{2,20}", re.ASCII)
_DIRECT_ID = re.compile(r"D[A-Z0-9]{2,20}", re.ASCII)
# A session's id holds its place: team, channel, and when its thread began (seconds since 1970).
_SESSION_ID = re.compile(r"session:[^:]*:([^:]*):(?:(\d{1,11})\.\d*)?", re.ASCII)
_TITLES = {"user": "Person", "channel": "Channel", "provider": "Provider", "session": "Thread"}
_ROWS = 15  # of each kind: a table holds 100 rows
_BAR = 20
_NAME_CHARS = 80


def budget_answer(report: BudgetReport) -> Part:
    """The report as text and as a table, with the same content."""
    lines = [headline(report)]
    for group, title in _TITLES.items():
        rows = report.by[group]
        lines.append(f"*By {title.casefold()}*")
        lines += [_line(row) for row in rows[:_ROWS]] or ["• nothing yet"]
        if len(rows) > _ROWS:
            lines.append(f"• and {len(rows) - _ROWS} more")
    blocks = (section(headline(report)), _table(report)) if any(report.by.values()) else ()
    return Part("\n".join(lines), blocks)


def headline(report: BudgetReport) -> str:
    """The day in a few lines, without who spent it."""
    today, limit = report.today, report.limits.daily_usd_micros
    spent = f"*Today (UTC)*: {dollars(today.used_usd_micros)}"
    pct = report.used_pct
    if pct is None:
        spent += ", no daily limit"
    else:
        full = min(_BAR, _BAR * pct // 100)
        spent += f" of {dollars(limit)} ({pct} %)\n`{'█' * full}{'░' * (_BAR - full)}`"
    parts = [spent, f"At this rate today will cost {dollars(report.projected_usd_micros)}."]
    assumed = today.used_usd_micros - today.spent_usd_micros
    if assumed:
        parts.append(f"{dollars(assumed)} of it is assumed: the price was not known.")
    if today.held_usd_micros:
        parts.append(f"{dollars(today.held_usd_micros)} more is reserved for answers under way.")
    return "\n".join(parts)


def _table(report: BudgetReport) -> Block:
    rows: list[JsonValue] = [[_raw(t) for t in ("", "Who or what", "Cost", "Rounds", "Tokens")]]
    for group, title in _TITLES.items():
        shown = report.by[group][:_ROWS]
        rows.extend([_raw(title), _named(row.name), *map(_raw, _figures(row))] for row in shown)
    figure: JsonValue = {"align": "right"}
    columns: list[JsonValue] = [{}, {"is_wrapped": True}, figure, figure, figure]
    return {"type": "table", "rows": rows, "column_settings": columns}


def _figures(row: SpentBy) -> Iterable[str]:
    unpriced = f" ({row.rounds_unpriced} unpriced)" if row.rounds_unpriced else ""
    return dollars(row.usd_micros), f"{row.rounds}{unpriced}", f"{row.tokens:,}"


def _raw(text: str) -> Block:
    return {"type": "raw_text", "text": text or " "}


def _named(name: str) -> Block:
    place, began = _place_of(name)
    if _USER_ID.fullmatch(name):
        shown: Block = {"type": "user", "user_id": name}
    elif _CHANNEL_ID.fullmatch(place):
        shown = {"type": "channel", "channel_id": place}
    else:
        return _raw(_plain(place) + began)
    elements: list[JsonValue] = [shown]
    if began:
        elements.append({"type": "text", "text": began})
    line: Block = {"type": "rich_text_section", "elements": elements}
    return {"type": "rich_text", "elements": [line]}


def _place_of(name: str) -> tuple[str, str]:
    session = _SESSION_ID.fullmatch(name)
    if session is None:
        return name, ""
    began = f", {datetime.fromtimestamp(int(session[2]), UTC):%H:%M} UTC" if session[2] else ""
    return session[1], began


def _plain(name: str) -> str:
    if name == ALERTS:
        return "alerts"
    return "a direct message" if _DIRECT_ID.fullmatch(name) else visible(name)[:_NAME_CHARS]


def _line(row: SpentBy) -> str:
    rounds = f"{row.rounds} round{'' if row.rounds == 1 else 's'}"
    unpriced = f", {row.rounds_unpriced} without a known price" if row.rounds_unpriced else ""
    return (
        f"• {_name(row.name)}: {dollars(row.usd_micros)}, {rounds}, {row.tokens:,} tokens{unpriced}"
    )


def _name(name: str) -> str:
    # A mention in a private answer does not notify, and shows the name people know.
    place, began = _place_of(name)
    if _USER_ID.fullmatch(name):
        return f"<@{name}>"
    if _CHANNEL_ID.fullmatch(place):
        return f"<#{place}>{began}"
    return escape(_plain(place)) + began


def dollars(usd_micros: int) -> str:
    """`$1.2345`."""
    return f"${usd_micros / 1_000_000:,.4f}"


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
    lines += [_quality_line(row) for row in judged] or ["• no answer was given in 30 days"]
    told = await _reasons(await feedback.reasons(_READ), channel_access, viewer)
    blocks = (section(lines[0]), _quality_table(judged), section("\n".join(told))) if judged else ()
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


def _quality_line(row: Judged) -> str:
    return (
        f"• {_NAMES[row.days]}: {_provider(row.provider)} 👍 {row.up}, 👎 {row.down}, "
        f"of {row.answers:,} answers"
    )


def _quality_table(judged: Sequence[Judged]) -> Block:
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
