"""What a series is by its values: a counter, a share of a whole, a flag. Names only confirm it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import or_
from statistics import median
from typing import Final, Literal

from tools.analysis.shift import Points
from tools.analysis.usual import quantile
from tools.signals import UNKNOWN, USUAL, Role, Signal, Worse

Kind = Literal["counter", "ratio", "percent", "flag", ""]

_FILLING: Final = frozenset[Role]({"cpu", "memory", "disk", "pool"})
_FEWEST: Final = 20  # samples of all products; fewer show no shape
_AT_TOP: Final = 0.9  # of the whole: most samples of a share of successes are above
_NEARLY_ALL: Final = 0.99
_ROUNDING: Final = 0.01  # of the whole: a CPU's share of a window may exceed it by that
_STAYS: Final = 3  # samples in a row
FULL: Final = (
    0.9  # of a whole: what queues does so from here on; AWS recommends that alarm for a CPU
)
SOME: Final = 0.01  # of a whole: as a share of failures it may be usual, but shows no health
_UNLIKE: Final = 5  # times the others
_MOSTLY: Final = 0.75
_RESET: Final = 0.1  # of the value before: a counter starts again from nought
_GROWS: Final = 0.8  # of the steps of a counter that is in use
_FEWEST_STEPS: Final = 10
_CHI: Final = 2 * 0.455  # the median square of a difference, over the variance of a sample
_PEERS: Final = 3  # products of which one is unlike the others
_COUNTED: Final = 3  # products with samples, to take a metric for a count of requests
_EXTRAPOLATED: Final = 0.002
_NEARLY_WHOLE: Final = 0.1
_OVER_POISSON: Final = (0.2, 100.0)  # variance over mean of requests that arrive by themselves
# From this usual value on a duration is hardly in seconds: requests that take 20 s have timed out.
_UNITS_OF_DURATIONS: Final = ((2e7, "nanoseconds"), (2e4, "microseconds"), (20.0, "milliseconds"))


@dataclass(frozen=True, slots=True)
class Shape:
    """`good` of a share: its usual value is the good end. None where the values do not show it.

    `is_usage`: parts of a whole that is mostly far from full and gets full, as a CPU's does. `is_full`:
    one product is nearly full all the time, and the others are far from it. `others`: what they all are
    below, where one product is far beyond it all the time.
    """

    kind: Kind
    good: bool | None = None
    is_usage: bool = False
    is_full: bool = False
    others: float | None = None


def shape_of(series: Sequence[Points]) -> Shape:
    """The kind of a metric by the samples of all its products."""
    values = [value for points in series for _, value in points]
    if len(values) < _FEWEST or min(values) < 0:
        return Shape("")
    if all(value in (0, 1) for value in values):
        return Shape("flag", median(values) > 0) if any(values) else Shape("")
    if max(values) <= 1 and (share := _share(values, "ratio", 1.0)).kind:
        return share
    if max(values) <= 1 + _ROUNDING:
        return _usage(series, "ratio", 1.0)
    if _are_counters([points for points in series if len(points) > 1]):
        return Shape("counter")
    if max(values) <= 100 and (share := _share(values, "percent", 100.0)).kind:
        return share
    return _usage(series, "percent", 100.0) if max(values) <= 100 * (1 + _ROUNDING) else Shape("")


def _are_counters(series: Sequence[Points]) -> bool:
    """Whether all of them grow; one that stands still at what it counted may have stopped."""
    stands = [min(points)[1] > 0 and len({value for _, value in points}) == 1 for points in series]
    grows = [is_counter(points) for points in series]
    return any(grows) and all(map(or_, grows, stands))


def is_counter(points: Points) -> bool:
    """Whether it grows with nearly every step, from a value that it did not have at once, or resets."""
    steps = [(before, after) for (_, before), (_, after) in pairwise(points)]
    if len(steps) < _FEWEST_STEPS:
        return False
    falls = [step for step in steps if step[1] < step[0]]
    if any(after > _RESET * before for before, after in falls):
        return False
    return sum(after > before for before, after in steps) >= _GROWS * len(steps)


def growth_of(points: Points) -> Points:
    """A counter's growth a second between two samples; a reset starts again from nought."""
    return [
        (at, (value - before if value >= before else value) / (at - earlier))
        for (earlier, before), (at, value) in pairwise(points)
        if at > earlier
    ]


