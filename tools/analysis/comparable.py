"""From when on a young series can be compared: its data has to be older than the range looked at."""

import math
from typing import Final

from tools.analysis.shift import MIN_BASELINE, Points
from tools.signals import USUAL_SPACING_S, Signal, rate_window_s

_MINUTE_S: Final = 60.0


def least_before_s(step_s: float) -> float:
    """How long a series has to be there before a range that it is to be compared in."""
    return MIN_BASELINE * step_s


def least_age_s(range_s: float, before_s: float) -> float:
    """How old data has to be when the newest `range_s` are compared and `before_s` come before them.

    Two samples more, as `comparable_from` has them.
    """
    return range_s + before_s + 2 * before_s / MIN_BASELINE


def comparable_from(points: Points, step_s: float) -> float:
    """The earliest beginning of a range, in seconds since the epoch, on a minute. At least one point.

    The last of the samples before is a step older than the range; another step is for a beginning
    that is looked at a minute early, as triage does with "since 14:05".
    """
    known = len(points) >= MIN_BASELINE
    enough = (
        points[MIN_BASELINE - 1][0] if known else points[0][0] + least_before_s(step_s) - step_s
    )
    return math.ceil((enough + 2 * step_s + 1.0) / _MINUTE_S) * _MINUTE_S


def filled_from(points: Points, signal: Signal, read_from: float, step_s: float) -> float:
    """From when on a rate is read over a window that is filled; what comes before is too small.

    That takes a window's length where the series began after `read_from`. In seconds since the epoch, as
    all of these. At least one point; the first value of a rate is of two samples.
    """
    begin = points[0][0]
    if signal.reading in ("gauge", "ratio") or begin <= read_from + step_s:
        return begin
    spacing_s = signal.spacing_s or USUAL_SPACING_S
    return begin - spacing_s + rate_window_s(step_s, spacing_s)
