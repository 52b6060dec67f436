"""Instants as integers. Floats and datetimes lose the nanoseconds that log backends order by."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from tools.capabilities import Interval
from tools.errors import InvalidArguments

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_NS: Final = 253_402_300_800 * 10**9  # the end of 9999, where datetime ends
_RFC3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)


def to_ns(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(microseconds=1) * 1000


def from_ns(ts_ns: int) -> datetime:
    """The microsecond that contains the instant; for display, never for cursors."""
    return _EPOCH + timedelta(microseconds=ts_ns // 1000)


def check_order(interval: Interval) -> None:
    """Raises InvalidArguments when the interval is empty or reversed."""
    if interval.start >= interval.end:
        raise InvalidArguments(
            f"the time range is empty: {interval.start.isoformat()} is not before "
            f"{interval.end.isoformat()}"
        )


def seconds_text(instant: datetime) -> str:
    """Seconds since the epoch with the microseconds kept, as both Prometheus and VM read them."""
    return f"{instant.astimezone(UTC).timestamp():.6f}".rstrip("0").rstrip(".")


def ns_of(text: str) -> int:
    """RFC 3339 with all of its digits, UTC where it names no zone. Raises ValueError for another."""
    found = _RFC3339.fullmatch(text)
    if found is None:
        raise ValueError("not a time as RFC 3339 has it")
    day, clock, fraction, zone = found.groups()
    whole = datetime.fromisoformat(f"{day}T{clock}{zone or 'Z'}")
    return to_ns(whole) + int((fraction or "").ljust(9, "0"))


def checked_ns(ts_ns: int) -> int:
    """The same number. Raises ValueError unless it is between 1970 and 9999."""
    if not 0 <= ts_ns < _LAST_NS:
        raise ValueError("not nanoseconds since 1970")
    return ts_ns


def ns_text(ts_ns: int) -> str:
    """RFC 3339 in UTC with nine digits, exactly."""
    return f"{from_ns(ts_ns):%Y-%m-%dT%H:%M:%S}.{ts_ns % 1_000_000_000:09d}Z"
