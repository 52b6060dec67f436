"""Numbers about series: summary statistics and downsampling. Pure arithmetic."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

Point = tuple[datetime, float | None]
FinitePoint = tuple[datetime, float]

MAX_POINTS = 60
EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Stats:
    """Of the finite values. Percentiles by linear interpolation."""

    min: float
    max: float
    mean: float
    p50: float
    p95: float
    p99: float


def finite(points: Sequence[Point]) -> list[FinitePoint]:
    """The points that have a finite value, in time order."""
    kept = [(at, value) for at, value in points if value is not None and math.isfinite(value)]
    return sorted(kept, key=lambda point: point[0])


def summary(values: Sequence[float]) -> Stats | None:
    """None when there are no values."""
    if not values:
        return None
    ordered = sorted(values)
    mean = min(max(math.fsum(ordered) / len(ordered), ordered[0]), ordered[-1])
    return Stats(
        ordered[0],
        ordered[-1],
        mean,
        _percentile(ordered, 0.5),
        _percentile(ordered, 0.95),
        _percentile(ordered, 0.99),
    )


def _percentile(ordered: Sequence[float], share: float) -> float:
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    low, high = ordered[below], ordered[above]
    return min(max(low + (high - low) * (position - below), low), high)


def relative_change(before: float, after: float) -> float | None:
    """As a share of `before`; None when that is zero."""
    return None if abs(before) <= EPSILON else (after - before) / abs(before)


def downsampled(points: Sequence[FinitePoint], max_points: int = MAX_POINTS) -> list[FinitePoint]:
    """At most `max_points`, keeping the lowest and the highest of every bucket, and so of all.

    Raises ValueError for fewer than two.
    """
    if max_points < 2:
        raise ValueError("a series cannot be shown in fewer than two points")
    if len(points) <= max_points:
        return list(points)
    buckets = max_points // 2
    kept: list[FinitePoint] = []
    for number in range(buckets):
        begin, end = (number * len(points)) // buckets, ((number + 1) * len(points)) // buckets
        bucket = range(begin, end)
        low = min(bucket, key=lambda index: points[index][1])
        high = max(bucket, key=lambda index: points[index][1])
        kept.extend(points[index] for index in sorted({low, high}))
    return kept


def rounded(value: float, digits: int = 4) -> float:
    """To significant digits: what a reader needs, and a third of the tokens."""
    return float(f"{value:.{digits}g}")
