"""When a question is about: clock times read in the asker's zone, with what was assumed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tools.time_zones import in_utc, is_zone, zone_of

_BEFORE_CLAIMED: Final = timedelta(minutes=1)  # "about 14:46": what began with it is inside
_AROUND: Final = timedelta(minutes=30)
_LONGEST: Final = timedelta(hours=24)
_DAY: Final = timedelta(days=1)

_CLOCK: Final = r"(\d{1,2})(?:[:.](\d\d))?\s*(am|pm)?"
_BETWEEN: Final = re.compile(rf"\b(?:between|from)\s+{_CLOCK}\s*(?:and|to|until|till|-)\s*{_CLOCK}")
_SINCE: Final = re.compile(
    r"\b(?:since|after|from)\s+(?:about|around|roughly)?\s*(?:yesterday\s+(?:at|around|about)?\s*)?"
    r"(\d{1,2})[:.](\d\d)\s*(am|pm)?"
)
_AT: Final = re.compile(r"\b(?:around|about|at)\s+(?:about\s+)?(\d{1,2})[:.](\d\d)\s*(am|pm)?")
_AT_HOUR: Final = re.compile(r"\b(?:around|about|at)\s+(\d{1,2})()\s*(am|pm)\b")
_LAST: Final = re.compile(r"\b(?:last|past)\s+(?:(\d{1,3})\s*)?(minute|min|m|hour|h)s?\b")
_IN_UTC: Final = re.compile(r"\b(utc|gmt)\b|\d{1,2}[:.]\d\d ?z\b")
_NIGHT: Final = (22, 6)  # o'clock, from and to


@dataclass(frozen=True, slots=True)
class Window:
    """Instants in UTC. `assumed` are words about it for the answer."""

    start: datetime
    end: datetime
    assumed: tuple[str, ...] = ()


def window_in(text: str, now: datetime, zone: str) -> Window | None:
    """What a question in lower case says; None when it says no time.

    `zone` is the asker's, by name, or empty where it is not known: then times are UTC.
    """
    if found := _LAST.search(text):
        number, unit = int(found[1] or 1), found[2]
        length = timedelta(hours=number) if unit.startswith("h") else timedelta(minutes=number)
        return Window(now - min(length, _LONGEST), now)
    told_utc = _IN_UTC.search(text) is not None
    name = zone if is_zone(zone) and not told_utc else "UTC"
    here = now.astimezone(zone_of(name))
    day = here - _DAY if "yesterday" in text else here
    walls = _walls(text, day, here)
    if walls is None:
        return None
    start, end = _past(*walls, now)
    return Window(start, end, () if told_utc else (_said(name, start, end, known=bool(zone)),))


def _said(name: str, start: datetime, end: datetime, *, known: bool) -> str:
    if not known:
        return "times are taken as UTC, your time zone is not known to me"
    if name == "UTC":
        return "times are taken as UTC"
    return f"times are taken as {name}: {start:%H:%M} to {end:%H:%M} UTC"


def _walls(text: str, day: datetime, here: datetime) -> tuple[datetime, datetime] | None:
    """From when to when, as clocks there show it. `day` is the one spoken of, `here` is now."""
    if found := _BETWEEN.search(text):
        start, end = _clock(found.groups()[:3], day), _clock(found.groups()[3:], day)
        if start and end and (found[2] or found[5] or found[3] or found[6]):
            return start, end + _DAY if end <= start else end
    if found := _SINCE.search(text):
        begun = _clock(found.groups(), day)
        if begun:
            return begun - _BEFORE_CLAIMED, max(here, begun) + _DAY  # until now
    if "last night" in text:
        midnight = here.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - _DAY + timedelta(hours=_NIGHT[0]), midnight + timedelta(hours=_NIGHT[1])
    if found := (_AT.search(text) or _AT_HOUR.search(text)):
        at = _clock(found.groups(), day)
        if at:
            return at - _AROUND, at + _AROUND
    return None


def _clock(parts: Sequence[str | None], day: datetime) -> datetime | None:
    hour, minute = int(parts[0] or 0), int(parts[1] or 0)
    if parts[2]:
        hour = hour % 12 + (12 if parts[2] == "pm" else 0)
    if hour > 23 or minute > 59:
        return None
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)


def _past(start: datetime, end: datetime, now: datetime) -> tuple[datetime, datetime]:
    """In UTC, and in the past: a clock time that has not come yet is yesterday's.

    An hour that comes twice is looked at from its first beginning to its last end.
    """
    while in_utc(start)[0] >= now:
        start, end = start - _DAY, end - _DAY
    first, last = in_utc(start)[0], min(in_utc(end)[1], now)
    if last <= first:  # between two times that the clock skipped
        last = min(first + _AROUND, now)
    return max(first, last - _LONGEST), last
