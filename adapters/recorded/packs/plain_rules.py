"""A plain reference for scores: what a few well-known rules say of a recorded case.

Metrics get BARO's robust score, in both directions. The deepest product of an anomalous path comes
first. Without metrics, unready pods and new error lines count. Kortex should do better than this.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median, quantiles
from typing import Final

from pydantic import JsonValue

from adapters.recorded.packs.recording import RecordedSeries, Recording

_AFTER_S: Final = 900.0  # the incident is looked for in the last quarter of an hour
_SHARE_OF_SPAN: Final = 0.2  # and in no more than this part of a short recording
_FEWEST_BEFORE: Final = 5
_MOVED: Final = 8.0  # interquartile ranges
_FLOOR: Final = 0.05  # of the usual level: below, a difference is noise
_UNREADY: Final = 20.0
_ERROR_LEVELS: Final = frozenset({"error", "fatal", "critical"})


@dataclass(frozen=True, slots=True)
class PlainAnswer:
    """The verdict `cause` or `healthy`, and the suspects, best first."""

    verdict: str
    suspects: Sequence[str]


def plain_answer(recording: Recording) -> PlainAnswer:
    products = recording.case.products
    scores = dict.fromkeys(products, 0.0)
    for product, score in _evidence(recording, frozenset(products)):
        scores[product] = max(scores[product], score)
    moved = {product: score for product, score in scores.items() if score >= _MOVED}
    callers = {
        caller
        for caller, called in _edges(recording)
        if caller != called and moved.get(called, 0.0) >= moved.get(caller, 0.0) / 2 > 0.0
    }
    ranked = sorted(moved, key=lambda product: (product in callers, -moved[product], product))
    return PlainAnswer("cause" if ranked else "healthy", ranked[:5])


def _evidence(recording: Recording, products: frozenset[str]) -> Iterator[tuple[str, float]]:
    now = recording.case.now.timestamp()
    for series in recording.series or ():
        owner = next((value for value in series.labels.values() if value in products), None)
        if owner is not None:
            yield owner, moved_by(series, now)
    by_length = sorted(products, key=len, reverse=True)
    for name in _unready(recording.objects or ()):
        owner = next((product for product in by_length if name.startswith(product)), None)
        if owner is not None:
            yield owner, _UNREADY
    yield from _new_errors(recording, products, now)


def moved_by(series: RecordedSeries, now: float) -> float:
    """BARO's score: the farthest of the newest samples, in ranges of those before."""
    points = _levels(series.points)
    if not points:
        return 0.0
    since = now - min(_AFTER_S, _SHARE_OF_SPAN * (now - points[0][0]))
    before = [value for at, value in points if at < since]
    after = [value for at, value in points if at >= since]
    if len(before) < _FEWEST_BEFORE or not after:
        return 0.0
    usual = median(before)
    lower, _, upper = quantiles(before, n=4)
    spread = max(upper - lower, _FLOOR * max(abs(usual), max(before) - min(before)), 1e-12)
    return max(abs(value - usual) for value in after) / spread


def _levels(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """The samples; of a series that only ever grows, as a counter does, its growth."""
    steps = [(at, value - was) for (_, was), (at, value) in pairwise(points)]
    is_counter = sum(step > 0 for _, step in steps) > len(steps) / 2
    return steps if is_counter and all(step >= 0 for _, step in steps) else points


def _new_errors(
    recording: Recording, products: frozenset[str], now: float
) -> Iterator[tuple[str, float]]:
    since = (now - _AFTER_S) * 1e9
    before, after = dict[str, int](), dict[str, int]()
    for line in recording.lines or ():
        if line.labels.get("level", "").casefold() not in _ERROR_LEVELS:
            continue
        owner = next((value for value in line.labels.values() if value in products), None)
        if owner is not None:
            side = after if line.ts_ns >= since else before
            side[owner] = side.get(owner, 0) + 1
    for product, count in after.items():
        yield product, count / (1 + before.get(product, 0))


def _unready(objects: Sequence[Mapping[str, JsonValue]]) -> Iterator[str]:
    for one in objects:
        metadata, status = one.get("metadata"), one.get("status")
        if one.get("kind") != "Pod" or not isinstance(metadata, dict):
            continue
        states = status.get("containerStatuses") if isinstance(status, dict) else None
        for state in states if isinstance(states, list) else ():
            if isinstance(state, dict) and state.get("ready") is False:
                yield str(metadata.get("name"))


def _edges(recording: Recording) -> Iterator[tuple[str, str]]:
    yield from recording.edges
    for spans in (recording.spans or {}).values():
        services = {span.span_id: span.service for span in spans}
        for span in spans:
            if span.parent_id in services:
                yield services[span.parent_id], span.service
