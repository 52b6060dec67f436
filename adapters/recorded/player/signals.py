"""Discovery and sweeps of a case: the conventions of every backend, read from its series."""

import asyncio
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Final

from adapters.observe.conventions import Conventions
from adapters.observe.signal_map import Known, dimension_labels, signals_of
from adapters.recorded.packs.recording import RecordedSeries
from adapters.recorded.player.resampling import Points, combined, read
from tools.capabilities import Interval, SweepQuery, Swept, SweptSeries
from tools.product_names import WORKLOAD_LABELS
from tools.signals import Discovered, Metric, Place, Signal

_MATCHER: Final = re.compile(r'(\w+)\s*(=~|!=|!~|=)\s*"((?:[^"\\]|\\.)*)"')


class PackedSignals:
    """What series say of products. `owned` are the series by each value of their labels."""

    def __init__(
        self, owned: Mapping[str, Sequence[RecordedSeries]], conventions: Conventions
    ) -> None:
        self._conventions = conventions
        self._owned = owned

    def discovered(self, products: Sequence[str], interval: Interval) -> Discovered:
        """As the Metrics port says."""
        wanted = tuple(dict.fromkeys(products)) or self._all()
        places: dict[str, dict[str, list[Place]]] = {}
        values: dict[str, dict[str, set[str]]] = {}
        units: dict[str, str | None] = {}
        spacings: dict[str, list[float]] = {}
        dimensions = dimension_labels()
        for product in wanted:
            for one in self._owned.get(product, ()):
                if not _within(one.points, interval):
                    continue
                label = _place_of(one, product)
                at = places.setdefault(one.name, {})
                at.setdefault(product, [Place(label, product)])
                units.setdefault(one.name, one.unit)
                spacings.setdefault(one.name, []).append(_spacing(one.points))
                for name in dimensions & one.labels.keys():
                    values.setdefault(one.name, {}).setdefault(name, set()).add(one.labels[name])
        known = [
            Known(
                metric,
                at,
                unit=units[metric],
                values={name: frozenset(v) for name, v in values.get(metric, {}).items()},
            )
            for metric, at in sorted(places.items())
        ]
        there = {product: at[product][0] for at in places.values() for product in at}
        labels = Counter(place.label for place in there.values())
        signals = [
            replace(signal, spacing_s=median(spacings.get(signal.metric, (60.0,))))
            for signal in signals_of(known, self._conventions)
        ]
        without = tuple(product for product in wanted if product not in there)
        metrics = [Metric(one.metric, one.type, one.unit, one.places) for one in known]
        return Discovered(signals, wanted, without, labels, metrics=metrics)

    def _all(self) -> tuple[str, ...]:
        """Whoever a series says that it is of, by the most telling of its labels."""
        return tuple(
            owner
            for owner, series in self._owned.items()
            if any(owner == _owner(one.labels) for one in series)
        )

    async def swept(self, query: SweepQuery) -> Swept:
        """As the Metrics port says."""
        found: list[SweptSeries] = []
        for signal in query.signals:
            for product in sorted(signal.products & set(query.products or signal.products)):
                points = self._read(signal, product, query)
                if points:
                    found.append(SweptSeries(signal.name, product, points))
            await asyncio.sleep(0)
        return Swept(found, query.step_s)

    def _read(self, signal: Signal, product: str, query: SweepQuery) -> Points:
        over = self._of(product, signal.over, signal.over_where) if signal.over else []
        stepped = [
            read(signal, series, over, query.interval, query.step_s)
            for series in self._parts(signal, product)
        ]
        return combined([points for points in stepped if points], signal.combine)

    def _parts(self, signal: Signal, product: str) -> list[Mapping[str, Sequence[RecordedSeries]]]:
        """What is read as one: each series by itself, or the parts of a histogram together."""
        if signal.reading in {"quantile", "mean"}:
            parts = {
                part: self._of(product, f"{signal.metric}{part}", signal.where)
                for part in ("_bucket", "_sum", "_count")
            }
            return [parts] if any(parts.values()) else []
        own = self._of(product, signal.metric, signal.where)
        if not own and signal.reading == "rate_ratio":
            # A failure that never happened has no series: that is nought, not unknown.
            over = self._of(product, signal.over, signal.over_where)
            own = [replace(one, points=[(at, 0.0) for at, _ in one.points]) for one in over[:1]]
        return [{"": [one]} for one in own]

    def _of(self, product: str, metric: str, where: str) -> list[RecordedSeries]:
        named = [one for one in self._owned.get(product, ()) if one.name == metric]
        return [one for one in named if _fits(one.labels, where)]


def _within(points: Points, interval: Interval) -> bool:
    start, end = interval.start.timestamp(), interval.end.timestamp()
    return any(start <= at < end for at, _ in points)


def _place_of(one: RecordedSeries, product: str) -> str:
    having = [label for label, value in one.labels.items() if value == product]
    return next((label for label in WORKLOAD_LABELS if label in having), having[0])


def _owner(labels: Mapping[str, str]) -> str:
    return next((labels[label] for label in WORKLOAD_LABELS if label in labels), "")


def _spacing(points: Points) -> float:
    gaps = [later[0] - earlier[0] for earlier, later in pairwise(points)]
    return median(gaps) if gaps else 60.0


def _fits(labels: Mapping[str, str], where: str) -> bool:
    for label, operator, quoted in _MATCHER.findall(where):
        value, wanted = labels.get(label, ""), quoted.replace('\\"', '"').replace("\\\\", "\\")
        equal = (
            value == wanted if operator in {"=", "!="} else re.fullmatch(wanted, value) is not None
        )
        if equal != (operator in {"=", "=~"}):
            return False
    return True