def with_shape(signal: Signal, series: Sequence[Points]) -> Signal:
    """The signal with what its values show: role, unit and which way is worse.

    A name that is known stays. Words in a name may be contradicted: a share of failures is not 1.
    """
    if signal.reading != "gauge":
        return signal
    shape = shape_of(series)
    if shape.is_usage and _is_of_usage(signal, shape):
        known = replace(signal, unit=shape.kind)
        return replace(known, worse="up", limit=FULL) if shape.is_full else known
    if shape.others is not None and signal.rank >= USUAL and signal.unit is None:
        is_unjudged = signal.role == "errors" or (signal.role == "other" and signal.rank == UNKNOWN)
        odd = replace(signal, worse="up", limit=shape.others, is_inferred=True)
        return odd if is_unjudged else signal
    if signal.rank < USUAL:
        return signal
    if shape.kind not in ("ratio", "percent") or shape.good is None:
        return signal
    worse: Worse = "down" if shape.good else "up"
    if signal.role == "errors":
        return replace(signal, worse=worse, unit=shape.kind)
    if signal.role != "other" or signal.rank != UNKNOWN:
        return signal
    return replace(signal, role="errors", worse=worse, unit=shape.kind, is_inferred=True)


def usual_number(series: Sequence[Points]) -> float | None:
    """How many events the median product usually counts between two samples, or in a minute.

    Their variance over their mean is near 1 where they arrive independently, as requests do. None where
    the values count no events: parts of one, levels that hardly vary, and bytes, which vary far more.
    """
    counts = _whole([[value for _, value in points] for points in series if len(points) >= _FEWEST])
    used = [one for one in counts if median(one) > 0]
    if len(used) < _COUNTED:
        return None
    dispersions = [
        median((after - before) ** 2 for before, after in pairwise(one)) / (_CHI * median(one))
        for one in used
    ]
    least, most = _OVER_POISSON
    return median(map(median, used)) if least <= median(dispersions) <= most else None


def _whole(series: Sequence[Sequence[float]]) -> Sequence[Sequence[float]]:
    """The values as whole numbers, of rates those of a minute; empty where they are neither."""
    values = [value for one in series for value in one]
    if any(value < 0 for value in values):
        return ()
    tenths = _share_of_whole(values, 10)
    for times in (1, 60):
        # A figure rounded to tenths is a whole number of sixtieths, too.
        if _share_of_whole(values, times) >= _NEARLY_ALL and (times == 1 or tenths < _NEARLY_ALL):
            return [[round(times * value) for value in one] for one in series]
    return ()


def _share_of_whole(values: Sequence[float], times: int) -> float:
    """Whole nearly, because PromQL's rate extrapolates to the ends of its window."""
    scaled = [times * value for value in values]
    whole = sum(
        abs(one - round(one)) <= min(_EXTRAPOLATED * max(1.0, one), _NEARLY_WHOLE) for one in scaled
    )
    return whole / len(values) if values else 0.0


def _is_of_usage(signal: Signal, shape: Shape) -> bool:
    if signal.role == "other":
        return signal.rank == UNKNOWN and signal.unit in (None, shape.kind)
    return signal.role in _FILLING and signal.unit is None


def unit_of_duration(series: Sequence[Points]) -> str | None:
    """The unit that usual values of durations are hardly without; None: seconds are possible."""
    middles = sorted(median(value for _, value in points) for points in series if points)
    if not middles:
        return None
    high = quantile(middles, _MOSTLY)
    return next((unit for least, unit in _UNITS_OF_DURATIONS if high >= least), None)


def _share(values: Sequence[float], kind: Literal["ratio", "percent"], whole: float) -> Shape:
    """Near the whole and never above it, or mostly nought with parts of one in between."""
    ordered = sorted(values)
    low = quantile(ordered, 1 - _MOSTLY)
    reaches = ordered[-1] == whole or quantile(ordered, 0.5) >= _NEARLY_ALL * whole
    if low >= _AT_TOP * whole and reaches:
        return Shape(kind, good=True)
    is_nought = quantile(ordered, 0.5) == 0
    has_parts = any(value % 1 for value in values)
    if kind == "ratio" and is_nought and has_parts:
        return Shape(kind, good=False)
    return Shape("")


def _usage(series: Sequence[Points], kind: Literal["ratio", "percent"], whole: float) -> Shape:
    values = [value for points in series for _, value in points]
    is_partly = any(value % 1 for value in values) and median(values) <= whole / 2
    ordered = [sorted(value for _, value in points) for points in series]
    least = sorted(quantile(one, 1 - _MOSTLY) for one in ordered)
    if is_partly and len(least) >= _PEERS:
        if least[-2] <= whole / 2 and least[-1] >= FULL * whole:
            return Shape(kind, is_usage=True, is_full=True)
        most = sorted(quantile(one, _MOSTLY) for one in ordered)[-2]
        if most <= SOME * whole <= least[-1] and least[-1] >= _UNLIKE * most:
            return Shape("", others=SOME * whole)
    stays = (
        all(value >= _NEARLY_ALL * whole for value in three)
        for points in series
        for three in _in_a_row([value for _, value in points])
    )
    return Shape(kind, is_usage=True) if is_partly and any(stays) else Shape("")


def _in_a_row(values: Sequence[float]) -> Iterator[Sequence[float]]:
    return (values[at : at + _STAYS] for at in range(len(values) - _STAYS + 1))
