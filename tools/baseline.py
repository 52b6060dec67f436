"""Is a window of a series unusual? Robust, two-sided, in seconds for any step.

The centre is the median and the spread comes from the quartiles, so that neither an artefact nor an
earlier incident in the baseline hides a new change. Pure arithmetic.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from tools.statistics import EPSILON, FinitePoint

Direction = Literal["up", "down", "flat"]

MIN_POINTS: Final = 20
MIN_COVERED: Final = timedelta(hours=1)  # of samples before the window
ANOMALOUS_Z: Final = 3.0
SUSTAINED: Final = timedelta(seconds=150)  # two scrapes at 60 s and more: not one of them alone
MAD_TO_SD: Final = 1.4826  # the MAD of a normal distribution times this is its standard deviation
IQR_TO_SD: Final = 0.7413  # and the distance of its quartiles
RELATIVE_FLOOR: Final = 0.01  # a spread under 1 % of the median is the clock's, not the service's
SMALLEST_EFFECT: Final = 0.1  # of the median: less is not worth a word, however steady the series
# The smallest change worth a word in units that people know, beside the relative one.
SMALLEST: Final = {"seconds": 0.002, "milliseconds": 2.0, "ratio": 0.002, "percent": 0.2}


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baseline. `spread` is the divisor of a z-score: never below its floor.

    `coverage` is the share of the expected time with samples, 0 to 1, `covered_s` in seconds.
    `least_effect` is the smallest change worth reporting.
    """

    n: int
    coverage: float
    covered_s: float
    median: float
    mean: float
    stddev: float
    spread: float
    floored: bool
    least_effect: float

    @property
    def sufficient(self) -> bool:
        return self.n >= MIN_POINTS and self.covered_s >= MIN_COVERED.total_seconds()

    @property
    def constant(self) -> bool:
        """All points are equal: there is no z-score."""
        return self.stddev <= EPSILON

    def z_score(self, value: float) -> float | None:
        """None when the baseline is constant or too short."""
        if not self.sufficient or self.constant:
            return None
        return (value - self.median) / self.spread

    def anomalous(self, value: float) -> bool:
        """Far from the median by its spread, and by an amount that matters."""
        if not self.sufficient or abs(value - self.median) < self.least_effect:
            return False
        return self.constant or abs(value - self.median) / self.spread >= ANOMALOUS_Z

    def missing(self) -> str:
        """Why it is too short, in words."""
        minutes = self.covered_s / 60
        return (
            f"insufficient baseline: {self.n} samples, {minutes:.0f} min before the window, "
            f"{MIN_POINTS} and {MIN_COVERED.total_seconds() / 60:.0f} min are needed"
        )


def baseline(
    values: Sequence[float], expected: timedelta, spacing_s: float, unit: str | None = None
) -> Baseline:
    """Of the values before the window under test and its guard gap, so far apart."""
    if not values:
        return Baseline(0, 0.0, 0.0, 0.0, 0.0, 0.0, EPSILON, True, EPSILON)
    middle = statistics.median(values)
    mad = statistics.median(abs(value - middle) for value in values)
    quartiles = (
        statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [0.0] * 3
    )
    spread = max(MAD_TO_SD * mad, IQR_TO_SD * (quartiles[2] - quartiles[0]))
    floor = max(RELATIVE_FLOOR * abs(middle), EPSILON)
    return Baseline(
        n=len(values),
        coverage=min(1.0, len(values) * spacing_s / expected.total_seconds()),
        covered_s=len(values) * spacing_s,
        median=middle,
        mean=statistics.fmean(values),
        stddev=statistics.stdev(values) if len(values) > 1 else 0.0,
        spread=max(spread, floor),
        floored=floor > spread,
        least_effect=max(SMALLEST_EFFECT * abs(middle), SMALLEST.get(unit or "", 0.0), EPSILON),
    )


def sustained_from(
    points: Sequence[FinitePoint], usual: Baseline, spacing_s: float
) -> datetime | None:
    """When the first long enough run of anomalous samples on one side began.

    A run needs two samples (one suffices for a window of one sample) and may have gaps.
    """
    run: list[FinitePoint] = []
    for point in points:
        same_side = not run or (point[1] > usual.median) == (run[-1][1] > usual.median)
        run = [*run, point] if usual.anomalous(point[1]) and same_side else _restarted(point, usual)
        if run and _long_enough(run, len(points), spacing_s):
            return run[0][0]
    return None


def direction(usual: Baseline, middle: float) -> Direction:
    """Where the window's median went; flat when that is within the spread or too little."""
    if abs(middle - usual.median) <= max(usual.spread, usual.least_effect):
        return "flat"
    return "up" if middle > usual.median else "down"


def _restarted(point: FinitePoint, usual: Baseline) -> list[FinitePoint]:
    return [point] if usual.anomalous(point[1]) else []


def _long_enough(run: Sequence[FinitePoint], in_window: int, spacing_s: float) -> bool:
    stands_for = (run[-1][0] - run[0][0]).total_seconds() + spacing_s
    least = min(SUSTAINED.total_seconds(), math.inf if in_window > 1 else 0.0)
    return len(run) >= min(2, in_window) and stands_for >= least
