"""A chart of a metric as a value: a few lines over time, the baseline, and the onset."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise

from tools.analysis.course import by_stretch, course

Point = tuple[datetime, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One series, its finite points in time order. Its name may be anybody's words."""

    name: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Of one result, number `evidence`; 0: of none that bears one. `usual` is its baseline's median.

    At `since` something began: what, `event` says in a word.
    """

    evidence: int
    product: str
    metric: str
    unit: str
    lines: tuple[Line, ...]
    usual: float | None = None
    since: datetime | None = None
    event: str = "onset"
    role: str = ""  # of the signal, where the tool says it


@dataclass(frozen=True, slots=True)
class Column:
    """One place on the axis of time, with a value for each line that is drawn."""

    at: datetime
    values: tuple[float, ...]


def columns(chart: Chart, most: int) -> tuple[tuple[Line, ...], tuple[Column, ...]]:
    """The lines to draw, and their values side by side in at most `most` columns.

    For one line the columns are some of its points. Several lines have samples at different times:
    there a column is a stretch of time, and holds each line's point furthest from its median;
    stretches without one of them are left out. If too few remain, only the first line is drawn.
    """
    drawn = tuple(line for line in chart.lines if line.points)
    if len(drawn) > 1:
        found = _side_by_side(drawn, most)
        if len(found) > 1:
            return drawn, found
    if not drawn:
        return (), ()
    points = course(drawn[0].points, most, [chart.since] if chart.since else [])
    return drawn[:1], tuple(Column(at, (value,)) for at, value in points)


def around(before: Chart | None, after: Chart | None, at: datetime, event: str) -> Chart | None:
    """The first line of both in one, with what happened between them; None where both are missing."""
    known = [each for each in (after, before) if each is not None and each.lines]
    if not known:
        return None
    points = {moment: value for each in known for moment, value in each.lines[0].points}
    line = replace(known[0].lines[0], points=tuple(sorted(points.items())))
    return replace(known[0], evidence=0, lines=(line,), since=at, event=event)


def _side_by_side(lines: Sequence[Line], most: int) -> tuple[Column, ...]:
    times = [at for line in lines for at, _ in line.points]
    number = min([most, *(len(line.points) for line in lines)])
    filled = [by_stretch(line.points, min(times), max(times), number) for line in lines]
    shared = sorted(set.intersection(*(set(held) for held in filled)))
    return tuple(
        Column(min(held[n][0] for held in filled), tuple(held[n][1] for held in filled))
        for n in shared
    )


def marked(chart: Chart, drawn: Sequence[Column]) -> int | None:
    """The column of the onset; None if it is outside or unknown."""
    since = chart.since
    if since is None or not drawn or since < drawn[0].at:
        return None
    for index, (this, following) in enumerate(pairwise(drawn)):
        if this.at <= since < following.at:
            return index
    return len(drawn) - 1
