"""Which series a sweep reads, at what step, and what they show against the time before."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from statistics import median
from typing import Final

from tools.analysis.comparable import comparable_from, filled_from
from tools.analysis.shift import Shift, shift
from tools.analysis.trajectory import Trajectory, trajectory_of
from tools.capabilities import Interval, Metrics, SweepQuery, SweptSeries
from tools.core.metric_gaps import tells_absence
from tools.core.metric_shapes import request_signals, understood, units_of
from tools.core.metric_sweep import MetricShift
from tools.signals import Discovered, Role, Signal

LEAST_STEP_S: Final = 60.0
_FINEST_STEP_S: Final = 5.0  # of young data
MOST_SIGNALS: Final = 120
MOST_SERIES: Final = 4000  # of all products: what a backend in trouble can still answer
_EACH: Final[Mapping[Role, int]] = {"other": 40, "network": 2}  # of a role and product
_USUAL_EACH: Final = 3


def chosen(found: Discovered) -> Sequence[Signal]:
    """The most important of each role and product, at most MOST_SIGNALS in all."""
    wanted: dict[str, tuple[int, int, Signal]] = {}
    for product in found.products:
        taken: dict[Role, int] = {}
        for signal in found.of(product):
            number = taken.get(signal.role, 0)
            if number < _EACH.get(signal.role, _USUAL_EACH) or tells_absence(signal):
                taken[signal.role] = number + 1
                best = wanted.get(signal.name, (number, 0, signal))
                wanted[signal.name] = min(best[0], number), best[1] + 1, signal
    ordered = sorted(wanted.values(), key=lambda one: (one[0], one[2].rank, -one[1], one[2].name))
    sizes = accumulate(len(signal.places) for _, _, signal in ordered)
    fitting = zip(ordered[:MOST_SIGNALS], sizes, strict=False)
    return [
        one[2] for number, (one, size) in enumerate(fitting) if size <= MOST_SERIES or not number
    ]


def step_of(signals: Sequence[Signal]) -> float:
    """Seconds between two values of a sweep: never finer than the samples lie apart."""
    spacings = [one.spacing_s for one in signals if one.spacing_s]
    return max(LEAST_STEP_S, median(spacings) if spacings else LEAST_STEP_S)


def fine_step_of(signals: Sequence[Signal]) -> float:
    """The same for data of a few minutes, which a minute's step would show in a few values."""
    spacings = [one.spacing_s for one in signals if one.spacing_s]
    return max(_FINEST_STEP_S, median(spacings) if spacings else LEAST_STEP_S)


BASELINE_STEPS: Final = 120  # samples before the window: 2 h of minutes, 10 h of five minutes
LONGEST_BASELINE: Final = timedelta(hours=24)


class Judged:
    """Shifts by product, and which roles could not be compared."""

    def __init__(self) -> None:
        self.shifts: list[tuple[str, Signal, Shift]] = []
        self.short: dict[str, set[Role]] = {}
        self.range_from: dict[str, float] = {}  # of those too short, where all are
        self.standing: list[tuple[str, Signal, Trajectory]] = []
        self.requests: dict[str, float] = {}  # by product, what its signal says in the range
        self.infers_requests = False  # no name says which signal that is
        self.growing: list[MetricShift] = []


@dataclass(frozen=True, slots=True)
class MetricRead:
    start: datetime
    step_s: float
    signals: Mapping[str, Signal]
    series: Sequence[SweptSeries]
    judged: Judged
    requests: int

    @property
    def is_young(self) -> bool:
        """Whether there are data, and none of them are old enough to compare."""
        return bool(self.judged.short) and not self.judged.shifts


async def read_at(
    metrics: Metrics,
    signals: Sequence[Signal],
    window: Interval,
    products: Sequence[str],
    step_s: float,
) -> MetricRead:
    """The window and the time before it, in whole steps back from the end.

    So a window shorter than a step still holds the newest sample.
    """
    length = min(LONGEST_BASELINE, timedelta(seconds=step_s * BASELINE_STEPS))
    steps = math.ceil((window.end - window.start + length).total_seconds() / step_s)
    start = window.end - timedelta(seconds=step_s * steps)
    # Samples at the end of the window count, too.
    interval = Interval(start, window.end + timedelta(seconds=1))
    swept = await metrics.sweep(SweepQuery(signals, interval, step_s, products))
    by_name, series = understood(signals, swept.series)
    judged = _judged(series, by_name, window, start, step_s)
    return MetricRead(start, step_s, by_name, series, judged, swept.requests)


def _judged(
    series: Sequence[SweptSeries],
    signals: Mapping[str, Signal],
    window: Interval,
    read_from: datetime,
    step_s: float,
) -> Judged:
    judged = Judged()
    units, counting = units_of(signals, series), request_signals(signals, series)
    start, end = window.start.timestamp(), window.end.timestamp()
    for one in series:
        signal = signals[one.signal]
        begin = _filled_from(one, signal, read_from, step_s)
        points = [point for point in one.points if point[0] >= begin]
        # A sample is of the step before it: the first one within holds what began with the window.
        unit = units.get(one.signal, signal.unit)
        moved = shift(points, start - 0.5, end + 1, signal.role, unit, step_s, signal.worse)
        if moved is None:
            judged.short.setdefault(one.product, set()).add(signal.role)
            if one.points and one.points[-1][0] >= start:
                told = comparable_from(points or [(begin, 0.0)], step_s)
                judged.range_from[one.product] = max(told, judged.range_from.get(one.product, told))
            until = [point for point in points if point[0] < end + 1]
            stands = trajectory_of(until, signal.role, unit, signal.worse, signal.limit, step_s)
            if stands is not None:
                began = replace(stands, first_at=one.points[0][0])
                judged.standing.append((one.product, signal, began))
            continue
        if signal.worse == "down" and moved.usual <= 0:
            continue  # it cannot get worse, so it says nothing
        judged.shifts.append((one.product, signal, moved))
        if signal.name in counting:
            judged.infers_requests |= signal.role != "traffic"
            judged.requests[one.product] = max(judged.requests.get(one.product, 0.0), moved.middle)
    return judged


def _filled_from(series: SweptSeries, signal: Signal, read_from: datetime, step_s: float) -> float:
    if not series.points:
        return read_from.timestamp()
    return filled_from(series.points, signal, read_from.timestamp(), step_s)
