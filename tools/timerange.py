"""Time ranges as models and people write them, turned into one absolute half-open interval.

Accepted: `A/B`, `A..B`, `A to B`, `A - B`, `A/PT30M`, `PT30M/B`, `last 30m`, `30m`, `now-1h..now`, and one instant `A`
(from A until now), `14:00-15:00`, `today`, `yesterday`. An instant is RFC 3339, `now`, `now-1h`, `-1h`, `1h ago`, a
time of day such as `14:00`, or seconds or milliseconds since 1970.
Months and years are refused: their length is not fixed.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tools.capabilities import Interval
from tools.errors import InvalidArguments

MAX_RANGE = timedelta(days=30)  # Loki's default max_query_length is 30d1h
MAX_AHEAD = timedelta(minutes=10)  # clocks differ; more than this is a mistake
MAX_TEXT_CHARS = 200

FORMS = (
    "use 'last 30m', 'now-2h..now-1h', or '<start>/<end>' and '<start>/PT30M' with RFC 3339 times"
    " such as 2026-04-07T14:00:00Z"
)

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_WORD_UNITS = {
    "second": "s", "seconds": "s", "sec": "s", "secs": "s",
    "minute": "m", "minutes": "m", "min": "m", "mins": "m",
    "hour": "h", "hours": "h", "hr": "h", "hrs": "h",
    "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip
_SHORT_PART = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)[ ]?([a-z]+)[ ]?")
_RELATIVE = re.compile(
    r"(?:(?:(?:in|during|over|within|for) )?(?:the )?(?:last|past|previous)[ _])?(.+)"
)
_NOW = re.compile(r"now(?:\(\))?(?:\s*-\s*(.+))?")
_BACK = re.compile(r"-\s?(?P<signed>[0-9].*)|(?P<ago>[0-9a-z ]+) ago")
_PREFIX = re.compile(r"(?:from|since|between) ", re.IGNORECASE)
_SEPARATOR = re.compile(r"\.\.|/| (?:to|until|till|and) ", re.IGNORECASE)
# Where no other one is: a dash may also be a minus.
_LOOSE_SEPARATOR = re.compile(r"(?<!now) - | through |, ?", re.IGNORECASE)
# Seconds from 2001 to 2286 have ten digits, milliseconds thirteen.
_EPOCH = re.compile(r"([0-9]{10})(?:\.([0-9]{1,9}))?|([0-9]{10})([0-9]{3})")
_DASH = re.compile(r" ?[\u2013\u2014] ?")
_ARROW = re.compile(r" ?(?:\u2192|->|=>) ?")
_UTC = re.compile(r" ?(?:UTC|GMT)", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?P<h>[01]?[0-9]|2[0-3]):(?P<m>[0-5][0-9])(?::(?P<s>[0-5][0-9]))?(?P<zone> ?(?:Z|UTC|GMT))?",
    re.IGNORECASE,
)
_CLOCKS = re.compile(
    r"([0-9:]{4,8}(?: ?(?:Z|UTC|GMT))?) ?- ?([0-9:]{4,8}(?: ?(?:Z|UTC|GMT))?)", re.IGNORECASE
)
_NUMBERS = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=1
    )
} | {"twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30}
# One day, then two times of it.
_DAY_AND_CLOCKS = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})[ T](?P<from>[0-9]{1,2}:[0-9]{2}) ?- ?"
    r"(?P<to>[0-9]{1,2}:[0-9]{2})(?P<zone> ?(?:Z|UTC|GMT))?",
    re.IGNORECASE,
)
_DAYS_BACK = {"today": 0, "yesterday": 1}
_ISO_DURATION = re.compile(
    r"P(?:([0-9]{1,9})W)?(?:([0-9]{1,9})D)?"
    r"(?:T(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})S)?)?"
)
_CALENDAR_DURATION = re.compile(r"P[^T]*[0-9][MY].*|[0-9]+ ?(?:mo|mon|months?|y|yrs?|years?)")


@dataclass(frozen=True, slots=True)
class TimeRange:
    """`interval` is what is asked; `assumed` says what the text left open, empty when nothing."""

    interval: Interval
    assumed: str = ""

    @property
    def text(self) -> str:
        """The absolute range, as every time-ranged result echoes it."""
        return range_text(self.interval)


def parse_time_range(text: str, now: datetime, longest: timedelta = MAX_RANGE) -> TimeRange:
    """Resolve `text` against `now`, an aware instant. Raises InvalidArguments, never echoing it."""
    cleaned = _ARROW.sub(" to ", _DASH.sub(" - ", " ".join(text.split())))
    if not cleaned or len(cleaned) > MAX_TEXT_CHARS or not cleaned.isascii():
        raise InvalidArguments(f"time_range: not understood; {FORMS}")
    try:
        start, end, zone_assumed = _ends(cleaned, now.astimezone(UTC))
    except OverflowError:
        raise InvalidArguments("time_range: outside the calendar") from None
    _check(start, end, now, longest)
    return TimeRange(Interval(start, end), "no zone given: UTC assumed" if zone_assumed else "")


def range_text(interval: Interval) -> str:
    """`start/end` in UTC."""
    return f"{instant_text(interval.start)}/{instant_text(interval.end)}"


def instant_text(at: datetime) -> str:
    """RFC 3339 in UTC; milliseconds only when there are any."""
    at = at.astimezone(UTC)
    precision = "milliseconds" if at.microsecond else "seconds"
    return at.isoformat(timespec=precision).replace("+00:00", "Z")


def parse_duration(text: str) -> timedelta | None:
    """`30m`, `1h30m`, `90 seconds`, `PT30M`, `P1D`; None when it is none of them.

    Raises InvalidArguments for months and years.
    """
    stripped = text.strip()
    if _CALENDAR_DURATION.fullmatch(stripped.upper()) and stripped[:1] in "Pp":
        raise _calendar()
    if _CALENDAR_DURATION.fullmatch(stripped.lower()):
        raise _calendar()
    if stripped[:1] in {"P", "p"}:
        return _iso_duration(stripped.upper())
    return _short_duration(stripped)


def _calendar() -> InvalidArguments:
    return InvalidArguments(
        "time_range: months and years have no fixed length; use days, at most 30"
    )


def _iso_duration(text: str) -> timedelta | None:
    match = _ISO_DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)


def _short_duration(text: str) -> timedelta | None:
    """An upper-case letter is refused: `5M` could be minutes or months."""
    total_s, position = 0.0, 0
    while position < len(text):
        match = _SHORT_PART.match(text, position)
        if match is None:
            return None
        unit = _WORD_UNITS.get(match[2], match[2])
        if unit not in _UNIT_S:
            return None
        total_s += float(match[1]) * _UNIT_S[unit]
        position = match.end()
    return timedelta(seconds=total_s) if text else None


def _ends(text: str, now: datetime) -> tuple[datetime, datetime, bool]:
    prefix = _PREFIX.match(text)
    text = text[prefix.end() :] if prefix else text
    if text.lower() in _DAYS_BACK:
        return *_day(text.lower(), now), True
    if dated := _DAY_AND_CLOCKS.fullmatch(text):
        zone = dated["zone"] or ""
        left, right = (f"{dated['day']} {dated[at]:0>5}{zone}" for at in ("from", "to"))
        return _two_sided(left, right, now)
    clocks = _CLOCKS.fullmatch(text)
    sides = list(clocks.groups()) if clocks else _SEPARATOR.split(text, maxsplit=1)
    if len(sides) == 1:
        sides = _LOOSE_SEPARATOR.split(text, maxsplit=1)
    if len(sides) == 2:
        return _two_sided(sides[0].strip(), sides[1].strip(), now)
    relative = _relative(text, now)
    if relative is not None:
        return relative, now, False
    start, assumed = _instant(text, now)
    return start, now, assumed


def _day(word: str, now: datetime) -> tuple[datetime, datetime]:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start = midnight - timedelta(days=_DAYS_BACK[word])
    return start, min(start + timedelta(days=1), now)


def _relative(text: str, now: datetime) -> datetime | None:
    lowered = text if text[:1] in "Pp" and text[:4].lower() != "past" else _lower_words(text)
    match = _RELATIVE.fullmatch(lowered)
    words = match[1] if match else lowered
    words = f"1 {words}" if words in _WORD_UNITS else words
    duration = parse_duration(_in_digits(words))
    return None if duration is None else now - duration


def _in_digits(words: str) -> str:
    """The same with its first number in digits: `half an hour`, `two hours`."""
    first, _, rest = words.removeprefix("half ").partition(" ")
    half = ".5" if words.startswith("half ") else ""
    if first in {"a", "an"}:
        return f"0{half} {rest}" if half else f"1 {rest}"
    return f"{_NUMBERS[first]} {rest}" if first in _NUMBERS and not half else words


def _lower_words(text: str) -> str:
    """Lower-case the words, not a single unit letter such as the M of `5M`."""
    return re.sub(r"[A-Za-z]{2,}", lambda word: word[0].lower(), text)


def _two_sided(left: str, right: str, now: datetime) -> tuple[datetime, datetime, bool]:
    before, after = _length(left), _length(right)
    if before is not None and after is not None:
        raise InvalidArguments(f"time_range: two durations and no instant; {FORMS}")
    if before is not None:
        end, assumed = _instant(right, now)
        return end - before, end, assumed
    start, start_assumed = _instant(left, now)
    if after is not None:
        return start, start + after, start_assumed
    if (clock := _CLOCK.fullmatch(right)) and _CLOCK.fullmatch(left):
        end = _at_clock(clock, start)
        end += timedelta(days=1) if end <= start else timedelta()
        return start, end, start_assumed or not clock["zone"]
    end, end_assumed = _instant(right, now)
    return start, end, start_assumed or end_assumed


def _length(text: str) -> timedelta | None:
    return parse_duration(text) if text[:1] in {"P", "p"} else None


def _instant(text: str, now: datetime) -> tuple[datetime, bool]:
    relative = _NOW.fullmatch(text.lower())
    if relative is not None:
        back = timedelta() if relative[1] is None else _short_duration(relative[1])
        if back is None:
            raise InvalidArguments(f"time_range: 'now-' needs a duration such as 30m; {FORMS}")
        return now - back, False
    at = _before_now(text, now) or _since_1970(text)
    if at is not None:
        return at, False
    if clock := _CLOCK.fullmatch(text):
        at = _at_clock(clock, now)
        return at - timedelta(days=1) if at > now else at, not clock["zone"]
    try:
        at = datetime.fromisoformat(_UTC.sub("Z", text).upper())
    except ValueError:
        raise InvalidArguments(f"time_range: not understood; {FORMS}") from None
    if at.tzinfo is None:
        return at.replace(tzinfo=UTC), True
    return at.astimezone(UTC), False


def _at_clock(clock: re.Match[str], day: datetime) -> datetime:
    hour, minute, second = (int(clock[name] or 0) for name in "hms")
    return day.replace(hour=hour, minute=minute, second=second, microsecond=0)


def _before_now(text: str, now: datetime) -> datetime | None:
    found = _BACK.fullmatch(_lower_words(text))
    if found is None:
        return None
    words = found["signed"] or found["ago"]
    duration = parse_duration(_in_digits(words))
    return None if duration is None else now - duration


def _since_1970(text: str) -> datetime | None:
    found = _EPOCH.fullmatch(text)
    if found is None:
        return None
    seconds, fraction = found[1] or found[3], found[2] or found[4] or "0"
    return datetime.fromtimestamp(int(seconds), UTC) + timedelta(seconds=float(f"0.{fraction}"))


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
