"""The time range of a question: clock times in the asker's zone, with the assumptions."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from adapters.llm.triage.lengths import lasting_in
from tools.core.sweep_arguments import LONGEST_WINDOW
from tools.time_zones import in_utc, is_zone, zone_of

USUAL: Final = timedelta(minutes=30)  # looked at where no time is said
BEFORE_CLAIMED: Final = timedelta(minutes=1)  # "about 14:46": what began with it is inside
# A rule fires once its condition has held for some minutes: `for` of Prometheus, usually 5 to 15.
_BEFORE_ALERT: Final = timedelta(minutes=10)
SHORTEST: Final = timedelta(minutes=5)  # fewer samples show no onset
_AROUND: Final = timedelta(minutes=30)
_DAY: Final = timedelta(days=1)

_CLOCK: Final = r"(\d{1,2})(?:[:.](\d\d))?\s*(am|pm)?"
_DAY_OR_ABOUT: Final = r"(?:(?:yesterday|today|about|around)\s+(?:at\s+)?)?"
_BETWEEN: Final = re.compile(
    rf"\b(?:between|from)\s+{_DAY_OR_ABOUT}{_CLOCK}\s*(?:and|to|until|till|-)\s*{_DAY_OR_ABOUT}{_CLOCK}"
)
_WAS_AGO: Final = re.compile(r"\bago\b.*\b(?:was|were)\b|\b(?:was|were)\b[^?]* ago\b")
_FROM: Final = (
    r"\b(?:since|after|from)\s+(?:about|around|roughly)?\s*(?:yesterday\s+(?:at|around|about)?\s*)?"
)
_SINCE: Final = re.compile(rf"{_FROM}(\d{{1,2}})[:.](\d\d)\s*(am|pm)?")
_SINCE_HOUR: Final = re.compile(rf"{_FROM}(\d{{1,2}})()\s*(am|pm)\b")
_AT: Final = re.compile(r"\b(?:around|about|at)\s+(?:about\s+)?(\d{1,2})[:.](\d\d)\s*(am|pm)?")
_AT_HOUR: Final = re.compile(r"\b(?:around|about|at)\s+(\d{1,2})()\s*(am|pm)\b")
_INSTANT: Final = re.compile(
    r"(?<![\d-])([0-9]{4}-[0-9]{2}-[0-9]{2})[t ]([0-9]{2}:[0-9]{2}(?::[0-9]{2})?)(?:\.[0-9]{1,9})?"
    r"(?: ?(z|utc|[+-][0-9]{2}:[0-9]{2})(?![\d:]))?(?![\d:])"
)
_DATE: Final = re.compile(r"(?<![\d-])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![\d-])")
_IN_UTC: Final = re.compile(r"\b(utc|gmt)\b|\d{1,2}[:.]\d\d ?z\b")
_NAMED_HOUR: Final = re.compile(r"\b(?:midnight|noon)\b")
_PART_OF_DAY: Final = re.compile(r"\b(?:this|yesterday|in the) (morning|afternoon|evening)\b")
_HOURS: Final = {"morning": (6, 12), "afternoon": (12, 18), "evening": (18, 24)}
_OF_DAY: Final = re.compile(r"\b(?:today|yesterday)\b")
_NIGHT: Final = (22, 6)  # o'clock, from and to
_GOES_ON: Final = re.compile(r"\bsince (?:yesterday|last night|today|this |tonight|[0-9]{4}-)")
_WEEKDAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SPEAKS_OF_TIME: Final = re.compile(
    rf"\b(?:since(?! when\b)|ago|yesterday|tomorrow|tonight|noon|midnight|o'?clock|[0-9]{{1,2}} ?[ap]m|{_WEEKDAY}"
    r"|(?:last|past|previous|this) (?:night|morning|afternoon|evening|day|week|weekend|month|year|few"
    r"|couple|[0-9]+(?! (?:\w+ )?(?:lines?|logs?|errors?|exceptions?|warnings?|messages?|events?|deploys?)\b))"
    r"|for (?:hours|days|weeks|months|ages|a while|some time)"
    r"|[0-9]+ ?(?:minutes?|mins?|hours?|hrs?|days?|weeks?|months?))\b"
    r"|\b[0-9]{1,2}:[0-9]{2}\b|[0-9]{4}-[0-9]{2}-[0-9]{2}"
)

_Walls = tuple[datetime, datetime]
_Fits = tuple[timedelta, timedelta]  # the shortest and the longest that is looked at


@dataclass(frozen=True, slots=True)
class Window:
    """Instants in UTC. `assumed` are assumptions for the answer.

    `is_exact`: the asker means exactly that; an alert only gives its firing time, and its trouble
    may be older. `is_cut`: the question covers more than can be read. `at`: the named point in
    time, with the window around it.
    """

    start: datetime
    end: datetime
    assumed: tuple[str, ...] = ()
    is_exact: bool = True
    is_cut: bool = False
    at: datetime | None = None


def speaks_of_time(text: str) -> bool:
    """Whether a text in lower case says a time, be it one that can be read or not."""
    return _SPEAKS_OF_TIME.search(text) is not None


def window_in(
    text: str,
    now: datetime,
    zone: str,
    longest: timedelta = LONGEST_WINDOW,
    shortest: timedelta = SHORTEST,
) -> Window | None:
    """The time of a lower-case question; None without a readable one.

    `zone` is the asker's, by name, or empty if unknown: then times are UTC. A range over `longest`
    is cut, one under `shortest` begins earlier, and the answer says so.
    """
    fits = (shortest, longest)
    text = _NAMED_HOUR.sub(lambda found: "00:00" if found[0] == "midnight" else "12:00", text)
    told_utc = _IN_UTC.search(text) is not None
    name = zone if is_zone(zone) and not told_utc else "UTC"
    if instants := _INSTANT.findall(text):
        return _of_instants(text, instants[:2], now, name, fits)
    if (lasting := lasting_in(text)) is not None:
        if lasting.lasts and _WAS_AGO.search(text):
            middle = now - lasting.begin
            return replace(_cut(middle - _AROUND, min(middle + _AROUND, now), fits), at=middle)
        ending = now - lasting.end
        if not lasting.lasts:
            return _cut(now - lasting.begin, ending, fits, keeps_end=True)
        return _cut(now - lasting.begin - BEFORE_CLAIMED, ending, fits)
    here = now.astimezone(zone_of(name))
    dated = _DATE.search(text)
    day = _day(text, dated[0] if dated else "", here)
    walls = _walls(text, day, here, is_dated=dated is not None) if day else None
    if walls is None or (dated and in_utc(walls[0])[0] >= now):
        return None
    found = _cut(*_past(*walls, now), fits, keeps_end=_begins_some_time(text))
    if day and walls == _around(text, day):
        found = replace(found, at=_middle(found))
    said = () if told_utc else (_said(name, found.start, found.end, now, known=bool(zone)),)
    return replace(found, assumed=(*said, *found.assumed))


def _begins_some_time(text: str) -> bool:
    """Whether it goes on since a day, without a time at which it began."""
    began = _SINCE.search(text) or _SINCE_HOUR.search(text)
    return _GOES_ON.search(text) is not None and not began


def _cut(start: datetime, end: datetime, fits: _Fits, *, keeps_end: bool = False) -> Window:
    """What began is looked at from its beginning, of "the last days" the last of them."""
    shortest, longest = fits
    if end - start < shortest:
        words = "five minutes, the shortest time that shows when a change began"
        return Window(end - shortest, end, (words,))
    if end - start <= longest:
        return Window(start, end)
    if keeps_end:
        start = end - longest
    else:
        end = start + longest
    words = (
        f"only {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC, "
        "the longest time that I can check at once"
    )
    return Window(start, end, (words,), is_cut=True)


def _of_instants(
    text: str,
    told: Sequence[tuple[str, str, str]],
    now: datetime,
    zone: str,
    fits: _Fits,
) -> Window | None:
    """As a log, an alert or a tool writes them: one, or from one to another."""
    times = [_instant(*one, zone) for one in told]
    first = times[0]
    if first is None or first >= now:
        return None
    last = times[1] if len(times) > 1 else None
    if last is not None and last > first:
        return _cut(first, min(last, now), fits)
    if re.search(rf"\b(?:since|after|from)\s+{told[0][0]}", text) is None:
        return replace(_cut(first - _AROUND, min(first + _AROUND, now), fits), at=first)
    found = _cut(min(first - _BEFORE_ALERT, now - USUAL), now, fits)
    return replace(found, is_exact=False)


def _instant(date: str, clock: str, offset: str, zone: str) -> datetime | None:
    at_utc = offset in {"z", "utc"}
    try:
        at = datetime.fromisoformat(f"{date}T{clock}{'+00:00' if at_utc else offset}")
    except ValueError:
        return None
    if not 1970 < at.year < 3000:
        return None
    return in_utc(at.replace(tzinfo=zone_of(zone)))[0] if at.tzinfo is None else at.astimezone(UTC)


def _said(name: str, start: datetime, end: datetime, now: datetime, *, known: bool) -> str:
    if not known:
        return "times are in UTC, as your time zone is not known"
    if name == "UTC":
        return "times are in UTC"
    day = "" if start.date() == now.date() else f"{start:%Y-%m-%d} "
    to = "" if start.date() == end.date() else f"{end:%Y-%m-%d} "
    range_utc = f"{day}{start:%H:%M} to {to}{end:%H:%M} UTC"
    return f"your times are in {name}, so this covers {range_utc}"


def _day(text: str, date: str, here: datetime) -> datetime | None:
    if not date:
        return here - _DAY if "yesterday" in text else here
    try:
        day = datetime.fromisoformat(date)
    except ValueError:
        return None
    if day.year <= 1970 or day.date() > here.date():
        return None
    return here.replace(year=day.year, month=day.month, day=day.day)


def _walls(text: str, day: datetime, here: datetime, *, is_dated: bool) -> _Walls | None:
    """From when to when, as clocks there show it. `day` is the one spoken of, `here` is now."""
    if found := _BETWEEN.search(text):
        start, end = _clock(found.groups()[:3], day), _clock(found.groups()[3:], day)
        if start and end and found[6] and not found[3]:  # "between 11 and 1 pm" begins at 11 am
            later = _clock((found[1], found[2], found[6]), day)
            start = later if later and later < end else start
        told = found[2] or found[5] or found[3] or found[6] or is_dated or _OF_DAY.search(text)
        if start and end and told:
            return start, end + _DAY if end <= start else end
    if found := (_SINCE.search(text) or _SINCE_HOUR.search(text)):
        begun = _clock(found.groups(), day)
        if begun:
            return begun - BEFORE_CLAIMED, max(here, begun) + _DAY  # until now
    if "last night" in text:
        midnight = _at_hour(here, 0)
        end = here if _GOES_ON.search(text) else _at_hour(midnight, _NIGHT[1])
        return _at_hour(midnight - _DAY, _NIGHT[0]), end
    if around := _around(text, day):
        return around
    return _part_of_day(text, day, here, is_dated=is_dated)


def _around(text: str, day: datetime) -> _Walls | None:
    found = _AT.search(text) or _AT_HOUR.search(text)
    at = _clock(found.groups(), day) if found else None
    return (at - _AROUND, at + _AROUND) if at else None


def _middle(window: Window) -> datetime | None:
    """The point itself; None for one that comes twice as clocks go back."""
    at = window.start + _AROUND
    return at if at <= window.end <= at + _AROUND else None


def _part_of_day(text: str, day: datetime, here: datetime, *, is_dated: bool) -> _Walls | None:
    """Of a day that is named: all of it, or its morning; None for what has not begun."""
    found = _PART_OF_DAY.search(text)
    if found is not None:
        first, last = _HOURS[found[1]]
    elif "tonight" in text:
        first, last = _HOURS["evening"]
    elif is_dated or _OF_DAY.search(text):
        first, last = 0, 24
    else:
        return None
    start = _at_hour(day, first)
    end = here if _GOES_ON.search(text) else _at_hour(day, last)
    return (start, end) if start < here and end > start else None


def _at_hour(day: datetime, hour: int) -> datetime:
    midnight = day.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + timedelta(hours=hour)


def _clock(parts: Sequence[str | None], day: datetime) -> datetime | None:
    hour, minute = int(parts[0] or 0), int(parts[1] or 0)
    if parts[2]:
        hour = hour % 12 + (12 if parts[2] == "pm" else 0)
    if hour > 23 or minute > 59:
        return None
    return day.replace(hour=hour, minute=minute, second=0, microsecond=0)


def _past(start: datetime, end: datetime, now: datetime) -> _Walls:
    """In UTC, and in the past: a clock time that has not come yet is yesterday's.

    An hour that comes twice is looked at from its first beginning to its last end.
    """
    while in_utc(start)[0] >= now:
        start, end = start - _DAY, end - _DAY
    first, last = in_utc(start)[0], min(in_utc(end)[1], now)
    if last <= first:  # between two times that the clock skipped
        last = min(first + _AROUND, now)
    return first, last
