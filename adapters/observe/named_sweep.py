"""Signals of many products as queries by name and labels, and their rows as the products' series."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from adapters.observe.metric_source import How, Row, SeriesSelection
from tools.capabilities import SweptSeries
from tools.signals import Combine, Place, Reading, Signal

_READ: Final[Mapping[Reading, How]] = {"gauge": "avg", "rate": "rate", "increase": "sum"}
_RATIOS: Final[Mapping[Reading, How]] = {"ratio": "avg", "rate_ratio": "rate"}
_ACROSS: Final[Mapping[Combine, How]] = {"max": "max", "min": "min", "sum": "total", "avg": "avg"}


def can_be_read(signal: Signal) -> bool:
    """Whether names and labels are enough; histograms by bucket are not."""
    return signal.reading in _READ or signal.reading in _RATIOS


def values_of(places: Sequence[Place]) -> tuple[str, tuple[str, ...]]:
    """The first label that a product is found by, and its values."""
    label = places[0].label
    return label, tuple(place.value for place in places if place.label == label)


class NamedSweep:
    """`asked` are all series of these signals; `products` empty: all that have them."""

    def __init__(self, signals: Sequence[Signal], products: Sequence[str]) -> None:
        self.asked: list[SeriesSelection] = []
        self._parts: list[_Part] = []
        wanted = frozenset(products)
        for signal in filter(can_be_read, signals):
            by_label: dict[str, dict[str, tuple[str, ...]]] = defaultdict(dict)
            for product, places in signal.places.items():
                if not wanted or product in wanted:
                    label, values = values_of(places)
                    by_label[label][product] = values
            for label, of_products in sorted(by_label.items()):
                every = dict.fromkeys(one for values in of_products.values() for one in values)
                self._parts.append(_Part(signal, label, of_products, len(self.asked)))
                self.asked += _asked(signal, label, tuple(every))

    def series(self, rows: Sequence[Row]) -> list[SweptSeries]:
        """By signal and product, those without a value left out."""
        by_number: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            by_number[row.asked].append(row)
        return [
            SweptSeries(part.signal.name, product, sorted(points.items()))
            for part in self._parts
            for product, points in part.of_products(by_number)
            if points
        ]


class _Part:
    def __init__(
        self, signal: Signal, label: str, values: Mapping[str, tuple[str, ...]], at: int
    ) -> None:
        self.signal = signal
        self._label = label
        self._values = values
        self._at = at

    def of_products(
        self, rows: Mapping[int, Sequence[Row]]
    ) -> Iterator[tuple[str, Mapping[float, float]]]:
        for product, values in self._values.items():
            place = (self._label, values)
            if self.signal.reading in _RATIOS:
                part = _combined(rows.get(self._at, ()), place, "sum")
                whole = _combined(rows.get(self._at + 1, ()), place, "sum")
                yield product, dict(self._shares(part, whole))
            else:
                yield product, _combined(rows.get(self._at, ()), place, self.signal.combine)

    def _shares(
        self, part: Mapping[float, float], whole: Mapping[float, float]
    ) -> Iterator[tuple[float, float]]:
        counted = self.signal.reading == "rate_ratio"
        for at, total in whole.items():
            if total > 0 and (counted or at in part):
                yield at, part.get(at, 0.0) / total


def _asked(signal: Signal, label: str, values: tuple[str, ...]) -> list[SeriesSelection]:
    share = _RATIOS.get(signal.reading)
    if share is not None:
        return [
            SeriesSelection(metric, share, label, values) for metric in (signal.metric, signal.over)
        ]
    how = _READ[signal.reading]
    if signal.name == f"{signal.metric}_p99":
        how = "p99"
    elif how == "avg":
        how = _ACROSS[signal.combine]
    return [SeriesSelection(signal.metric, how, label, values)]


def _combined(
    rows: Sequence[Row], place: tuple[str, tuple[str, ...]], combine: Combine
) -> dict[float, float]:
    label, of_product = place
    values: dict[float, list[float]] = defaultdict(list)
    for row in rows:
        if row.labels.get(label) in of_product:
            for at, one in row.points:
                values[at].append(one)
    match combine:
        case "sum":
            return {at: sum(of) for at, of in values.items()}
        case "max":
            return {at: max(of) for at, of in values.items()}
        case "min":
            return {at: min(of) for at, of in values.items()}
        case "avg":
            return {at: sum(of) / len(of) for at, of in values.items()}
