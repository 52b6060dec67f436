"""Numbers about series: summary statistics, a baseline with its traps defused, downsampling.

A z-score alone ranks a histogram artefact above the true fault: the deviation has a floor, and
every comparison carries sample size, coverage, direction and relative change. Pure arithmetic.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Point = tuple[datetime, float | None]
FinitePoint = tuple[datetime, float]
Direction = Literal["up", "down", "flat"]

MIN_BASELINE_POINTS = 30
MAX_POINTS = 60
ANOMALOUS_Z = 3.0
SUSTAINED_POINTS = 3
MAD_TO_SD = 1.4826  # the MAD of a normal distribution times this is its standard deviation
RELATIVE_FLOOR = 0.01  # a deviation under 1 % of the mean is never news
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


@dataclass(frozen=True, slots=True)
class Baseline:
    """What is usual. `stddev` is the sample standard deviation; `floor` the one that z divides by.

    `coverage` is how much of the expected points was there, 0 to 1.
    """

    n: int
    coverage: float
    mean: float
    stddev: float
    floor: float

    @property
    def sufficient(self) -> bool:
        """Whether it may be compared with at all."""
        return self.n >= MIN_BASELINE_POINTS

    @property
    def constant(self) -> bool:
        """All points alike: no z-score can be given."""
        return self.stddev <= EPSILON

    def z_score(self, value: float) -> float | None:
        """None when the baseline is constant or too small."""
        if not self.sufficient or self.constant:
            return None
        return (value - self.mean) / self.floor

    def anomalous(self, value: float) -> bool:
        """By z-score; from a constant baseline, anything beyond the floor."""
        if not self.sufficient:
            return False
        return abs(value - self.mean) / self.floor >= (1.0 if self.constant else ANOMALOUS_Z)


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


def baseline(values: Sequence[float], expected_points: int) -> Baseline:
    """Of the finite values before the window under test and its guard gap."""
    if not values:
        return Baseline(0, 0.0, 0.0, 0.0, EPSILON)
    mean = statistics.fmean(values)
    stddev = statistics.stdev(values) if len(values) > 1 else 0.0
    middle = statistics.median(values)
    mad = statistics.median(abs(value - middle) for value in values)
    floor = max(stddev, MAD_TO_SD * mad, RELATIVE_FLOOR * abs(mean), EPSILON)
    coverage = min(1.0, len(values) / expected_points) if expected_points > 0 else 0.0
    return Baseline(len(values), coverage, mean, stddev, floor)


def relative_change(before: float, after: float) -> float | None:
    """As a share of `before`; None when that is zero."""
    return None if abs(before) <= EPSILON else (after - before) / abs(before)


def direction(usual: Baseline, mean: float) -> Direction:
    """Where the window's mean went; flat when that is within the floor."""
    if abs(mean - usual.mean) <= usual.floor:
        return "flat"
    return "up" if mean > usual.mean else "down"


def sustained_from(points: Sequence[FinitePoint], usual: Baseline) -> datetime | None:
    """When the first run of anomalous points began: three in a row, or all when there are fewer."""
    needed = min(SUSTAINED_POINTS, len(points))
    run = 0
    for index, (_, value) in enumerate(points):
        run = run + 1 if usual.anomalous(value) else 0
        if run == needed:
            return points[index - needed + 1][0]
    return None


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
