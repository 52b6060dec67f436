"""The course of what moved most, for charts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from tools.analysis.course import course
from tools.analysis.usual import UNUSUAL
from tools.capabilities import Interval, SweptSeries
from tools.core.metric_sweep import Course, MetricShift, MetricSweep
from tools.output import clean_text
from tools.signals import Role
from tools.statistics import finite, rounded
from tools.timerange import instant_text

MOST_COURSES: Final = 4
COURSE_POINTS: Final = 20  # as many as a chart takes


def with_courses(
    output: MetricSweep, series: Sequence[SweptSeries], window: Interval, asked: str
) -> MetricSweep:
    """The same with a course for each role of a product, the product asked about first."""
    read = {(clean_text(one.product), clean_text(one.signal)): one.points for one in series}
    worst: dict[tuple[str, Role], MetricShift] = {}
    for one in sorted(output.shifts, key=lambda each: each.product != asked):
        if one.score >= UNUSUAL and (one.product, one.signal) in read:
            worst.setdefault((one.product, one.role), one)
    drawn = list(worst.values())[:MOST_COURSES]
    shifts = [
        one.model_copy(update={"course": _course(read[one.product, one.signal], one, window)})
        if one in drawn
        else one
        for one in output.shifts
    ]
    return output.model_copy(update={"shifts": shifts})


def _course(points: Sequence[tuple[float, float]], shift: MetricShift, window: Interval) -> Course:
    end = window.end
    begin = window.start - (end - window.start) / 2
    known = [(datetime.fromtimestamp(at_s, end.tzinfo), value) for at_s, value in points]
    since = [at for at, _ in known if shift.since and instant_text(at) == shift.since]
    kept = course([one for one in finite(known) if one[0] >= begin], COURSE_POINTS, since)
    return Course(
        before_end_s=[round((end - at).total_seconds()) for at, _ in kept],
        values=[rounded(value) for _, value in kept],
    )
