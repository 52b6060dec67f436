"""The baseline of a series: its median and its spread, with floors below which no change counts.

The trouble that people ask about may be older than the time they ask about. Then the time before
holds some of it, which must not pass for usual.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from tools.signals import Role, Worse

UNUSUAL: Final = 3.0  # spreads from the median: where a sample starts to count as unusual

_LEAST: Final = 5  # samples that show the baseline before the newest of them changed
_OLDEST: Final = (
    3 / 4,
    1 / 2,
    1 / 4,
)  # of the time before, taken for untroubled to try the rest by
_TAIL: Final = 0.05  # of the samples, on either side, does not make the spread wider
_MOSTLY: Final = 3 / 4  # of a trouble's samples are unusual; it may cease for a moment

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
_OWN_FLOOR: Final = 0.02  # of the largest value before: less is how it is rounded
# How much of a unit is one second, one whole, one core or one byte.
_SCALES: Final[Mapping[str, float]] = {
    "percent": 100.0,
    "%": 100.0,
    "milliseconds": 1e3,
    "ms": 1e3,
    "microseconds": 1e6,
    "us": 1e6,
    "nanoseconds": 1e9,
    "millicores": 1e3,
    "permille": 1e3,
    "minutes": 1 / 60,
    "min": 1 / 60,
    "hours": 1 / 3600,
    "h": 1 / 3600,
    "bits": 8.0,
    "kibibytes": 1 / 1024,
    "kib": 1 / 1024,
    "mebibytes": 1 / 1024**2,
    "mib": 1 / 1024**2,
    "gibibytes": 1 / 1024**3,
    "gib": 1 / 1024**3,
}


@dataclass(frozen=True, slots=True)
class Usual:
    """`spread` is never below what matters to people; `own_spread` has no unit to know that by."""

    middle: float
    spread: float
    own_spread: float

    def is_unusual(self, value: float, spreads: float = UNUSUAL, *, upwards: bool) -> bool:
        beyond = value - self.middle if upwards else self.middle - value
        return beyond >= spreads * self.spread


def usual_of(values: Sequence[float], role: Role, unit: str | None) -> Usual:
    """Of these values, at least one; their own spread is that of their middle half, or of their tails."""
    ordered = sorted(values)
    middle = median(ordered)
    half = quantile(ordered, 0.75) - quantile(ordered, 0.25)
    tails = (quantile(ordered, 1 - _TAIL) - quantile(ordered, _TAIL)) / 2
    own = max(half, tails, _OWN_FLOOR * max(abs(ordered[0]), abs(ordered[-1])), 1e-9)
    return Usual(middle, max(half, tails, least_spread(middle, role, unit)), own)


def untroubled(values: Sequence[float], role: Role, unit: str | None, worse: Worse) -> int:
    """The number of oldest values before a trouble that includes the newest; all without one.

    In time order. Only the ways that are `worse` count. Values so few that they do not affect the
    baseline are left in; a trouble longer than three quarters cannot be distinguished from it.
    """
    ways = [
        upwards for upwards in (True, False) if worse in ("either", "up" if upwards else "down")
    ]
    begun = [_begun(values, role, unit, upwards=upwards) for upwards in ways]
    return min(begun, default=len(values))


def quantile(values: Sequence[float], share: float) -> float:
    """Linear between the neighbours; `values` in order, at least one."""
    position = share * (len(values) - 1)
    below = int(position)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (position - below)


def scale_of(unit: str | None) -> float:
    """How much of this unit is one second, one whole, one core or one byte."""
    return _SCALES.get((unit or "").lower(), 1.0)


def least_spread(usual: float, role: Role, unit: str | None) -> float:
    """Below which nothing matters to people."""
    absolute, relative = _FLOORS.get(role, _OTHER_FLOOR)
    return max(absolute * scale_of(unit), relative * abs(usual), 1e-9)


def _begun(values: Sequence[float], role: Role, unit: str | None, *, upwards: bool) -> int:
    for number in _tried(len(values)):
        older = usual_of(values[:number], role, unit)
        if not all(older.is_unusual(value, upwards=upwards) for value in values[-2:]):
            continue
        begin = _mostly_unusual_from(values, number, older, upwards=upwards)
        # With the very first of the rest it may have begun earlier still.
        if begin == number and number > _LEAST:
            continue
        if len(values) - begin <= _TAIL * len(values):
            return len(values)
        kept = usual_of(values[:begin], role, unit)
        if _is_mostly_unusual(values[begin:], kept, upwards=upwards):
            return begin
    return len(values)


def _tried(number: int) -> Iterator[int]:
    tried = {max(_LEAST, int(number * share)) for share in _OLDEST}
    return (each for each in sorted(tried, reverse=True) if each <= number - 2)


def _mostly_unusual_from(
    values: Sequence[float], first: int, usual: Usual, *, upwards: bool
) -> int:
    begin, unusual = len(values) - 1, 0
    for at in range(len(values) - 1, first - 1, -1):
        if usual.is_unusual(values[at], upwards=upwards):
            unusual += 1
            if unusual >= _MOSTLY * (len(values) - at):
                begin = at
    return begin


def _is_mostly_unusual(values: Sequence[float], usual: Usual, *, upwards: bool) -> bool:
    unusual = sum(usual.is_unusual(value, upwards=upwards) for value in values)
    return unusual >= _MOSTLY * len(values)
