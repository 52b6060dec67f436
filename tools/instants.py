"""Instants and durations as models and people write them.

A time of day or a date without a zone is a `Wall`: the range around it says which day and zone are meant.
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from typing import Final

from tools.errors import InvalidArguments

FORMS: Final = (
    "use 'last 30m', '2h ago to 1h ago', 'now-1d/d', 'yesterday 14:00 to 15:00', or '<start>/<end>' and"
    " '<start>/PT30M' with RFC 3339 times such as 2026-04-07T14:00:00Z"
)

_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_WORD_UNITS: Final = {
    "second": "s", "seconds": "s", "sec": "s", "secs": "s",
    "minute": "m", "minutes": "m", "min": "m", "mins": "m",
    "hour": "h", "hours": "h", "hr": "h", "hrs": "h",
    "day": "d", "days": "d", "week": "w", "weeks": "w",
}  # fmt: skip
_NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=1
    )
} | {"twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30}
_SHORT_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)[ ]?([a-z]+)(?:,? and |, ?| )?")
_ISO_NUMBER: Final = r"([0-9]{1,9}(?:\.[0-9]{1,3})?)"
_ISO_DURATION: Final = re.compile(
    rf"P(?:{_ISO_NUMBER}W)?(?:{_ISO_NUMBER}D)?"
    rf"(?:T(?:{_ISO_NUMBER}H)?(?:{_ISO_NUMBER}M)?(?:{_ISO_NUMBER}S)?)?"
)
_CALENDAR_DURATION: Final = re.compile(
    r"P[^T]*[0-9][MY].*|[0-9]+ ?(?:mo|mon|months?|y|yrs?|years?)"
)
_RELATIVE: Final = re.compile(
    r"(?:(?:(?:in|during|over|within|for) )?(?:the )?(?:last|past|previous)[ _])?(.+)"
)
# Grafana's and Elasticsearch's `now-1d/d`, Splunk's `-1d@d`: back, then down to a whole unit.
_NOW: Final = re.compile(
    r"(?:now(?:\(\))?|(?=[@-]))(?: ?(?:-|minus) ?(?P<back>[^@]+?))?(?: ?@ ?(?P<unit>[a-z]{1,6}))?",
    re.IGNORECASE,
)
_SNAP: Final = re.compile(
    r"(now(?:\(\))?[^/@]{0,24})/ ?([smhdwMyqQY]|second|minute|hour|day|week|month|quarter|year)(?![a-z0-9])",
    re.IGNORECASE,
)
_AGO: Final = re.compile(r"(?P<ago>[0-9a-z. ]+) (?:ago|back|before now)")
# Seconds from 2001 to 2286 have ten digits; milliseconds, microseconds and nanoseconds have more.
_EPOCH: Final = re.compile(
    r"@?(?P<s>[0-9]{10})(?:(?P<part>[0-9]{3}|[0-9]{6}|[0-9]{9})|\.(?P<fraction>[0-9]{1,9}))?"
)
_DAY: Final = r"today|yesterday|[0-9]{4}-[0-9]{2}-[0-9]{2}"
_ZONE: Final = r"(?:Z|(?:UTC|GMT)?[+-][0-9]{1,2}(?::?[0-9]{2})?|UTC|GMT)"
CLOCK: Final = (
    r"(?:(?:[01]?[0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9])?(?: ?[ap]\.?m\.?)?"
    r"|(?:0?[1-9]|1[0-2]) ?[ap]\.?m\.?|noon|midnight)"
)
_DATED: Final = re.compile(
    rf"(?:(?P<day>{_DAY})(?: |, ?|T|\Z)(?:at |from |between )?)?"
    rf"(?:(?P<clock>{CLOCK})(?: ?\(?(?P<zone>{_ZONE})\)?)?)?(?: ?,? ?(?:on )?(?P<after>{_DAY}))?",
    re.IGNORECASE,
)
_ZONE_APART: Final = re.compile(rf" ?\(?({_ZONE})\)?\Z", re.IGNORECASE)
_OFFSET: Final = re.compile(r"([+-])([0-9]{1,2}):?([0-9]{2})?\Z")
_MERIDIEM: Final = re.compile(r" ?([ap])\.?m\.?\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Wall:
    """What a clock shows. None: the text leaves the day, or the zone, open."""

    clock: time
    day: date | None = None
    zone: tzinfo | None = None

    def on(self, day: date, zone: tzinfo) -> datetime:
        """That instant, where the text leaves its day and zone open."""
        wall = datetime.combine(self.day or day, self.clock, self.zone or zone)
        return wall.astimezone(UTC)


@dataclass(frozen=True, slots=True)
class Snapped:
    """The beginning of a whole unit in UTC, and how long the unit is."""

    at: datetime
    unit: timedelta


Moment = datetime | Wall | Snapped


def with_snaps(text: str) -> str:
    """The same with `now/d` as `now@d`, because a slash also separates two instants."""
    return _SNAP.sub(r"\1@\2", text)


def parse_duration(text: str) -> timedelta | None:
    """`30m`, `1h30m`, `90 seconds`, `PT30M`, `P1D`; None for any other text.

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


def length_back(text: str) -> timedelta | None:
    """Of `last 30m`, `half an hour`, `PT30M`: how long; None for anything else."""
    lowered = text if is_iso_duration(text) else _lower_words(text)
    match = _RELATIVE.fullmatch(lowered)
    words = match[1] if match else lowered
    words = f"1 {words}" if words in _WORD_UNITS else words
    return parse_duration(_in_digits(words))


