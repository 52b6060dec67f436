"""How recorded samples become values at steps: gauges as they are, counters as rates, histograms."""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from adapters.recorded.packs.recording import RecordedSeries
from tools.capabilities import Interval
from tools.signals import Combine, Signal

Points = Sequence[tuple[float, float]]

_SHARE: Final = 0.99
_USUAL_SPACING_S: Final = 60.0
_COMBINE: Final[Mapping[Combine, Callable[[Sequence[float]], float]]] = {
    "sum": math.fsum,
    "max": max,
    "min": min,
    "avg": lambda values: math.fsum(values) / len(values),
}


def read(
    signal: Signal,
    parts: Mapping[str, Sequence[RecordedSeries]],
    over: Sequence[RecordedSeries],
    interval: Interval,
    step_s: float,
) -> Points:
    """One value a step, where there is one. `parts` are a histogram's, or one series under ""."""
    steps = _steps(interval, step_s)
    own = [one for of_part in parts.values() for one in of_part]
    match signal.reading:
        case "gauge":
            return _held(own[0].points, steps, step_s)
        case "rate" | "increase" | "changes":
            return _grown(own[0].points, steps, step_s, signal.reading)
        case "ratio":
            return _divided(
                _held(own[0].points, steps, step_s),
                combined([_held(one.points, steps, step_s) for one in over], "sum"),
            )
        case "rate_ratio":
            return _divided(
                _grown(own[0].points, steps, step_s, "rate"),
                combined([_grown(one.points, steps, step_s, "rate") for one in over], "sum"),
            )
        case "mean":
            sums = [_grown(one.points, steps, step_s, "rate") for one in parts.get("_sum", ())]
            counts = [_grown(one.points, steps, step_s, "rate") for one in parts.get("_count", ())]
            return _divided(combined(sums, "sum"), combined(counts, "sum"))
        case "quantile":
            return _quantiles(parts.get("_bucket", ()), steps, step_s, _SHARE)


def spacing_of(points: Points) -> float:
    """The usual time between two samples in seconds."""
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    return median(gaps) if gaps else _USUAL_SPACING_S


def rate_of(points: Points, interval: Interval, step_s: float) -> Points:
    """A counter's growth a second, one value a step."""
    return _grown(points, _steps(interval, step_s), step_s, "rate")


def quantile_of(
    buckets: Sequence[RecordedSeries], share: float, interval: Interval, step_s: float
) -> Points:
    """As `histogram_quantile` over all of a histogram's buckets, one value a step."""
    return _quantiles(buckets, _steps(interval, step_s), step_s, share)


def combined(series: Sequence[Points], how: Combine) -> Points:
    if len(series) == 1:
        return series[0]
    at: dict[float, list[float]] = {}
    for points in series:
        for when, value in points:
            at.setdefault(when, []).append(value)
    return [(when, _COMBINE[how](values)) for when, values in sorted(at.items())]


def _steps(interval: Interval, step_s: float) -> Sequence[float]:
    start, end = interval.start.timestamp(), interval.end.timestamp()
    return [start + number * step_s for number in range(max(0, math.ceil((end - start) / step_s)))]


def _held(points: Points, steps: Sequence[float], step_s: float) -> Points:
    """The last sample at or before each step, no older than one and a half of the usual spacing."""
    oldest = max(step_s, 1.5 * spacing_of(points))
    times = [when for when, _ in points]
    found = []
    for step in steps:
        index = bisect_right(times, step) - 1
        if index >= 0 and step - times[index] < oldest:
            found.append((step, points[index][1]))
    return found


def _grown(points: Points, steps: Sequence[float], step_s: float, reading: str) -> Points:
    """Growth within the window that ends at each step; a reset starts again from nought."""
    window = max(step_s, 4 * spacing_of(points) if reading == "rate" else step_s)
    times = [when for when, _ in points]
    found = []
    for step in steps:
        first, last = bisect_right(times, step - window), bisect_right(times, step)
        inside = points[max(0, first - 1) : last]
        if len(inside) < 2:
            continue
        if reading == "changes":
            found.append((step, float(sum(a[1] != b[1] for a, b in pairwise(inside)))))
            continue
        grown = sum(b[1] - a[1] if b[1] >= a[1] else b[1] for a, b in pairwise(inside))
        seconds = inside[-1][0] - inside[0][0]
        found.append((step, grown / seconds if reading == "rate" else grown))
    return found


def _divided(upper: Points, lower: Points) -> Points:
    by = dict(lower)
    return [(when, value / by[when]) for when, value in upper if by.get(when)]


def _quantiles(
    buckets: Sequence[RecordedSeries], steps: Sequence[float], step_s: float, share: float
) -> Points:
    """As `histogram_quantile`: linear inside the bucket, the last finite bound above all."""
    rates: dict[float, dict[float, float]] = {}
    for bucket in buckets:
        bound = _bound(bucket.labels.get("le", ""))
        if bound is None:
            continue
        for when, rate in _grown(bucket.points, steps, step_s, "rate"):
            at = rates.setdefault(when, {})
            at[bound] = at.get(bound, 0.0) + rate
    found = ((when, _quantile(sorted(at.items()), share)) for when, at in sorted(rates.items()))
    return [(when, value) for when, value in found if value is not None]


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


def _quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    total = buckets[-1][1] if buckets else 0.0
    if total <= 0:
        return None
    below, floor = 0.0, 0.0
    for bound, count in buckets:
        if count >= share * total:
            if math.isinf(bound):
                return floor
            inside = (share * total - below) / (count - below) if count > below else 1.0
            return floor + (bound - floor) * inside
        below, floor = count, bound
    return None
