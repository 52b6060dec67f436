"""The series of a sweep by what they are: signals as their values show them, counters as rates."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tools.analysis.series_shape import growth_of, shape_of, unit_of_duration, with_shape
from tools.analysis.shift import Points
from tools.capabilities import SweptSeries
from tools.signals import UNKNOWN, Signal


def understood(
    signals: Sequence[Signal], series: Sequence[SweptSeries]
) -> tuple[Mapping[str, Signal], Sequence[SweptSeries]]:
    """Signals by name with what their values show, and the series with unnamed counters as rates."""
    points = _by_signal(series)
    by_name = {one.name: with_shape(one, points.get(one.name, ())) for one in signals}
    counters = {name for name, one in by_name.items() if _is_counter(one, points.get(name, ()))}
    for name in counters:
        by_name[name] = replace(by_name[name], reading="rate", unit="per second")
    read = [
        replace(one, points=growth_of(one.points)) if one.signal in counters else one
        for one in series
    ]
    return by_name, [one for one in read if one.points]


def units_of(
    signals: Mapping[str, Signal], series: Sequence[SweptSeries]
) -> Mapping[str, str | None]:
    """Of durations without a unit the likely one, to tell a change that matters; never shown."""
    return {
        name: unit_of_duration(points)
        for name, points in _by_signal(series).items()
        if signals[name].role == "latency" and signals[name].unit is None
    }


def _is_counter(signal: Signal, series: Sequence[Points]) -> bool:
    is_unnamed = signal.role == "other" and signal.rank == UNKNOWN and signal.reading == "gauge"
    return is_unnamed and shape_of(series).kind == "counter"


def _by_signal(series: Sequence[SweptSeries]) -> Mapping[str, Sequence[Points]]:
    found: dict[str, list[Points]] = defaultdict(list)
    for one in series:
        found[one.signal].append(one.points)
    return found
