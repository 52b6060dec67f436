"""The newest values of a series against its last day, and against the same time yesterday.

A comparison with two hours takes a trouble that is older than them for usual.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Final

from tools.analysis.shift import CAP, MIN_BASELINE, Points, Shift, fall_of, shift
from tools.analysis.trend import DAY_S
from tools.analysis.usual import UNUSUAL, Usual, least_spread
from tools.signals import Role, Worse

_HALF: Final = 0.5  # of what came at the same time yesterday: less is no chance
FEWEST: Final = 24  # of the day; fewer do not show a baseline


def medians(points: Points, end: float, step_s: float) -> Points:
    """The median of each step, counted back from `end`, at the end of the step."""
    found: dict[int, list[float]] = {}
    for at, value in points:
        if at <= end + 1:
            found.setdefault(max(0, int((end - at) // step_s)), []).append(value)
    return [(end - number * step_s, median(of)) for number, of in sorted(found.items())[::-1]]


def day_course(day: Points, recent: Points, end: float, step_s: float) -> Points:
    """Coarse samples of the day up to `recent`, and then the medians, which are not chance."""
    newest = medians(recent, end, step_s)
    begin = newest[0][0] if newest else end + 1
    return [*((at, value) for at, value in day if at < begin - step_s / 2), *newest]


def day_shift(
    course: Points,
    start: float,
    end: float,
    role: Role,
    unit: str | None,
    worse: Worse,
    step_s: float,
) -> Shift | None:
    """None unless the middle and the newest of [start, end] are beyond that day's baseline.

    They also are if the change began long before `start`.
    """
    if len(course) < FEWEST:
        return None
    moved = shift(course, start - 0.5, end + 1, role, unit, step_s, worse)
    if moved is None:
        return None
    usual = Usual(moved.usual, moved.spread, moved.own_spread)
    values = (moved.middle, moved.last)
    up = min((value - usual.middle) / usual.spread for value in values)
    down = min(fall_of(usual, value, moved.least) for value in values)
    is_held = (worse != "down" and up >= UNUSUAL) or (worse != "up" and down >= UNUSUAL)
    return moved if is_held else None


def fall_since_yesterday(
    course: Points, start: float, end: float, role: Role, unit: str | None, step_s: float
) -> Shift | None:
    """None unless there is less than half as much, all the time up to `end`, as yesterday.

    `usual` is what came then, and `since` is when it was that little for the first time.
    """
    pairs = _beside_yesterday(course, step_s)
    newest = [pair for pair in pairs if pair[0] > start - step_s / 2]
    before = [value for at, value in course if at < end - DAY_S / 2]
    if not newest or len(before) < MIN_BASELINE:
        return None
    noise = _noise(before)
    if not all(_is_short(value, expected, noise) for _, value, expected in newest):
        return None
    since = _short_since(pairs, newest[0][0], noise)
    is_all = since <= pairs[0][0]
    if is_all and not all(_is_short(value, median(before), noise) for _, value, _ in newest):
        return None  # yesterday was the odd one
    usual = median(expected for *_, expected in newest)
    low = min(value for _, value, _ in newest)
    spread = max(noise, least_spread(usual, role, unit))
    down = min(CAP, (usual - low) / spread * (usual / (2 * low) if low > 0 else CAP))
    high = max(value for _, value, _ in newest)
    return Shift(
        usual=usual,
        spread=spread,
        high=high,
        low=low,
        middle=median(value for _, value, _ in newest),
        last=newest[-1][1],
        last_at=newest[-1][0],
        up=0.0,
        down=max(UNUSUAL, down),
        since=since,
        from_start=since < start,
        began_before=is_all,
        until=None,
        n=len(before),
        most=max(before),
        least=min(expected for *_, expected in newest),
        own_spread=spread,
    )


def with_day(moved: Shift, day: Points, start: float) -> Shift:
    """The shift with the part of that day before its onset added to the baseline."""
    begin = start if moved.since is None else min(start, moved.since)
    before = [value for at, value in day if at < begin]
    if not before:
        return moved
    return replace(moved, most=max(moved.most, *before), least=min(moved.least, *before))


def _beside_yesterday(course: Points, step_s: float) -> Sequence[tuple[float, float, float]]:
    yesterday = {round((at + DAY_S) / step_s): value for at, value in course}
    begin = course[0][0] + DAY_S if course else 0.0
    return [
        (at, value, expected)
        for at, value in course
        if at >= begin and (expected := _expected(yesterday, at, step_s)) is not None
    ]


def _short_since(pairs: Sequence[tuple[float, float, float]], newest: float, noise: float) -> float:
    """When it was that little for the first time without a break up to `newest`."""
    since = newest
    for at, value, expected in reversed(pairs):
        if at < since and not _is_short(value, expected, noise):
            break
        since = min(since, at)
    return since


def _expected(yesterday: dict[int, float], at: float, step_s: float) -> float | None:
    number = round(at / step_s)
    around = [yesterday[n] for n in (number - 1, number, number + 1) if n in yesterday]
    return min(around) if len(around) > 1 else None


def _is_short(value: float, expected: float, noise: float) -> bool:
    return 0 <= value < _HALF * expected and expected - value >= UNUSUAL * noise


def _noise(values: Sequence[float]) -> float:
    return median(abs(after - before) for before, after in pairwise(values))
