"""A series in few points, to be drawn: none is made up, and the peaks and the onset stay."""

import math
from collections.abc import Collection, Sequence
from datetime import datetime
from statistics import median

from tools.statistics import FinitePoint


def course(
    points: Sequence[FinitePoint], most: int, keep: Collection[datetime] = ()
) -> list[FinitePoint]:
    """At most `most` (at least 1) of the points, one of each equal stretch of time, in time order.

    It is the one at a moment of `keep`, else the one furthest from the series' median.
    """
    ordered = sorted(dict(points).items())
    if len(ordered) <= most:
        return ordered
    found = by_stretch(ordered, ordered[0][0], ordered[-1][0], most, keep)
    return [found[number] for number in sorted(found)]


def by_stretch(
    points: Sequence[FinitePoint],
    first: datetime,
    last: datetime,
    number: int,
    keep: Collection[datetime] = (),
) -> dict[int, FinitePoint]:
    """The time from `first` to `last` in so many equal stretches; those without a point are left out."""
    width_s = (last - first).total_seconds() / number or 1.0
    middle = median(value for _, value in points) if points else 0.0
    found: dict[int, FinitePoint] = {}
    for at, value in points:
        place = min(number - 1, math.floor((at - first).total_seconds() / width_s))
        known = found.get(place)
        if known is None or (
            known[0] not in keep and (at in keep or abs(value - middle) > abs(known[1] - middle))
        ):
            found[place] = at, value
    return found
