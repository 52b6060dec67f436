"""How far a series left what is usual for it: robust, both ways, with floors below which nothing counts.

The scorer is BARO's (https://arxiv.org/abs/2405.09330, |max(post) - median(pre)| / IQR(pre)), made
two-sided and with a spread that never falls below what matters to people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from tools.signals import Role, Worse

Points = Sequence[tuple[float, float]]

MIN_BASELINE: Final = 10  # samples before; fewer say nothing about what is usual
CAP: Final = 999.0  # a constant baseline makes any change infinite
_LONG_S: Final = 180.0  # from here on one sample is of so many requests that it is no chance spike
UNUSUAL: Final = 3.0  # spreads from the median: where a sample starts to count as unusual

# The smallest spread by role: absolute, in seconds, ratios or cores, and relative to the median.
_FLOORS: Final[Mapping[Role, tuple[float, float]]] = {
    "latency": (0.005, 0.10),
    "errors": (0.002, 0.0),
    "cpu": (0.02, 0.10),
    "memory": (0.02, 0.05),
    "pool": (0.02, 0.10),
    "restarts": (0.3, 0.0),
    "queue": (0.5, 0.10),
}
_OTHER_FLOOR: Final = (0.0, 0.15)
_FILLING: Final = frozenset[Role]({"cpu", "memory", "disk", "pool", "queue", "restarts"})
# How much of a unit is one second, one whole or one core.
_SCALES: Final[Mapping[str, float]] = {
    "percent": 100.0,
    "%": 100.0,
    "milliseconds": 1e3,
    "ms": 1e3,
    "microseconds": 1e6,
    "us": 1e6,
    "nanoseconds": 1e9,
    "millicores": 1e3,
}


@dataclass(frozen=True, slots=True)
class Shift:
    """A window against the time before it.

    `high` and `low` are the extremes, without the single most extreme sample where there are three
    or more of a short time each. `most` and `least` were reached before. `up` and `down` are how
    many spreads they lie from `usual`; `since` is when the longest run of unusual samples began,
    None without one. `from_start`: it was under way when the window began. `until` is from when on
    every sample was usual again (where none was unusual: nearer to usual than to the extreme), None
    while the newest two are not. `last` is the newest sample,
    of the moment `last_at`; `middle` the window's median, which says nothing of its end. `n` is the
    number of samples before.
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
    until: float | None
    n: int
    most: float
    least: float

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

    `guard_s` is the time between two samples. Of the way that is `worse` are `since` and `until`; of
    either the further one.
    """
    before = [value for at, value in points if at < start - guard_s]
    window = [(at, value) for at, value in points if start <= at < end]
    if len(before) < MIN_BASELINE or not window:
        return None
    usual = median(before)
    spread = _spread(before, usual, role, unit)
    values = sorted(value for _, value in window)
    high, low = _extremes(window, role, guard_s)
    up, down = (high - usual) / spread, (usual - low) / spread
    most, least = max(before), min(before)
    upwards = worse == "up" or (worse == "either" and up >= down)
    unusual = _unusual(window, usual, UNUSUAL * spread, upwards=upwards)
    since, from_start = _onset(window, unusual)
    halfway = max((up if upwards else down) * spread / 2, spread / 2)
    return Shift(
        usual=usual,
        spread=spread,
        high=high,
        low=low,
        middle=median(values),
        last=window[-1][1],
        last_at=window[-1][0],
        up=min(CAP, up),
        down=min(CAP, down),
        since=since,
        from_start=from_start,
        until=_end(
            window, unusual if any(unusual) else _unusual(window, usual, halfway, upwards=upwards)
        ),
        n=len(before),
        most=most,
        least=least,
    )


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between the neighbours; `values` in order, at least one."""
    position = share * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (position - below)


def scale_of(unit: str | None) -> float:
    """How much of this unit is one second, one whole or one core."""
    return _SCALES.get((unit or "").lower(), 1.0)


def least_spread(usual: float, role: Role, unit: str | None) -> float:
    """Below which nothing matters to people."""
    absolute, relative = _FLOORS.get(role, _OTHER_FLOOR)
    return max(absolute * scale_of(unit), relative * abs(usual), 1e-9)


def _spread(before: Sequence[float], usual: float, role: Role, unit: str | None) -> float:
    ordered = sorted(before)
    middle = quantile(ordered, 0.75) - quantile(ordered, 0.25)
    tails = (quantile(ordered, 0.95) - quantile(ordered, 0.05)) / 2
    return max(middle, tails, least_spread(usual, role, unit))


def _extremes(window: Points, role: Role, step_s: float) -> tuple[float, float]:
    """The highest and lowest, a lone spike left out; a sample that stands for minutes is none.

    What fills up (a CPU, a pool) may have done so with the newest sample: that one counts alone.
    """
    values = sorted(value for _, value in window)
    skipped = 1 if len(values) >= 3 and step_s < _LONG_S else 0
    high, low = values[-1 - skipped], values[skipped]
    if role in _FILLING:
        newest = window[-1][1]
        high, low = max(high, newest), min(low, newest)
    return high, low


def _unusual(window: Points, usual: float, away: float, *, upwards: bool) -> Sequence[bool]:
    """Of each sample whether it is that far `away`."""
    sign = 1.0 if upwards else -1.0
    return [sign * (value - usual) >= away for _, value in window]


def _end(window: Points, unusual: Sequence[bool]) -> float | None:
    """From when on all is usual again: one usual sample at the end tells no end."""
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


def _longer(one: tuple[int, int] | None, other: tuple[int, int]) -> tuple[int, int]:
    return other if one is None or other[1] - other[0] >= one[1] - one[0] else one
