"""When no action may run: an active kill switch, quiet hours, freeze windows. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from fnmatch import fnmatchcase
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_QUIET: Final = re.compile(
    r"(?:(?P<first>[a-z]{3})(?:-(?P<last>[a-z]{3}))? )?"
    r"(?P<start>[0-9]{2}:[0-9]{2})-(?P<end>[0-9]{2}:[0-9]{2})(?: (?P<zone>\S+))?",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Freeze:
    """The kill switch. `read_at` is the clock that windows are judged by."""

    on: bool
    read_at: datetime
    by: str = ""
    reason: str = ""
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class FreezeWindow:
    """A time in which some actions may not run."""

    begins: datetime
    ends: datetime
    reason: str = ""
    actions: tuple[str, ...] = ("*",)
    products: tuple[str, ...] = ("*",)

    def holds(self, action: str, product: str, at: datetime) -> bool:
        return (
            self.begins <= at < self.ends
            and any(fnmatchcase(action, glob) for glob in self.actions)
            and any(fnmatchcase(product, glob) for glob in self.products)
        )


@dataclass(frozen=True, slots=True)
class QuietHours:
    """The hours of some weekdays, by a wall clock; an end at or before its start is the next day."""

    text: str
    days: frozenset[int]
    start: time
    length: timedelta
    zone: ZoneInfo

    @classmethod
    def parse(cls, text: str) -> "QuietHours":
        """`22:00-06:00`, `Sat-Sun 00:00-24:00 Europe/Berlin`; without a zone UTC. Raises ValueError."""
        found = _QUIET.fullmatch(" ".join(text.split()))
        if found is None:
            raise ValueError('must look like "22:00-06:00" or "Fri-Sun 16:00-08:00 Europe/Berlin"')
        try:
            zone = ZoneInfo(found["zone"] or "UTC")
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"no time zone is called {found['zone']!r}") from error
        start, end = _minutes(found["start"]), _minutes(found["end"])
        if start == 24 * 60:
            raise ValueError("24:00 is an end, not a start")
        length = timedelta(minutes=end - start if end > start else end - start + 24 * 60)
        return cls(text, _days(found["first"], found["last"]), _time(start), length, zone)

    def until(self, at: datetime) -> datetime | None:
        """When the quiet time around `at` ends, by its own wall clock; None outside of it."""
        # Wall clocks are compared, so that the hours stay the same over a change to summer time.
        local = at.astimezone(self.zone).replace(tzinfo=None)
        for back in (0, 1):
            day = local.date() - timedelta(days=back)
            begins = datetime.combine(day, self.start)
            if day.weekday() in self.days and begins <= local < begins + self.length:
                return (begins + self.length).replace(tzinfo=self.zone)
        return None


_ID = re.compile(r"[UW][A-Z0-9]{2,20}", re.ASCII)


def stopped_by_switch(freeze: Freeze) -> str:
    since = f" since {freeze.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if freeze.at else ""
    why = f" ({freeze.reason})" if freeze.reason else ""
    # A platform's id means nothing to people; the name appears where it is known.
    by = "an admin" if _ID.fullmatch(freeze.by) else freeze.by or "an operator"
    return f"every action is frozen{since}, by {by}{why}"


def _minutes(text: str) -> int:
    hours, minutes = int(text[:2]), int(text[3:])
    if minutes > 59 or hours * 60 + minutes > 24 * 60:
        raise ValueError(f"{text} is no time of day")
    return hours * 60 + minutes


def _time(minutes: int) -> time:
    return time(minutes // 60, minutes % 60)


def _days(first: str | None, last: str | None) -> frozenset[int]:
    if first is None:
        return frozenset(range(7))
    try:
        begin = _DAYS.index(first.lower())
        end = _DAYS.index((last or first).lower())
    except ValueError:
        raise ValueError("days are Mon, Tue, Wed, Thu, Fri, Sat and Sun") from None
    return frozenset((begin + step) % 7 for step in range((end - begin) % 7 + 1))