def is_iso_duration(text: str) -> bool:
    """Whether the text begins as an ISO 8601 duration does."""
    return text[:1] in {"P", "p"} and text[1:2].upper() in set("T0123456789")


def parse_instant(text: str, now: datetime) -> Moment:
    """One instant in any of its forms; `now` is in UTC. Raises InvalidArguments, never echoing it."""
    found = _around_now(text, now) or _since_1970(text) or _wall(text, now)
    if found is not None:
        return found
    raise InvalidArguments(f"time_range: not understood; {FORMS}")


def _around_now(text: str, now: datetime) -> datetime | Snapped | None:
    if ago := _AGO.fullmatch(_lower_words(text)):
        back = length_back(ago["ago"])
        return None if back is None else now - back
    if found := _NOW.fullmatch(text):
        at = now
        if found["back"] is not None:
            at -= _back(found["back"], is_named=text[:1] in "nN")
        return at if found["unit"] is None else _snapped(at, found["unit"])
    back = length_back(text)
    return None if back is None else now - back


def _back(words: str, *, is_named: bool) -> timedelta:
    back = length_back(words) if words[:1] in set("0123456789Pp") else None
    if back is None:
        said = "'now-' needs a duration such as 30m" if is_named else "not understood"
        raise InvalidArguments(f"time_range: {said}; {FORMS}")
    return back


def _snapped(at: datetime, unit: str) -> Snapped:
    if unit in {"M", "y", "Y"} or unit.lower() in {"mon", "month", "q", "year"}:
        raise _calendar()
    known = _WORD_UNITS.get(unit.lower(), unit)
    if known not in _UNIT_S:
        raise InvalidArguments(f"time_range: not understood; {FORMS}")
    length = timedelta(seconds=_UNIT_S[known])
    monday = datetime(1970, 1, 5, tzinfo=UTC)
    return Snapped(at - (at - monday) % length, length)


def _since_1970(text: str) -> datetime | None:
    found = _EPOCH.fullmatch(text)
    if found is None:
        return None
    digits = found["part"] or found["fraction"] or "0"
    seconds = datetime.fromtimestamp(int(found["s"]), UTC)
    return seconds + timedelta(microseconds=int(f"{digits:0<6}"[:6]))


def _wall(text: str, now: datetime) -> Wall | None:
    found = _DATED.fullmatch(text)
    if found and found["clock"] and not (found["day"] and found["after"]):
        day = found["day"] or found["after"]
        zone = zone_in(found["zone"]) if found["zone"] else None
        return Wall(_clock(found["clock"]), _date(day, now) if day else None, zone)
    if found and found["day"] and not found["after"]:
        return Wall(time(), _date(found["day"], now))
    return _iso(text)


def _iso(text: str) -> Wall | None:
    apart = _ZONE_APART.search(text)
    for candidate, zone in (
        (text.upper(), None),
        (text[: apart.start()], apart) if apart else ("", None),
    ):
        try:
            at = datetime.fromisoformat(candidate)
        except ValueError:
            continue
        return Wall(at.time(), at.date(), zone_in(zone[1]) if zone else at.tzinfo)
    return None


def zone_in(text: str) -> tzinfo:
    """`Z`, `UTC`, `+02:00`, `UTC+2`. Raises InvalidArguments for an offset of a day or more."""
    offset = _OFFSET.search(text)
    if offset is None:
        return UTC
    minutes = int(offset[2]) * 60 + int(offset[3] or 0)
    if minutes >= 24 * 60:
        raise InvalidArguments(f"time_range: not understood; {FORMS}")
    return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))


def _date(word: str, now: datetime) -> date | None:
    if word.lower() in {"today", "yesterday"}:
        return now.date() - timedelta(days=word.lower() == "yesterday")
    try:
        return date.fromisoformat(word)
    except ValueError:
        raise InvalidArguments(f"time_range: not understood; {FORMS}") from None


def _clock(text: str) -> time:
    if text.lower() in {"noon", "midnight"}:
        return time(12 if text.lower() == "noon" else 0)
    meridiem = _MERIDIEM.search(text)
    hour, minute, second = (*map(int, _MERIDIEM.sub("", text).split(":")), 0, 0)[:3]
    if meridiem:
        if not 1 <= hour <= 12:
            raise InvalidArguments(f"time_range: not understood; {FORMS}")
        hour = hour % 12 + (12 if meridiem[1] in "pP" else 0)
    return time(hour, minute, second)


def _calendar() -> InvalidArguments:
    return InvalidArguments(
        "time_range: months and years have no fixed length; use days, at most 30"
    )


def _iso_duration(text: str) -> timedelta | None:
    match = _ISO_DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    weeks, days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
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


def _in_digits(words: str) -> str:
    first, _, rest = words.removeprefix("half ").partition(" ")
    half = ".5" if words.startswith("half ") else ""
    if first in {"a", "an"}:
        return f"0{half} {rest}" if half else f"1 {rest}"
    return f"{_NUMBERS[first]} {rest}" if first in _NUMBERS and not half else words


def _lower_words(text: str) -> str:
    """Lower-case the words, not a single unit letter such as the M of `5M`."""
    return re.sub(r"[A-Za-z]{2,}", lambda word: word[0].lower(), text)
