"""Time ranges as models and people write them, turned into one absolute half-open interval.

Accepted: `A/B`, `A..B`, `A to B`, `A - B`, `A/PT30M`, `PT30M/B`, `last 30m`, `30m`, `now-1h..now`, and one instant `A`
(from A until now), `14:00-15:00`, `2-3pm`, `today`, `yesterday`, `yesterday 14:00 to 15:00`. An instant is RFC 3339,
`now`, `now-1h`, `now-1d/d`, `-1h`, `1h ago`, a time of day such as `14:00` or `2:30 pm`, with or without a day, or
seconds, milliseconds, microseconds or nanoseconds since 1970.
Months and years are refused: their length is not fixed.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

from tools.capabilities import Interval
from tools.errors import InvalidArguments
from tools.instants import (
    CLOCK,
    FORMS,
    Moment,
    Snapped,
    Wall,
    is_iso_duration,
    length_back,
    parse_duration,
    parse_instant,
    with_snaps,
)

MAX_RANGE: Final = timedelta(days=30)  # Loki's default max_query_length is 30d1h
MAX_AHEAD: Final = timedelta(minutes=10)  # clocks differ; more than this is a mistake
MAX_TEXT_CHARS: Final = 200

_DAY_AND_MINUTE: Final = r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(?::\d\d(?:\.\d{1,9})?)?Z"
_RANGE_IN_UTC: Final = re.compile(f"{_DAY_AND_MINUTE}/{_DAY_AND_MINUTE}", re.ASCII)
_PREFIX: Final = re.compile(r"(?P<open>since )|(?:from|between|at|on) ", re.IGNORECASE)
_WRAPPED: Final = re.compile(r"[\"'`(\[](.*[^\"'`(\[])[\"'`)\]]")
_KEYS: Final = re.compile(
    r"\{? ?[\"']?(?:from|start|start_time|since|begin)[\"']? ?[:=] ?[\"']?(?P<start>[^\"'&;,{}]{1,80}?)[\"']? ?[,;& ] ?"
    r"[\"']?(?:to|end|end_time|until)[\"']? ?[:=] ?[\"']?(?P<end>[^\"'&;,{}]{1,80}?)[\"']? ?\}?",
    re.IGNORECASE,
)
_SEPARATOR: Final = re.compile(r"\.\.\.?|/| (?:to|until|till|and) ", re.IGNORECASE)
# Where no other one is: a dash may also be a minus.
_LOOSE_SEPARATOR: Final = re.compile(r"(?<!now) - | through |, ?", re.IGNORECASE)
# Models write hyphens that do not break, a minus of mathematics, an ellipsis and blanks without width.
_PLAIN: Final = str.maketrans(
    {"\u2010": "-", "\u2011": "-", "\u2212": "-", "\u2026": "..", "\u200b": None, "\ufeff": None}
)
_PRESENT: Final = re.compile(r" (?:the )?present\Z", re.IGNORECASE)
_DASH: Final = re.compile(r" ?[\u2013\u2014] ?")
_ARROW: Final = re.compile(r" ?(?:\u2192|->|=>) ?")
_ZONED_CLOCK: Final = rf"{CLOCK}(?: ?(?:Z|UTC|GMT))?"
# A dash between two times of day. Behind a T, what can be an offset is one.
_CLOCKS: Final = re.compile(
    rf"(?P<start>(?:.*(?: |(?P<iso>[0-9]T)))?(?:{_ZONED_CLOCK}|[0-9]{{1,2}})) ?- ?"
    rf"(?P<end>(?:(?=(?P<offset>(?:0[0-9]|1[0-2]):(?:00|30|45))\Z))?{_ZONED_CLOCK}.*)",
    re.IGNORECASE,
)
_WITH_SECONDS: Final = re.compile(r":[0-9]{2}:[0-9]{2}\Z")
_BARE: Final = re.compile(r"(?:.* )?(?:0?[1-9]|1[0-2])(?::[0-5][0-9])?", re.IGNORECASE)
_MERIDIEM: Final = re.compile(r"\d ?(?P<meridiem>[ap]\.?m\b)", re.IGNORECASE)
# One name has several offsets, or another one in summer.
_NAMED_ZONE: Final = re.compile(
    r"\b(?:[ECMP][SD]?T|CES?T|[BIJ]ST|AE[SD]T|(?:Africa|America|Asia|Atlantic|Australia|Europe|Pacific|US)/\w{2,30})\b"
)
_MONTHS: Final = [
    "jan",
    "feb",
    "mar",
    "apr",
    "may",
    "jun",
    "jul",
    "aug",
    "sep",
    "oct",
    "nov",
    "dec",
]
_WEEKDAYS: Final = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_MONTH: Final = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_WEEKDAY: Final = (
    r"(?:last )?(?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?"
)
_WORDY_DATE: Final = re.compile(
    rf"(?:\b{_WEEKDAY},? )?\b(?:(?P<d1>[0-9]{{1,2}})(?:st|nd|rd|th)? (?P<m1>{_MONTH})|(?P<m2>{_MONTH}) (?P<d2>[0-9]{{1,2}})"
    r"(?:st|nd|rd|th)?(?![0-9:]))(?:,? (?P<y>[0-9]{4})(?![0-9:]))?",
    re.IGNORECASE,
)
_WEEKDAY_ALONE: Final = re.compile(rf"\b{_WEEKDAY}\b", re.IGNORECASE)
_SLASHED_DATE: Final = re.compile(r"\b([0-9]{4})/([0-9]{2})/([0-9]{2})\b")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """`interval` is the parsed range; `assumed` is the assumption made, or empty."""

    interval: Interval
    assumed: str = ""

    @property
    def text(self) -> str:
        return range_text(self.interval)

    @property
    def notes(self) -> list[str]:
        return [self.assumed] if self.assumed else []


def parse_time_range(text: str, now: datetime, longest: timedelta = MAX_RANGE) -> TimeRange:
    """Resolve `text` against `now`, an aware instant. Raises InvalidArguments, never echoing it."""
    plain = " ".join(text.translate(_PLAIN).split())
    cleaned = _PRESENT.sub(" now", _ARROW.sub(" to ", _DASH.sub(" - ", plain)))
    if not cleaned or len(cleaned) > MAX_TEXT_CHARS or not cleaned.isascii():
        raise InvalidArguments(f"time_range: not understood; {FORMS}")
    try:
        start, end, zone_assumed = _ends(cleaned, now.astimezone(UTC))
    except OverflowError:
        raise InvalidArguments("time_range: outside the calendar") from None
    _check(start, end, now, longest)
    return TimeRange(Interval(start, end), "no zone given: UTC assumed" if zone_assumed else "")


def range_text(interval: Interval) -> str:
    return f"{instant_text(interval.start)}/{instant_text(interval.end)}"


def readable_range(text: str) -> str:
    """`2026-04-07 14:00 to 2026-04-07 15:00 UTC` for such a range; other words as they are."""
    return _RANGE_IN_UTC.sub(r"\1 \2 to \3 \4 UTC", text)


def instant_text(at: datetime) -> str:
    """RFC 3339 in UTC; milliseconds only when there are any."""
    at = at.astimezone(UTC)
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def _ends(text: str, now: datetime) -> tuple[datetime, datetime, bool]:
    if _NAMED_ZONE.search(text):
        raise InvalidArguments(
            "time_range: give the zone as UTC or as an offset such as +02:00, not by its name"
        )
    wrapped = _WRAPPED.fullmatch(text)
    text = _dates_in_digits(wrapped[1] if wrapped else text, now)
    if keyed := _KEYS.fullmatch(text):
        return _two_sided(with_snaps(keyed["start"]), with_snaps(keyed["end"]), now)
    prefix = _PREFIX.match(text)
    text = with_snaps(text[prefix.end() :] if prefix else text)
    if (back := length_back(text)) is not None:
        return now - back, now, False
    if sides := _sides(text):
        return _two_sided(*sides, now)
    start = parse_instant(text, now)
    begin, assumed = _resolved(start, now)
    is_day = text.lower() in {"today", "yesterday"} and not (prefix and prefix["open"])
    return begin, min(begin + timedelta(days=1), now) if is_day else now, assumed


def _sides(text: str) -> tuple[str, str] | None:
    sides = _SEPARATOR.split(text, maxsplit=1)
    if len(sides) == 1 and (clocks := _CLOCKS.fullmatch(text)):
        is_offset = clocks["offset"] or _WITH_SECONDS.search(clocks["start"])
        if not (clocks["iso"] and is_offset):
            return clocks["start"], clocks["end"]
    if len(sides) == 1:
        sides = _LOOSE_SEPARATOR.split(text, maxsplit=1)
    return (sides[0].strip(), sides[1].strip()) if len(sides) == 2 else None


def _two_sided(left: str, right: str, now: datetime) -> tuple[datetime, datetime, bool]:
    before, after = _length(left), _length(right)
    if before is not None and after is not None:
        raise InvalidArguments(f"time_range: two durations without an instant; {FORMS}")
    if before is not None:
        end, assumed = _resolved(parse_instant(right, now), now)
        return end - before, end, assumed
    if after is not None:
        start, assumed = _resolved(parse_instant(left, now), now)
        return start, start + after, assumed
    ends = parse_instant(right, now)
    return _between(_left(left, right, ends, now), ends, now)


def _left(left: str, right: str, ends: Moment, now: datetime) -> Moment:
    meridiem = _MERIDIEM.search(right)
    if meridiem is None or not _BARE.fullmatch(left) or not isinstance(ends, Wall):
        return parse_instant(left, now)
    start = parse_instant(f"{left} {meridiem['meridiem']}", now)
    if isinstance(start, Wall) and start.clock >= ends.clock:
        other = "am" if meridiem["meridiem"][0] in "pP" else "pm"
        start = parse_instant(f"{left} {other}", now)
    return start


def _between(left: Moment, right: Moment, now: datetime) -> tuple[datetime, datetime, bool]:
    if isinstance(left, Wall) and isinstance(right, Wall):
        return _two_walls(left, right, now)
    start, start_assumed = _resolved(left, now)
    end, end_assumed = _resolved(right, now)
    if isinstance(left, Snapped) and left == right:  # the whole unit, as Grafana reads it
        end = min(end + left.unit, now)
    return start, end, start_assumed or end_assumed


def _two_walls(left: Wall, right: Wall, now: datetime) -> tuple[datetime, datetime, bool]:
    """Each says for the other what that leaves open: the day, the zone."""
    zone = left.zone or right.zone or UTC
    is_assumed = left.zone is None and right.zone is None
    if left.day is None and right.day is not None:
        end = right.on(right.day, zone)
        start = left.on(right.day, zone)
        return start - timedelta(days=start >= end), end, is_assumed
    start = _latest(left, zone, now)
    end = right.on(start.astimezone(right.zone or zone).date(), zone)
    return start, end + timedelta(days=right.day is None and end <= start), is_assumed


def _resolved(moment: Moment, now: datetime) -> tuple[datetime, bool]:
    if isinstance(moment, Snapped):
        return moment.at, moment.unit >= timedelta(days=1)
    if isinstance(moment, Wall):
        return _latest(moment, UTC, now), moment.zone is None
    return moment, False


def _latest(wall: Wall, zone: tzinfo, now: datetime) -> datetime:
    at = wall.on(now.astimezone(wall.zone or zone).date(), zone)
    return at - timedelta(days=1) if wall.day is None and at > now else at


def _length(text: str) -> timedelta | None:
    return parse_duration(text) if is_iso_duration(text) else None


def _dates_in_digits(text: str, now: datetime) -> str:
    text = _SLASHED_DATE.sub(r"\1-\2-\3", text)
    text = _WORDY_DATE.sub(lambda found: _dated(found, now), text)
    return _WEEKDAY_ALONE.sub(lambda found: _weekday(found, now), text)


def _dated(found: re.Match[str], now: datetime) -> str:
    month = _MONTHS.index((found["m1"] or found["m2"])[:3].lower()) + 1
    day = int(found["d1"] or found["d2"])
    try:
        at = date(int(found["y"] or now.year), month, day)
        if not found["y"] and at > now.date():
            at = at.replace(year=now.year - 1)
    except ValueError:
        raise InvalidArguments(f"time_range: not understood; {FORMS}") from None
    return at.isoformat()


def _weekday(found: re.Match[str], now: datetime) -> str:
    back = (now.weekday() - _WEEKDAYS.index(found["weekday"][:3].lower())) % 7
    if not back and found[0].lower().startswith("last "):
        back = 7
    return (now.date() - timedelta(days=back)).isoformat()


def _check(start: datetime, end: datetime, now: datetime, longest: timedelta) -> None:
    if start >= end:
        raise InvalidArguments(
            f"time_range: the start ({instant_text(start)}) must be before the end"
            f" ({instant_text(end)})"
        )
    if end > now + MAX_AHEAD:
        raise InvalidArguments(
            f"time_range: ends in the future; now is {instant_text(now)}, end there or earlier"
        )
    if end - start > longest:
        raise InvalidArguments(
            f"time_range: longer than {longest.days} days; ask for a shorter range"
        )
