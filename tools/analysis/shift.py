"""How far a series left its baseline: robust, and two-sided.

The scorer is BARO's (https://arxiv.org/abs/2405.09330, |max(post) - median(pre)| / IQR(pre)), made
two-sided and with a spread that never falls below what matters to people.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from tools.analysis.usual import UNUSUAL, Usual, untroubled, usual_of
from tools.signals import Role, Worse

Points = Sequence[tuple[float, float]]

MIN_BASELINE: Final = 10  # samples before; fewer do not show a baseline
CAP: Final = 999.0  # a constant baseline makes any change infinite
_GAP_STEPS: Final = 3  # without a sample between two, the time between is unknown
_LONG_S: Final = 180.0  # from here on one sample is of so many requests that it is no chance spike

_FEWEST_BURSTS: Final = 3  # samples before that were as far away; fewer may be chance
_CHANCE: Final = 2.0  # standard deviations of how often they come
_AS_LARGE: Final = 1.25  # of the largest before
_AS_BEFORE: Final = 1.0  # spreads that such a burst counts as, at most

_FILLING: Final = frozenset[Role]({"cpu", "memory", "disk", "pool", "queue", "restarts"})


@dataclass(frozen=True, slots=True)
class Shift:
    """A window against the time before it.

    `high` and `low` are the extremes, without the single most extreme sample where there are three
    or more of a short time each. `most` and `least` were reached before. `up` and `down` are how
    many spreads they lie from `usual`; `since` is when the longest run of unusual samples began,
    None without one. `from_start`: it was under way when the window began; then `since` is when it
    began before, as far as there are samples (`began_before`: even earlier). `until` is from when on
    every sample was usual again (where none was unusual: nearer to usual than to the extreme), None
    while the newest two are not. `last` is the newest sample,
    of the moment `last_at`; `middle` the window's median, which says nothing of its end. `n` is the
    number of samples before, up to a trouble that the window's may be part of.
    """

    usual: float
    spread: float
    high: float
    low: float
    middle: float
    last: float
    last_at: float
    up: float
    down: float
    since: float | None
    from_start: bool
    began_before: bool
    until: float | None
    n: int
    most: float
    least: float
    own_spread: float

    @property
    def rise(self) -> float:
        """Its own spreads above the baseline, in any unit."""
        return min(CAP, (self.high - self.usual) / self.own_spread)

    @property
    def fall(self) -> float:
        return min(CAP, (self.usual - self.low) / self.own_spread)

    @property
    def record(self) -> float:
        """Its own spreads, in any unit, beyond the baseline's range; 0 inside it.

        A slow fall widens the spread, so below half of the range it counts as in `down`.
        """
        return max(
            self.rise if self.high > self.most else 0,
            self.fall if self.low < self.least else 0,
            self.down if 0 <= 2 * self.low < self.least else 0,
        )

    @property
    def size(self) -> float:
        """The larger of both ways."""
        return max(self.up, self.down)


def shift(
    points: Points,
    start: float,
    end: float,
    role: Role,
    unit: str | None,
    guard_s: float,
    worse: Worse = "either",
) -> Shift | None:
    """None when there is nothing in [start, end) or too little before `start - guard_s`.

    `guard_s` is the time between two samples. Of the way that is `worse` are `since` and `until`;
    of either the further one. A trouble that is older than the window does not count as baseline.
    """
    before = [value for at, value in points if at < start - guard_s]
    window = [(at, value) for at, value in points if start <= at < end]
    if len(before) < MIN_BASELINE or not window:
        return None
    before = before[: untroubled(before, role, unit, worse)]
    usual = usual_of(before, role, unit)
    high, low = _extremes(window, role, guard_s, before, usual)
    least = min(before)
    up, down = (high - usual.middle) / usual.spread, fall_of(usual, low, least)
    upwards = worse == "up" or (worse == "either" and up >= down)
    unusual = [usual.is_unusual(value, upwards=upwards) for _, value in window]
    since, from_start = _onset(window, unusual)
    began_before = False
    if from_start:
        since, began_before = _begun(points, start, usual, guard_s, upwards=upwards)
    halfway = max((up if upwards else down) / 2, 0.5)
    away = [usual.is_unusual(value, halfway, upwards=upwards) for _, value in window]
    return Shift(
        usual=usual.middle,
        spread=usual.spread,
        high=high,
        low=low,
        middle=median(value for _, value in window),
        last=window[-1][1],
        last_at=window[-1][0],
        up=min(CAP, up),
        down=min(CAP, down),
        since=since,
        from_start=from_start,
        began_before=began_before,
        until=_end(window, unusual if any(unusual) else away),
        n=len(before),
        most=max(before),
        least=least,
        own_spread=usual.own_spread,
    )


def _is_as_before(
    before: Sequence[float], window: Sequence[float], usual: Usual, *, upwards: bool
) -> bool:
    # Unusual samples came before, hardly smaller, and come no more often than chance has it.
    earlier = [value for value in before if usual.is_unusual(value, upwards=upwards)]
    now = [value for value in window if usual.is_unusual(value, upwards=upwards)]
    if len(earlier) < _FEWEST_BURSTS or not now:
        return False
    largest, size = (max(abs(value - usual.middle) for value in of) for of in (earlier, now))
    expected = len(earlier) * len(window) / len(before)
    is_as_often = len(now) <= expected + _CHANCE * math.sqrt(expected)
    return is_as_often and size <= _AS_LARGE * largest


def fall_of(usual: Usual, low: float, least: float) -> float:
    """Spreads below the baseline. A fall to a third counts like a rise to three times; a fall to
    zero is unbounded.

    Otherwise no fall of a non-negative value could exceed the median over the spread. A slow fall
    widens that spread itself, so below half of all earlier values half as much suffices.
    """
    fall = (usual.middle - low) / usual.spread
    enough = UNUSUAL / 2 if 2 * low < least else UNUSUAL
    if fall < enough or least < 0 or low < 0 or 2 * low >= usual.middle:
        return fall
    return CAP if low == 0 else min(CAP, fall * usual.middle / (2 * low))


def _extremes(
    window: Points, role: Role, step_s: float, before: Sequence[float], usual: Usual
) -> tuple[float, float]:
    values = sorted(value for _, value in window)
    skipped = 1 if len(values) >= 3 and step_s < _LONG_S else 0
    high, low = values[-1 - skipped], values[skipped]
    if role in _FILLING:
        newest = window[-1][1]
        high, low = max(high, newest), min(low, newest)
    near = _AS_BEFORE * usual.spread
    if _is_as_before(before, values, usual, upwards=True):
        high = min(high, usual.middle + near)
    if _is_as_before(before, values, usual, upwards=False):
        low = max(low, usual.middle - near)
    return high, low


def _end(window: Points, unusual: Sequence[bool]) -> float | None:
    """From when on all is normal again: a single normal sample at the end proves nothing."""
    if not any(unusual) or any(unusual[-2:]):
        return None
    newest = max(at for at, one in enumerate(unusual) if one)
    return window[newest + 1][0]


def _onset(window: Points, unusual: Sequence[bool]) -> tuple[float | None, bool]:
    """When the longest run of unusual samples began; one usual sample in between does not end it."""
    best: tuple[int, int] | None = None
    begun: int | None = None
    for at, (this, following) in enumerate(pairwise([*unusual, False])):
        if this and begun is None:
            begun = at
        if begun is not None and not this and not following:
            best = _longer(best, (begun, at))
            begun = None
    if begun is not None:
        best = _longer(best, (begun, len(unusual)))
    if best is None:
        return None, False
    return window[best[0]][0], best[0] == 0


def _begun(
    points: Points, start: float, usual: Usual, step_s: float, *, upwards: bool
) -> tuple[float, bool]:
    """When the run that the window begins with began, and whether that may be earlier still.

    It may be where nothing usual is known from shortly before.
    """
    ordered = [(at, usual.is_unusual(value, upwards=upwards)) for at, value in points]
    first = next(number for number, (at, _) in enumerate(ordered) if at >= start)
    for number in range(first - 1, -1, -1):
        if ordered[number][1]:
            first = number
        elif number < first - 1:
            break
    since = ordered[first][0]
    known_s = since - ordered[first - 1][0] if first else CAP * step_s
    return since, known_s > _GAP_STEPS * step_s


def _longer(one: tuple[int, int] | None, other: tuple[int, int]) -> tuple[int, int]:
    return other if one is None or other[1] - other[0] >= one[1] - one[0] else one
