"""Instants and minutes of the clock in a text."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cached_property

# Each begins with a digit and looks back from there, so that text between digits is skipped fast.
STAMP = re.compile(
    r"(\d(?<!\w\d)\d{3}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?"
)
_CLOCK = re.compile(
    r"(\d(?<![\d:.T-]\d)(?:(?<=[01])\d|(?<=2)[0-3])?):([0-5]\d)(?::[0-5]\d)?(?![\d:])"
)
_MOST_LOOKS = 32
# Behind a stamp: its minute in UTC is another than it reads.
_OFFSET = re.compile(r":\d\d(?:\.\d{1,9})?[+-]\d\d")


class Clocks:
    """The minutes a text speaks of, HH:MM in UTC; read when the one asked for may be there.

    `text` is all that they are read from, in any case. It is read anyhow when it is asked often.
    """

    def __init__(self, text: str, read: Callable[[], frozenset[str]]) -> None:
        self._text = text
        self._read = read
        self._asked = 0

    def have(self, minute: str, margin_min: int) -> bool:
        """Whether a minute is one of them, or within `margin_min` of one."""
        self._asked += 1
        is_read = margin_min > 0 or self._asked > _MOST_LOOKS or self._may_have(minute)
        return is_read and near(minute, self._all, margin_min)

    def _may_have(self, minute: str) -> bool:
        return minute.removeprefix("0") in self._text or self._reads_otherwise

    @cached_property
    def _reads_otherwise(self) -> bool:
        return not self._text.isascii() or _OFFSET.search(self._text) is not None

    @cached_property
    def _all(self) -> frozenset[str]:
        return self._read()


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


def near(clock: str, clocks: frozenset[str], margin_min: int) -> bool:
    """Whether a minute is one of them, or within `margin_min` of one."""
    if clock in clocks or not margin_min:
        return clock in clocks
    at = int(clock[:2]) * 60 + int(clock[3:])
    return any(abs(at - int(c[:2]) * 60 - int(c[3:])) <= margin_min for c in clocks)
