"""Instants as integers. Floats and datetimes lose the nanoseconds that log backends order by."""

from datetime import UTC, datetime, timedelta

from tools.capabilities import Interval
from tools.errors import InvalidArguments

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_ns(instant: datetime) -> int:
    """Nanoseconds since the epoch, exactly."""
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
