"""Alerts in Slack: the message that opens their thread, and the line about their end.

A sender's text is one escaped line with inert addresses: no mention, no link, no button.
"""

from collections.abc import Iterator
from datetime import datetime

from bot.domain.alerts import AlertState, AlertThread, Investigation, ListedAlert
from bot.domain.ids import MessageTs, Place
from bot.ports.alerts import AlertSurface
from bot.slack.delivery.outbox import Outbox, note_mark
from bot.slack.text.blocks import Block, Part, context, section
from bot.slack.text.limits import SECTION_CHARS
from bot.slack.text.links import remark
from bot.slack.text.mrkdwn import inline

# The message is looked for from this long before it was wanted, by our clock against Slack's.
_CLOCK_SKEW_S = 3_600
_TITLE_CHARS = 150
_VALUE_CHARS = 60
_LABELS = ("alertname", "severity", "service", "instance", "pod", "namespace", "cluster", "urgency")


class AlertPosts(AlertSurface):
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox

    async def open_alerts(
        self, thread: AlertThread, place: Place, *, may_be_there: bool
    ) -> MessageTs:
        """Looked for first where an earlier try may have posted it."""
        mark = note_mark(f"alert:{thread.id}")
        if may_be_there:
            oldest = f"{thread.opened_at.timestamp() - _CLOCK_SKEW_S:.6f}"
            found = await self._outbox.find(place, mark, oldest)
            if found:
                return found[0]
        return await self._outbox.post(place, opening(thread), mark)

    async def take_back(self, place: Place, ts: MessageTs) -> None:
        """One that is gone already is fine."""
        await self._outbox.delete(place.channel, ts)

    async def update_alerts(self, thread: AlertThread, place: Place, ts: MessageTs) -> None:
        """Edit the message, which notifies no one."""
        await self._outbox.scheduler.edit_permit()
        await self._outbox.edit(place.channel, ts, opening(thread))

    async def tell_end(self, thread: AlertThread, place: Place, *, may_be_there: bool) -> MessageTs:
        """Posted the first time, edited from then on."""
        mark = note_mark(f"alert:{thread.id}:end")
        ts = thread.note_ts
        if ts is None and may_be_there:
            ts = (await self._outbox.find(place, mark)).get(0)
        if ts is None:
            return await self._outbox.post(place, ending(thread), mark)
        await self._outbox.scheduler.edit_permit()
        await self._outbox.edit(place.channel, ts, ending(thread))
        return ts


def opening(thread: AlertThread) -> Part:
    """The message: what fires and since when, as far as it fits, and how many alerts are left out."""
    head = _head(thread)
    blocks: list[Block] = [section(f"*{head}*\n{_counts(thread)}")]
    lines = _within(SECTION_CHARS, thread)
    if lines:
        blocks.append(section(lines))
    blocks.append(context(*_small_print(thread)))
    return Part(head, tuple(blocks))


def ending(thread: AlertThread) -> Part:
    if thread.resolved_at is not None:
        began = thread.since if thread.since < thread.resolved_at else thread.opened_at
        # A clock that jumped back makes an end before the beginning.
        minutes = max(0, round((thread.resolved_at - began).total_seconds() / 60))
        whole = "The alert is" if thread.total == 1 else f"All {thread.total} alerts are"
        lasted = f"{minutes} min" if minutes else "less than a minute"
        text = f"✅ {whole} resolved since {_clock(thread.resolved_at, thread.heard_at)}, after {lasted}."
    else:
        text = f"🔴 {_count(thread.firing)} firing again. Resolved {_times(thread.ends)} before."
    return Part(text, (section(text),))


def _head(thread: AlertThread) -> str:
    sign = "✅" if thread.resolved_at is not None else "🔴"
    if thread.is_overflow or not thread.listed:
        return f"{sign} Too many alerts for new threads"
    title = remark(thread.listed[0].title, _TITLE_CHARS)
    product = remark(thread.product, _VALUE_CHARS)
    return f"{sign} {product}: {title}" if product else f"{sign} {title}"


def _counts(thread: AlertThread) -> str:
    resolved = thread.total - thread.firing
    parts = [f"{_count(thread.firing)} firing" if thread.firing else ""]
    parts.append(f"{resolved} resolved" if resolved else "")
    if thread.firing:
        parts.append(f"since {_clock(thread.since, thread.heard_at)}")
    elif thread.resolved_at is not None:
        parts.append(f"since {_clock(thread.resolved_at, thread.heard_at)}")
    return ", ".join(part for part in parts if part)


def _within(room: int, thread: AlertThread) -> str:
    kept: list[str] = []
    for line in (_line(each, thread.heard_at) for each in thread.listed):
        if sum(map(len, kept)) + len(line) + len(kept) + 40 > room:
            break
        kept.append(line)
    more = thread.total - len(kept)
    return "\n".join([*kept, *([f"and {more} more"] if more else [])])


def _line(alert: ListedAlert, today: datetime) -> str:
    sign = "🔴" if alert.state is AlertState.FIRING else "✅"
    labels = " ".join(
        f"{name}={inline(alert.labels[name], _VALUE_CHARS)}"
        for name in _LABELS
        if alert.labels.get(name)
    )
    named = f"  `{labels}`" if labels else ""
    again = f", fired {_times(alert.fires)}" if alert.fires > 1 else ""
    title = remark(alert.title, _TITLE_CHARS)
    return f"{sign} {title}{named}  since {_clock(alert.since, today)}{again}"


def _small_print(thread: AlertThread) -> Iterator[str]:
    if thread.is_overflow:
        yield "This rule reached its limit of threads per hour. The other alerts are here."
    if thread.investigation is Investigation.LEFT_OUT:
        yield f"Not investigated: {thread.left_out}. Mention me here to ask."
    if thread.repeats:
        yield f"Repeated {_times(thread.repeats)}, last {_clock(thread.heard_at, thread.heard_at)}"
    yield f"Alert rule {inline(thread.rule, _VALUE_CHARS)}"


def _count(number: int) -> str:
    return "1 alert" if number == 1 else f"{number} alerts"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _clock(at: datetime, today: datetime) -> str:
    return f"{at:%H:%M} UTC" if at.date() == today.date() else f"{at:%Y-%m-%d %H:%M} UTC"
