"""Which products have lines in Loki, and by which label: by a template, or discovered."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from adapters.observe.backend import Backend
from adapters.observe.instants import to_ns
from adapters.observe.line_filter import quoted
from adapters.observe.loki_answer import label_names_of, label_values_of, series_of
from adapters.observe.loki_selector import FoundLabel, Selecting, Selector
from adapters.observe.product_places import (
    LabelAsked,
    ProductLabels,
    Sighting,
    labels_to_ask,
    places_by_metric,
    value_pattern,
)
from adapters.observe.remembered import LooksBack, Remembered
from adapters.observe.signal_promql import is_plain_name
from tools.capabilities import Interval

_REMEMBERED_FOR: Final = timedelta(minutes=5)
_LOOK_BACK: Final = timedelta(hours=24)  # where to look for a product that has no lines
_MOST_LABELS: Final = 8  # labels whose values are read: one request each
_MOST_SEARCHED: Final = 16  # in which products are searched, all in one request
_MOST_SHOWN: Final = 5  # label names in a note
# Loki names a service by itself: https://grafana.com/docs/loki/latest/get-started/labels/#default-labels-for-all-users
ASSUMED: Final = Selector('{service_name="$product"}')
_ANY: Final = "lines"  # Loki has no metrics; sightings want a name


@dataclass(frozen=True, slots=True)
class LabelValues:
    asked: LabelAsked
    values: Sequence[str]


class LokiPlaces:
    """`template` None: the labels that hold products are found, `preferred` first."""

    def __init__(
        self, backend: Backend, template: Selector | None, preferred: Sequence[str] = ()
    ) -> None:
        self._backend = backend
        self._template = template
        self._preferred = tuple(preferred)
        self._names: Remembered[Sequence[LabelAsked]] = Remembered(_REMEMBERED_FOR)
        self._values: Remembered[Sequence[LabelValues]] = Remembered(_REMEMBERED_FOR)
        self._seen: Remembered[Sequence[Sighting]] = Remembered(_REMEMBERED_FOR)
        self._looks = LooksBack(_REMEMBERED_FOR, _LOOK_BACK)
        self.notes: Sequence[str] = ()  # of the newest look at the labels' names
        self._searched: tuple[int, frozenset[str]] = (0, frozenset())
        self.is_assumed = False  # Loki did not list its labels, so `ASSUMED` selects products

    async def values(self, interval: Interval) -> Sequence[LabelValues]:
        """The labels that may hold products, with all that they hold, also a day before."""
        return await self._values.get(self._about(interval), lambda: self._ask_values(interval))

    def _about(self, interval: Interval) -> int:
        return self._looks.key(interval.end)

    async def selecting(
        self, products: Sequence[str], interval: Interval
    ) -> Sequence[tuple[Selecting, Sequence[str]]]:
        if self._template is not None:
            return [(self._template, products)]
        asked = await self._asked(interval)
        if self.is_assumed:
            return [(ASSUMED, products)]
        sightings = await self._sightings(products, interval)
        found = places_by_metric(sightings, products, asked, "").get(_ANY, {})
        by_label: dict[str, dict[str, frozenset[str]]] = {}
        for product, places in found.items():
            values = frozenset(place.value for place in places)
            by_label.setdefault(places[0].label, {})[product] = values
        pods = {one.label for one in asked if one.pods}
        return [
            (FoundLabel(label, label in pods, values), sorted(values))
            for label, values in sorted(by_label.items())
        ]

    async def with_lines(self, products: Sequence[str], interval: Interval) -> Mapping[str, str]:
        """The label of each of these products that has any lines; none where the label is assumed."""
        ways = await self.selecting(products, interval)
        if self.is_assumed:
            return {}
        if self._template is None:
            return {product: way.label for way, members in ways for product in members}
        there = [value for one in await self.values(interval) for value in one.values]
        return {
            product: way.label
            for way, members in ways
            for product in members
            if any(way.matches(product, value) for value in there)
        }

    async def _asked(self, interval: Interval) -> Sequence[LabelAsked]:
        return await self._names.get(self._about(interval), lambda: self._ask_names(interval))

    async def _sightings(self, products: Sequence[str], interval: Interval) -> Sequence[Sighting]:
        about, wanted = self._about(interval), frozenset(products)
        if self._searched[0] == about and wanted <= self._searched[1]:
            wanted = self._searched[1]
        self._searched = (about, wanted)
        return await self._seen.get((about, wanted), lambda: self._search(wanted, interval))

    async def _search(self, products: Collection[str], interval: Interval) -> Sequence[Sighting]:
        asked = (await self._asked(interval))[:_MOST_SEARCHED]
        if not asked or not products:
            return ()
        names = sorted(products)
        matches = [f"{{{one.label}=~{quoted(value_pattern(names, one.pods))}}}" for one in asked]
        form = {**_times(interval), "match[]": matches}
        rows = await series_of(await self._backend.post_form("/loki/api/v1/series", form))
        return [
            Sighting(_ANY, one.label, value)
            for one in asked
            for value in dict.fromkeys(row.get(one.label, "") for row in rows)
            if value
        ]

    async def _ask_values(self, interval: Interval) -> Sequence[LabelValues]:
        asked = (await self._asked(interval))[:_MOST_LABELS]
        values = await asyncio.gather(*(self._values_of(one, interval) for one in asked))
        return [LabelValues(one, found) for one, found in zip(asked, values, strict=True)]

    async def _ask_names(self, interval: Interval) -> Sequence[LabelAsked]:
        if self._template is not None:
            return [LabelAsked(self._template.label, pods=False)]
        answer = await self._backend.get("/loki/api/v1/labels", _times(interval))
        names = label_names_of(answer)
        self.is_assumed = names is None
        if names is None:
            self.notes = [f"Loki did not list its labels; assumed: {ASSUMED.label}"]
            return []
        # LogQL quotes no label names: https://grafana.com/docs/loki/latest/query/log_queries/
        odd = [name for name in names if not is_plain_name(name)]
        shown = ", ".join(repr(name) for name in odd[:_MOST_SHOWN])
        self.notes = [f"LogQL cannot name {len(odd)} labels; not read: {shown}"] if odd else []
        plain = [name for name in names if is_plain_name(name)]
        return labels_to_ask(plain, ProductLabels(self._preferred))

    async def _values_of(self, asked: LabelAsked, interval: Interval) -> Sequence[str]:
        path = f"/loki/api/v1/label/{asked.label}/values"
        answer = await self._backend.get(path, _times(interval))
        return label_values_of(answer) if answer.ok else []


def _times(interval: Interval) -> Mapping[str, str]:
    start = min(interval.start, interval.end - _LOOK_BACK)
    return {"start": str(to_ns(start)), "end": str(to_ns(interval.end))}
