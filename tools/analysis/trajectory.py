"""A series without an earlier baseline: its state and its trend.

A recording, a new product or a new exporter begins with the trouble. Then only two things count: a
limit that is bad for any product, and a clear way from the series' begin to its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from tools.analysis.series_shape import FULL, SOME
from tools.analysis.shift import CAP, Points, Shift
from tools.analysis.usual import least_spread, scale_of
from tools.signals import Role, Signal, Worse

FEWEST: Final = 6  # samples; fewer show no way
_SHORTEST_S: Final = 120.0
CLEAR: Final = 3.0  # spreads from how it began
_TIMES: Final = 1.5  # how it began, at least
_NEARLY: Final = 0.9  # of a level: a single sample may be that low by chance
_SHARE: Final = 4  # of the series: its beginning and its end
MANY_FAIL: Final = 0.05  # of requests: no service calls that usual
_QUEUES: Final = frozenset[Role]({"cpu", "pool", "disk"})
_WHOLE: Final = frozenset({"percent", "%", "ratio"})
# https://github.com/prometheus/node_exporter/blob/master/docs/node-mixin/alerts/alerts.libsonnet
# NodeFilesystemSpaceFillingUp, critical: nothing left within four hours at this rate.
_RUNS_OUT_S: Final = 4 * 3600.0


@dataclass(frozen=True, slots=True)
class Trajectory:
    """`first` is how it began, at `first_at`, and `now` the median of its last quarter.

    `size` is how far it went, in spreads.
    `limit` is what it is beyond, None when it is not, or has none. `runs_out_s` is when nothing
    will be left of it, at the rate of this recording; None when that is far.
    """

    first: float
    first_at: float  # seconds since the epoch
    now: float
    size: float
    falls: bool
    limit: float | None
    runs_out_s: float | None


def trajectory_of(
    points: Points,
    role: Role,
    unit: str | None,
    worse: Worse,
    limit: float | None,
    step_s: float,
) -> Trajectory | None:
    """None without a statement: too few samples, no limit passed, no clear trend.

    `limit` is in seconds, ratios or pieces, for any unit of the series. A sparse series (samples in
    less than half of its `step_s`) has no known begin.
    """
    is_short = len(points) < FEWEST or points[-1][0] - points[0][0] < _SHORTEST_S
    if is_short or points[-1][0] - points[0][0] > 2 * step_s * len(points):
        return None
    values = [value for _, value in points]
    part = max(2, len(values) // _SHARE)
    early, late, falls = values[:part], values[-part:], worse == "down"
    first, now = max(early) if falls else min(early), median(late)
    size = _size(first, now, late, role, unit, falls=falls)
    # If the newest sample is below the limit again, the series is not at it.
    over = None if falls else _over(min(now, values[-1]), role, unit, limit)
    runs_out_s = _runs_out(points, first) if falls and size and role == "disk" else None
    if not size and over is None:
        return None
    return Trajectory(first, points[0][0], now, size, falls, over, runs_out_s)


def _size(
    first: float, now: float, late: Sequence[float], role: Role, unit: str | None, *, falls: bool
) -> float:
    spread = least_spread(first, role, unit)
    moved = (first - max(late)) if falls else (min(late) - first)
    low, high = sorted((abs(first), abs(now)))
    if moved < CLEAR * spread or high < _TIMES * low:
        return 0.0
    return min(CAP, abs(now - first) / spread)


def _over(now: float, role: Role, unit: str | None, limit: float | None) -> float | None:
    if role == "latency" and unit is None:
        return None  # seconds or milliseconds: no limit is known
    if limit is None and role in _QUEUES and (unit or "").lower() in _WHOLE:
        limit = FULL
    if limit is None or now < limit * scale_of(unit):
        return None
    return limit * scale_of(unit)


def _runs_out(points: Points, first: float) -> float | None:
    took_s, last = points[-1][0] - points[0][0], points[-1][1]
    left_s = last * took_s / (first - last) if first > last else _RUNS_OUT_S
    return left_s if left_s < _RUNS_OUT_S else None


def at_limit(moved: Shift, signal: Signal) -> Trajectory | None:
    """A share of failures that no product should have, or what is full, that did not change; None for any less.

    `moved` is its range against the time before.
    """
    falls, whole = signal.worse == "down", scale_of(signal.unit)
    if signal.worse == "either" or (moved.down if falls else moved.up) >= CLEAR:
        return None
    middle, last = ((whole - one if falls else one) / whole for one in (moved.middle, moved.last))
    level = min(middle, last / _NEARLY)
    limit = _limit_of(signal, level)
    if limit is None or level < limit:
        return None
    passed = (1 - limit if falls else limit) * whole
    return Trajectory(moved.usual, 0.0, moved.middle, 0.0, falls, passed, None)


def _limit_of(signal: Signal, level: float) -> float | None:
    """Where only its values show that it counts failures, they never are many."""
    if (signal.unit or "").lower() not in _WHOLE:
        return signal.limit if signal.unit is None and signal.is_inferred else None
    if signal.role == "errors":
        return MANY_FAIL if level >= MANY_FAIL and not signal.is_inferred else SOME
    if signal.worse == "down":
        return None
    return FULL if signal.role in _QUEUES else signal.limit


def is_small_part(limit: float | None, unit: str, *, falls: bool) -> bool:
    """Whether it is a small part of a whole. Without a unit it only is what the other products are below."""
    if unit.lower() not in _WHOLE:
        return not unit
    part = (limit or 0.0) / scale_of(unit)
    return (1 - part if falls else part) < MANY_FAIL
