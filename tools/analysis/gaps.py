"""Times without samples in a series that had them all along: what happened then is not known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from tools.analysis.shift import Points

STALE_STEPS: Final = 3.0  # without a sample before the range's end, a series is said to have ended
_HOLE_STEPS: Final = 2.5  # two that should be there are not; a failing scrape alone is no hole
_FEWEST: Final = 6  # samples; fewer do not show their interval


@dataclass(frozen=True, slots=True)
class Gap:
    """`since` is the last sample before it, `until` the first after; None: none came.

    Both are seconds since the epoch.
    """

    since: float
    until: float | None


def gap_in(points: Points, start: float, end: float, step_s: float) -> Gap | None:
    """The one that goes on at `end`, else the longest within [start, end]; None without one.

    None as well for a series that comes now and then, as one of failures or of a product that few use.
    """
    times = [at for at, _ in points if at <= end]
    if len(times) < _FEWEST:
        return None
    earlier = [at for at in times if at < start]
    known = earlier if len(earlier) >= _FEWEST else times
    if len(list(_holes(known, known[0], step_s))) > 1:
        return None
    if end - times[-1] > STALE_STEPS * step_s:
        return Gap(times[-1], None)
    holes = _holes(times, start, step_s)
    return max(holes, key=lambda hole: (hole.until or end) - hole.since, default=None)


def _holes(times: Sequence[float], start: float, step_s: float) -> Iterator[Gap]:
    for before, after in pairwise(times):
        if after - max(before, start) > _HOLE_STEPS * step_s:
            yield Gap(before, after)
