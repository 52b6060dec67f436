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
from tools.analysis.usual import UNUSUAL, Usual, least_spread, usual_of
from tools.signals import Role, Worse

_HALF: Final = 0.5  # of what came at the same time yesterday: less is no chance
_SIDE: Final = 3  # samples on each side of a step; as many times two tell what was usual before it
_OTHER_STEPS: Final = 0.5  # of the step: the day has none that large beside it
_STAYS: Final = 0.9  # of the samples since the step lie beyond what was usual before it
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
    moved = _moved([(at, value) for at, value, _ in newest], before, Usual(usual, spread, spread))
    return replace(
        moved,
        up=0.0,
        down=max(UNUSUAL, down),
        least=min(expected for *_, expected in newest),
        since=since,
        from_start=since < start,
        began_before=is_all,
    )


def held_step(
    course: Points,
    start: float,
    end: float,
    role: Role,
    unit: str | None,
    worse: Worse,
    step_s: float,
) -> Shift | None:
    """None unless the level changed at once before `start`, by the most of all the day, and stayed there.

    A rhythm changes slowly, and what comes each hour has more than one such step.
    """
    known = [point for point in course if point[0] <= end + 1]
    values = [value for _, value in known]
    newest = [point for point in known if point[0] > start - step_s / 2]
    steps = {
        at: median(values[at : at + _SIDE]) - median(values[at - _SIDE : at])
        for at in range(2 * _SIDE, len(values) - max(_SIDE, len(newest)) + 1)
    }
    if len(values) < FEWEST or not steps or not newest:
        return None
    begin = max(steps, key=lambda at: abs(steps[at]))
    upwards, size = steps[begin] > 0, abs(steps[begin])
    others = (abs(step) for at, step in steps.items() if abs(at - begin) > _SIDE)
    if worse == ("down" if upwards else "up") or max(others, default=0.0) > _OTHER_STEPS * size:
        return None
    usual = usual_of(values[begin - 2 * _SIDE : begin], role, unit)
    beyond = [usual.is_unusual(value, upwards=upwards) for value in values[begin:]]
    if not all(beyond[-len(newest) :]) or sum(beyond) < _STAYS * len(beyond):
        return None
    since = known[begin][0]
    return replace(_moved(newest, values[:begin], usual), since=since, from_start=True)


def _moved(newest: Points, before: Sequence[float], usual: Usual) -> Shift:
    """The newest samples, which all lie beyond usual, against it. It began with the first."""
    values = [value for _, value in newest]
    return Shift(
        usual=usual.middle,
        spread=usual.spread,
        high=max(values),
        low=min(values),
        middle=median(values),
        last=values[-1],
        last_at=newest[-1][0],
        up=min(CAP, (max(values) - usual.middle) / usual.spread),
        down=min(CAP, fall_of(usual, min(values), min(before))),
        since=newest[0][0],
        from_start=False,
        began_before=False,
        until=None,
        n=len(before),
        most=max(before),
        least=min(before),
        own_spread=usual.own_spread,
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
