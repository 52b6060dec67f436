"""Discovery and sweeps of a recorded incident: the conventions of every backend, read from series."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Final, Protocol

from adapters.observe.conventions import Conventions
from adapters.observe.signal_map import KnownMetric, dimension_labels, signals_of
from adapters.recorded.packs.recording import RecordedSeries
from adapters.recorded.player.resampling import Points, combined, read, spacing_of
from tools.capabilities import Interval, SweepQuery, Swept, SweptSeries
from tools.product_names import WORKLOAD_LABELS
from tools.signals import Discovered, Metric, Place, Signal

_MATCHER: Final = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"((?:[^"\\]|\\.)*)"')


class SeriesSource(Protocol):
    """The series of an incident. `finest_s` is the finest step in which they are read."""

    products: Sequence[str]
    finest_s: float

    def of(self, product: str) -> Sequence[RecordedSeries]:
        """Every series that names the product, without samples of the future."""
        ...

    def all(self) -> Sequence[RecordedSeries]:
        """Every series once."""
        ...


class PackSeries:
    """The series of a pack. A series belongs to each product that one of its labels names."""

    finest_s = 15.0

    def __init__(self, series: Sequence[RecordedSeries]) -> None:
        self._all = series
        self._owned: dict[str, list[RecordedSeries]] = {}
        for one in series:
            for owner in dict.fromkeys(one.labels.values()):
                self._owned.setdefault(owner, []).append(one)
        self.products: Sequence[str] = [
            owner
            for owner, own in self._owned.items()
            if any(owner == _owner(one.labels) for one in own)
        ]

    def of(self, product: str) -> Sequence[RecordedSeries]:
        return self._owned.get(product, ())

    def all(self) -> Sequence[RecordedSeries]:
        return self._all


def discovered(
    source: SeriesSource, conventions: Conventions, products: Sequence[str], interval: Interval
) -> Discovered:
    """Every metric of these products that has a sample in that time, and what they mean."""
    wanted = tuple(dict.fromkeys(products)) or tuple(source.products)
    places: dict[str, dict[str, list[Place]]] = {}
    values: dict[str, dict[str, set[str]]] = {}
    first: dict[str, RecordedSeries] = {}
    spacings: dict[str, list[float]] = {}
    dimensions = dimension_labels()
    for product in wanted:
        for one in source.of(product):
            if not _within(one.points, interval):
                continue
            at = places.setdefault(one.name, {})
            at.setdefault(product, [Place(_place_of(one, product), product)])
            first.setdefault(one.name, one)
            spacings.setdefault(one.name, []).append(spacing_of(one.points))
            for name in dimensions & one.labels.keys():
                values.setdefault(one.name, {}).setdefault(name, set()).add(one.labels[name])
    known = [
        KnownMetric(
            metric,
            at,
            type=first[metric].type,
            unit=first[metric].unit,
            values={name: frozenset(v) for name, v in values.get(metric, {}).items()},
        )
        for metric, at in sorted(places.items())
    ]
    there = {product: at[product][0] for at in places.values() for product in at}
    signals = [
        replace(signal, spacing_s=median(spacings.get(signal.metric, (60.0,))))
        for signal in signals_of(known, conventions)
    ]
    return Discovered(
        signals,
        wanted,
        tuple(product for product in wanted if product not in there),
        Counter(place.label for place in there.values()),
        metrics=[Metric(one.metric, one.type, one.unit, one.places) for one in known],
    )


async def swept(source: SeriesSource, query: SweepQuery, interval: Interval) -> Swept:
    """Every signal for every product in the interval; the loop goes on between them."""
    found: list[SweptSeries] = []
    for signal in query.signals:
        for product in sorted(signal.products & set(query.products or signal.products)):
            points = _read(source.of(product), signal, interval, query.step_s)
            if points:
                found.append(SweptSeries(signal.name, product, points))
            await asyncio.sleep(0)
    return Swept(found, query.step_s)


def _read(
    own: Sequence[RecordedSeries], signal: Signal, interval: Interval, step_s: float
) -> Points:
    over = _having(own, signal.over, signal.over_where) if signal.over else []
    stepped = [read(signal, series, over, interval, step_s) for series in _parts(own, signal, over)]
    return combined([points for points in stepped if points], signal.combine)


def _parts(
    own: Sequence[RecordedSeries], signal: Signal, over: Sequence[RecordedSeries]
) -> list[Mapping[str, Sequence[RecordedSeries]]]:
    """Series to read as one: each by itself, or the parts of a histogram together."""
    if signal.reading in {"quantile", "mean"}:
        parts = {
            part: _having(own, f"{signal.metric}{part}", signal.where)
            for part in ("_bucket", "_sum", "_count")
        }
        return [parts] if any(parts.values()) else []
    found = _having(own, signal.metric, signal.where)
    if not found and signal.reading == "rate_ratio":
        # A failure that never happened has no series: its count is zero, not unknown.
        found = [replace(one, points=[(at, 0.0) for at, _ in one.points]) for one in over[:1]]
    return [{"": [one]} for one in found]


def _having(own: Sequence[RecordedSeries], metric: str, where: str) -> list[RecordedSeries]:
    return [one for one in own if one.name == metric and _fits(one.labels, where)]


def _within(points: Points, interval: Interval) -> bool:
    start, end = interval.start.timestamp(), interval.end.timestamp()
    return any(start <= at < end for at, _ in points)


def _place_of(one: RecordedSeries, product: str) -> str:
    having = [label for label, value in one.labels.items() if value == product]
    return next((label for label in WORKLOAD_LABELS if label in having), having[0])


def _owner(labels: Mapping[str, str]) -> str:
    return next((labels[label] for label in WORKLOAD_LABELS if label in labels), "")


def _fits(labels: Mapping[str, str], where: str) -> bool:
    for label, operator, quoted in _MATCHER.findall(where):
        value, wanted = labels.get(label, ""), quoted.replace('\\"', '"').replace("\\\\", "\\")
        equal = (
            value == wanted if operator in {"=", "!="} else re.fullmatch(wanted, value) is not None
        )
        if equal != (operator in {"=", "=~"}):
            return False
    return True
