"""A series that grows for hours or a day: too slow for a comparison with the last hour, and clear all the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from tools.analysis.shift import CAP, Points
from tools.analysis.usual import UNUSUAL, least_spread, scale_of
from tools.signals import Role, Worse

DAY_S: Final = 86_400.0
OVER_S: Final = 6 * 3600.0
_SPANS_S: Final = (OVER_S, DAY_S)
_PARTS: Final = 12  # of a span
_FEWEST_PARTS: Final = 6
_STEADY: Final = 0.8  # of the steps from one half hour to the next go the same way
_TIMES: Final = 1.5  # as much as it was, at least
_TIMES_UNKNOWN: Final = 3.0  # the same of what may be load
_AS_YESTERDAY: Final = 0.5  # of the growth: then it is the time of day
_WHOLE: Final = frozenset({"percent", "%", "ratio"})


@dataclass(frozen=True, slots=True)
class Trend:
    """From `first` at `since` to `now`, in `spreads`. `full_in_s`: until it reaches its limit, if it has one."""

    first: float
    now: float
    since: float
    spreads: float
    full_in_s: float | None


def trend(
    points: Points, end: float, role: Role, unit: str | None, worse: Worse, limit: float | None
) -> Trend | None:
    """None without a steady growth (or fall, where that is worse) over six hours or a day up to `end`.

    Also where it went as far at the same time yesterday.
    """
    found = (_trend(points, end, over_s, role, unit, worse, limit) for over_s in _SPANS_S)
    return next((one for one in found if one is not None), None)


def _trend(
    points: Points,
    end: float,
    over_s: float,
    role: Role,
    unit: str | None,
    worse: Worse,
    limit: float | None,
) -> Trend | None:
    parts = _parts(points, end - over_s, end)
    if len(parts) < _FEWEST_PARTS:
        return None
    first, now = parts[0], parts[-1]
    rises = now > first
    if worse == ("down" if rises else "up") or not _is_steady(parts, rises=rises):
        return None
    low, high = sorted((abs(first), abs(now)))
    spread = max(_noise(points, end, over_s, parts), least_spread(first, role, unit))
    spreads = min(CAP, abs(now - first) / spread)
    times = _TIMES_UNKNOWN if role == "other" else _TIMES
    if (
        spreads < UNUSUAL
        or high < times * low
        or _was_so_yesterday(points, end, over_s, now - first)
    ):
        return None
    since = next(at for at, _ in points if at >= end - over_s)
    reached = (max if rises else min)(value for at, value in points if since <= at <= end)
    full_in_s = _full_in_s(first, now, reached, end - since, unit, limit)
    return Trend(first, now, since, spreads, full_in_s)


def _parts(points: Points, start: float, end: float) -> Sequence[float]:
    part_s = (end - start) / _PARTS
    found: dict[int, list[float]] = {}
    for at, value in points:
        if start <= at <= end:
            found.setdefault(int((at - start) // part_s), []).append(value)
    return [median(values) for _, values in sorted(found.items())]


def _is_steady(parts: Sequence[float], *, rises: bool) -> bool:
    steps = [after - before for before, after in pairwise(parts)]
    same = sum((step > 0) is rises and step != 0 for step in steps)
    return same >= _STEADY * len(steps)


def _noise(points: Points, end: float, over_s: float, parts: Sequence[float]) -> float:
    start = end - over_s
    recent = [(at, value) for at, value in points if start <= at <= end]
    begin, took = recent[0][0], max(1.0, recent[-1][0] - recent[0][0])
    steps = [
        abs((after - before) - (parts[-1] - parts[0]) * (later - earlier) / took)
        for (earlier, before), (later, after) in pairwise(recent)
        if begin <= earlier
    ]
    return median(steps) if steps else 0.0


def _was_so_yesterday(points: Points, end: float, over_s: float, growth: float) -> bool:
    parts = _parts(points, end - DAY_S - over_s, end - DAY_S)
    if len(parts) < _FEWEST_PARTS:
        return False
    return (parts[-1] - parts[0]) * growth > 0 and abs(parts[-1] - parts[0]) >= (
        _AS_YESTERDAY * abs(growth)
    )


def _full_in_s(
    first: float,
    now: float,
    reached: float,
    took_s: float,
    unit: str | None,
    limit: float | None,
) -> float | None:
    """None if there is no limit, or if one sample reached it: it was full already."""
    if now < first:
        return now * took_s / (first - now) if reached > 0 else None
    if limit is None and (unit or "").lower() in _WHOLE:
        limit = 1.0
    whole = None if limit is None else limit * scale_of(unit)
    if whole is None or reached >= whole:
        return None
    return (whole - now) * took_s / (now - first)
