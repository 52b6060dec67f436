"""What moved against the last day and the same time of earlier days, and what grows for hours."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Final

from tools.analysis.day import (
    FEWEST,
    day_course,
    day_shift,
    fall_since_yesterday,
    held_step,
    with_day,
)
from tools.analysis.series_shape import growth_of, is_counter
from tools.analysis.shift import MIN_BASELINE, Points, Shift
from tools.analysis.trend import DAY_S, OVER_S, Trend, trend
from tools.analysis.usual import UNUSUAL
from tools.capabilities import Interval, Metrics, SweepQuery, SweptSeries
from tools.core.metric_sweep import MetricShift
from tools.core.sweep_arguments import at_text
from tools.errors import ToolError
from tools.output import clean_text
from tools.signals import ROLES, Role, Signal
from tools.statistics import rounded

Shifted = tuple[str, Signal, Shift]

LONGEST: Final = timedelta(hours=30)  # yesterday, and the hours before that time of the day
STEP_S: Final = 600.0
MOST_SIGNALS: Final = 60
_ROOM: Final = 0.25  # of the change
_LEAST_DRIFT: Final = 0.02  # over the time before and the range
_WEEK: Final = timedelta(days=7)
# What people's habits move. Of latency two earlier days must agree; failures are never usual.
LOAD: Final = frozenset[Role]({"traffic", "cpu", "network", "pool", "queue", "disk", "other"})
_FILLING: Final = frozenset[Role]({"memory", "disk", "pool", "queue", "other"})


@dataclass(frozen=True, slots=True)
class History:
    """Series of the last day and of a week ago, by signal and product. Empty where they could not be read."""

    points: Mapping[tuple[str, str], Points] = field(default_factory=dict)
    week_ago: Mapping[tuple[str, str], Points] = field(default_factory=dict)
    counters: frozenset[str] = frozenset()  # signals that only their values show to be one
    requests: int = 0
    notes: Sequence[str] = ()
    step_s: float = STEP_S
    unread: str = ""  # why the last day could not be read
    below_yesterday: frozenset[tuple[str, str]] = frozenset()  # traffic that fell behind it

    def day_of(self, signal: Signal, product: str) -> Points:
        """A series of the last day as it is compared: a counter by its growth."""
        points = self.points.get((signal.name, product), ())
        return growth_of(points) if signal.name in self.counters else points

    def begin(self, end: datetime) -> datetime | None:
        """From when on series are compared: the median of where they begin; None if that is too late."""
        begins = sorted(points[0][0] for points in self.points.values() if points)
        if not begins:
            return None
        middle = datetime.fromtimestamp(begins[len(begins) // 2], end.tzinfo)
        return middle if end - middle >= timedelta(seconds=FEWEST * self.step_s) else None

    def without_time_of_day(
        self, shifted: Sequence[Shifted], window: Interval
    ) -> tuple[list[Shifted], dict[str, str]]:
        """The shifts without those usual at this time of day, and the roles of the latter by
        product.
        """
        kept: list[Shifted] = []
        roles: dict[str, set[Role]] = {}
        for product, signal, moved in shifted:
            is_usual = moved.size >= UNUSUAL and self._is_time_of_day(
                product, signal, moved, window
            )
            if is_usual:
                roles.setdefault(clean_text(product), set()).add(signal.role)
            kept.append((product, signal, _at_rest(moved) if is_usual else moved))
        return kept, {product: " ".join(sorted(of)) for product, of in sorted(roles.items())}

    def _is_time_of_day(self, product: str, signal: Signal, moved: Shift, window: Interval) -> bool:
        """Whether it went as far at the same time yesterday, and a week ago where that is needed."""
        if signal.role == "errors":
            return False
        key = (signal.name, product)
        day, week = self.day_of(signal, product), self.week_ago.get(key, ())
        if signal.name in self.counters:
            week = growth_of(week)
        ago = (_around(day, window, DAY_S), _around(week, window, 0.0))
        if key in self.below_yesterday:
            ago = ((), ago[1])  # a day of the week, or yesterday was the odd one
        agree = [_is_as_far(values, signal, moved) for values in ago if values]
        needed = 1 if signal.role in LOAD else 2
        return len(agree) >= needed and all(agree)

    def trends(self, signals: Mapping[str, Signal], end: datetime) -> Iterator[MetricShift]:
        """Of what fills up, whether it moved within the range or not."""
        for (name, product), points in self.points.items():
            one = signals[name]
            is_counted = name in self.counters and _was_counter(points, end)
            if one.role in _FILLING and not is_counted:
                found = trend(points, end.timestamp(), one.role, one.unit, one.worse, one.limit)
                if found is not None:
                    yield _growing(product, one, found, end)


async def read_history(
    metrics: Metrics,
    signals: Mapping[str, Signal],
    window: Interval,
    products: Sequence[str],
    step_s: float,
    shifted: Sequence[Shifted],
    recent: Sequence[SweptSeries],
    counters: frozenset[str],
) -> History:
    step_s = max(STEP_S, step_s)
    chosen = [
        replace(one, reading="gauge") if one.name in counters else one
        for one in _most_telling(signals, shifted, recent)
    ]
    if not chosen:
        return History(step_s=step_s)
    # From a whole number of steps before the end, so that the newest sample is read.
    steps = LONGEST.total_seconds() // step_s
    start = window.end - timedelta(seconds=steps * step_s)
    try:
        points, requests = await _read(
            metrics, chosen, Interval(start, window.end), products, step_s
        )
    except ToolError as error:
        return History(step_s=step_s, unread=f"the last day could not be read: {error}")
    return History(points, {}, counters, requests, step_s=step_s)


def _most_telling(
    signals: Mapping[str, Signal], shifted: Sequence[Shifted], recent: Sequence[SweptSeries]
) -> Sequence[Signal]:
    moved = moved_signals(shifted) | {
        signal.name for _, signal, one in shifted if one.record >= UNUSUAL
    }
    moved |= {one.signal for one in recent if _drifts(one, signals[one.signal])}
    ordered = sorted(
        signals.values(),
        key=lambda one: (one.name not in moved, ROLES.index(one.role), one.rank, one.name),
    )
    return ordered[:MOST_SIGNALS]


def moved_signals(shifted: Sequence[Shifted]) -> frozenset[str]:
    """The signals that left their baseline, of any product."""
    return frozenset(signal.name for _, signal, one in shifted if one.size >= UNUSUAL)


async def with_week_ago(
    history: History,
    metrics: Metrics,
    signals: Mapping[str, Signal],
    window: Interval,
    products: Sequence[str],
    shifted: Sequence[Shifted],
) -> History:
    """The same with what moved as it was at the window's time a week ago, at the window's own times."""
    moved = moved_signals(shifted)
    chosen = [
        replace(one, reading="gauge") if name in history.counters else one
        for name, one in signals.items()
        if name in moved
    ][:MOST_SIGNALS]
    if not chosen or history.unread:
        return history
    then = Interval(window.start - _WEEK, window.end - _WEEK)
    try:
        earlier, requests = await _read(metrics, chosen, then, products, history.step_s)
    except ToolError as error:
        return replace(history, notes=[f"a week ago could not be read: {error}"])
    moved_up = {
        key: [(at + _WEEK.total_seconds(), value) for at, value in points]
        for key, points in earlier.items()
    }
    return replace(history, week_ago=moved_up, requests=history.requests + requests)


async def _read(
    metrics: Metrics,
    signals: Sequence[Signal],
    interval: Interval,
    products: Sequence[str],
    step_s: float,
) -> tuple[Mapping[tuple[str, str], Points], int]:
    wide = Interval(interval.start, interval.end + timedelta(seconds=1))
    swept = await metrics.sweep(SweepQuery(signals, wide, step_s, products))
    return {(one.signal, one.product): one.points for one in swept.series}, swept.requests


def _drifts(series: SweptSeries, signal: Signal) -> bool:
    values = [value for _, value in series.points]
    size = len(values) // 4
    if signal.role not in _FILLING or not size:
        return False
    if signal.reading == "rate" and signal.role == "other":
        return True  # it grows with every step
    parts = [median(values[size * n : size * (n + 1)]) for n in range(4)]
    steps = [after - before for before, after in pairwise(parts)]
    is_one_way = all(step > 0 for step in steps) or all(step < 0 for step in steps)
    return is_one_way and abs(parts[-1] - parts[0]) >= _LEAST_DRIFT * abs(parts[-1])


def _was_counter(points: Points, end: datetime) -> bool:
    older = [point for point in points if point[0] < end.timestamp() - OVER_S]
    return len(older) < MIN_BASELINE or is_counter(older)


def _growing(product: str, signal: Signal, found: Trend, end: datetime) -> MetricShift:
    return MetricShift(
        product=clean_text(product),
        role=signal.role,
        signal=clean_text(signal.name),
        unit=signal.unit,
        usual=rounded(found.first),
        worst=rounded(found.now),
        last=rounded(found.now),
        direction="up" if found.now > found.first else "down",
        score=rounded(found.spreads, 3),
        beyond_all_before=True,
        since=at_text(found.since, end),
        since_before=True,
        under_way=True,
        inferred=signal.is_inferred or None,
        full_in_s=None if found.full_in_s is None else round(found.full_in_s),
    )


def _around(points: Points, window: Interval, back_s: float) -> Sequence[float]:
    start, end = window.start.timestamp() - back_s, window.end.timestamp() - back_s
    return [value for at, value in points if start - STEP_S <= at <= end + STEP_S]


def _is_as_far(values: Sequence[float], signal: Signal, moved: Shift) -> bool:
    falls = signal.worse == "down" or (signal.worse == "either" and moved.down > moved.up)
    if falls:
        return min(values) <= moved.low + _ROOM * (moved.usual - moved.low)
    return max(values) >= moved.high - _ROOM * (moved.high - moved.usual)


def _at_rest(moved: Shift) -> Shift:
    return replace(moved, up=0.0, down=0.0, high=moved.usual, low=moved.usual)


_GONE: Final = 0.02  # of what is usual: less traffic than that is none
_LEAST_S: Final = 1200.0  # a shorter range holds no two medians of the steps of a day


@dataclass(frozen=True, slots=True)
class DayLook:
    """Compares the range with the last day. `units` are those of durations without one, by signal."""

    past: History
    recent: Mapping[tuple[str, str], Points]  # what the sweep read, by signal and product
    window: Interval
    units: Mapping[str, str | None]

    def compared(
        self, shifted: Sequence[Shifted], growing: Collection[tuple[str, str]]
    ) -> tuple[list[Shifted], History]:
        """The shifts; each one without a shift is replaced by the comparison with the day, if there
        is one.

        `growing` are known to grow, by signal and product: that says more.
        """
        found: list[Shifted] = []
        below: set[tuple[str, str]] = set()
        for product, signal, moved in shifted:
            key = (signal.name, product)
            day = self.past.day_of(signal, product)
            is_still = key not in growing and not _is_moved(signal, moved)
            other = self._of_day(product, signal, day) if is_still else None
            if other is None and is_still and counts_work(signal):
                other = self._since_yesterday(product, signal, day)
                below |= {key} if other is not None else set()
            start = self.window.start.timestamp()
            found.append((product, signal, other or with_day(moved, day, start)))
        return found, replace(self.past, below_yesterday=frozenset(below))

    def _of_day(self, product: str, signal: Signal, day: Points) -> Shift | None:
        start, end = self.window.start.timestamp(), self.window.end.timestamp()
        if end - start < _LEAST_S:
            return None
        unit = self.units.get(signal.name, signal.unit)
        course, step_s = self._course(product, signal, day), self.past.step_s
        stepped = held_step(course, start, end, signal.role, unit, signal.worse, step_s)
        # What people's habits move is compared with yesterday as well, where that is known.
        if signal.role in LOAD and not (day and day[0][0] <= start - DAY_S):
            return stepped if stepped is not None and has_stopped(signal, stepped) else None
        moved = day_shift(course, start, end, signal.role, unit, signal.worse, step_s)
        return moved or stepped

    def _since_yesterday(self, product: str, signal: Signal, day: Points) -> Shift | None:
        start, end = self.window.start.timestamp(), self.window.end.timestamp()
        if not day or end - start < _LEAST_S:
            return None
        course, step_s = self._course(product, signal, day), self.past.step_s
        return fall_since_yesterday(course, start, end, signal.role, signal.unit, step_s)

    def _course(self, product: str, signal: Signal, day: Points) -> Points:
        recent = self.recent.get((signal.name, product), ())
        return day_course(day, recent, self.window.end.timestamp(), self.past.step_s)


def _is_moved(signal: Signal, moved: Shift) -> bool:
    if signal.worse == "either":
        return moved.size >= UNUSUAL
    return (moved.up if signal.worse == "up" else moved.down) >= UNUSUAL


def counts_work(signal: Signal) -> bool:
    """Whether it tells how much is done: requests, or a counter that nobody named."""
    return signal.role == "traffic" or (signal.role == "other" and signal.reading == "rate")


def has_stopped(signal: Signal, moved: Shift) -> bool:
    """Whether what is done fell to nothing, as never before, and is still there."""
    return counts_work(signal) and moved.last <= _GONE * moved.usual < moved.least
