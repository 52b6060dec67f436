"""Instants and minutes of the clock in a text."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

# Each begins with a digit and looks back from there: what lies between digits is skipped fast.
STAMP = re.compile(
    r"(\d(?<!\w\d)\d{3}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?"
)
_CLOCK = re.compile(
    r"(\d(?<![\d:.T-]\d)(?:(?<=[01])\d|(?<=2)[0-3])?):([0-5]\d)(?::[0-5]\d)?(?![\d:])"
)


def instants(text: str) -> Iterator[datetime]:
    """Each stamp of it, in UTC; one without a zone is taken as UTC."""
    for match in STAMP.finditer(text):
        at = _instant(match[0].replace(" ", "T", 1))
        if at is not None:
            yield at


def minutes(text: str) -> frozenset[str]:
    """The minutes of its stamps, HH:MM in UTC; those of one minute are read once."""
    told = {
        (day, minute, zone)
        for day, minute, second, fraction, zone in STAMP.findall(text)
        if second < ":60" and (second + fraction).isascii()
    }
    found = (_instant(f"{day}T{minute}{zone}") for day, minute, zone in told)
    return frozenset(clock(at) for at in found if at is not None)


def _instant(stamp: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(stamp)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # no such day; or beyond year 1 or 9999 in UTC
        return None


def clock(at: datetime) -> str:
    """The minute, HH:MM."""
    return f"{at.hour:02d}:{at.minute:02d}"


def clocks_in(text: str) -> frozenset[str]:
    """The minutes of a text without stamps, HH:MM."""
    return frozenset(f"{int(hour):02d}:{minute}" for hour, minute in set(_CLOCK.findall(text)))
