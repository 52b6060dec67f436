"""What of a sweep is unlike the last day, or yesterday, although it is as it was two hours ago."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tools.analysis.day import day_course, day_shift, fall_since_yesterday, held_step, with_day
from tools.analysis.shift import Points, Shift
from tools.analysis.trend import DAY_S
from tools.analysis.usual import UNUSUAL
from tools.capabilities import Interval
from tools.core.metric_history import LOAD, History, Shifted
from tools.signals import Signal

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
