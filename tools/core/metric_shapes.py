"""The series of a sweep by what they are: signals as their values show them, counters as rates."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from tools.analysis.series_shape import (
    growth_of,
    shape_of,
    unit_of_duration,
    usual_number,
    with_shape,
)
from tools.analysis.shift import Points
from tools.capabilities import SweptSeries
from tools.signals import MAIN, UNKNOWN, USUAL, Signal


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


def counted_by_shape(signals: Sequence[Signal], by_name: Mapping[str, Signal]) -> frozenset[str]:
    """The names of those that no name, but their values show to be counters."""
    return frozenset(one.name for one in signals if by_name[one.name].reading != one.reading)


def units_of(
    signals: Mapping[str, Signal], series: Sequence[SweptSeries]
) -> Mapping[str, str | None]:
    """The likely unit of durations without one, to detect relevant changes; never shown."""
    return {
        name: unit_of_duration(points)
        for name, points in _by_signal(series).items()
        if signals[name].role == "latency" and signals[name].unit is None
    }


def request_signals(signals: Mapping[str, Signal], series: Sequence[SweptSeries]) -> frozenset[str]:
    """The signals that count a product's requests.

    Without a clear name, it is the one with the fewest of the counts that vary like requests.
    """
    named = {
        name for name, one in signals.items() if one.role == "traffic" and one.rank in {MAIN, USUAL}
    }
    if named:
        return frozenset(named)
    numbers = {
        name: usual_number([_counts(one, signals[name]) for one in points])
        for name, points in _by_signal(series).items()
        if signals[name].role == "other" and signals[name].rank == UNKNOWN
    }
    # Each request causes at least one of any other event.
    likely = {name: number for name, number in numbers.items() if number is not None}
    return frozenset([min(likely, key=lambda name: (likely[name], name))] if likely else ())


def _counts(points: Points, signal: Signal) -> Points:
    if signal.reading != "rate":
        return points
    return [
        (at, round(value * (at - earlier), 3)) for (earlier, _), (at, value) in pairwise(points)
    ]


def _is_counter(signal: Signal, series: Sequence[Points]) -> bool:
    """Whether it only grows, where no convention says what its values are."""
    is_unnamed = signal.rank == UNKNOWN if signal.role == "other" else signal.rank >= USUAL
    is_counted = signal.role in {"other", "traffic"} and signal.reading == "gauge"
    return is_unnamed and is_counted and shape_of(series).kind == "counter"


def _by_signal(series: Sequence[SweptSeries]) -> Mapping[str, Sequence[Points]]:
    found: dict[str, list[Points]] = defaultdict(list)
    for one in series:
        found[one.signal].append(one.points)
    return found
