"""Which products have lines in a backend with fields, and by which field: configured or discovered."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from adapters.observe.log_source import LogSource
from adapters.observe.product_places import (
    LabelAsked,
    ProductLabels,
    Sighting,
    labels_to_ask,
    places_by_metric,
)
from adapters.observe.remembered import LooksBack, Remembered
from tools.capabilities import Interval
from tools.product_names import POD_LABELS, WORKLOAD_LABELS, workload_of

_REMEMBERED_FOR: Final = timedelta(minutes=5)
_LOOK_BACK: Final = timedelta(hours=24)  # where to look for a product that has no lines
_MOST_FIELDS: Final = 6  # fields whose values are read: one request each
_ANY: Final = "lines"  # sightings want a metric's name
# What collectors put before a name that is known by itself.
_BEFORE: Final = re.compile(
    r"^(?:resource[._])?(?:attributes[._])?(?:kubernetes[._](?:(?:pod_)?labels[._])?)?"
)


@dataclass(frozen=True, slots=True)
class FoundField:
    """A field that holds products. `values` are its values by product."""

    label: str
    values: Mapping[str, frozenset[str]]

    def of(self, products: Sequence[str]) -> tuple[str, ...]:
        return tuple(sorted({one for each in products for one in self.values.get(each, ())}))

    def matches(self, product: str, value: str) -> bool:
        return value in self.values.get(product, ())


class FieldPlaces:
    """`product_field` empty: the fields that hold products are found, those of `preferred` first."""

    def __init__(
        self, source: LogSource, product_field: str = "", preferred: Sequence[str] = ()
    ) -> None:
        self._source = source
        self._own = product_field
        self._preferred = tuple(preferred)
        self._looks = LooksBack(_REMEMBERED_FOR, _LOOK_BACK)
        self._seen: Remembered[Mapping[LabelAsked, Mapping[str, str]]] = Remembered(_REMEMBERED_FOR)

    async def products(self, interval: Interval) -> Sequence[str]:
        """All that the first field with any value names, also a day before."""
        seen = await self._values(interval)
        return next((sorted(set(names.values())) for names in seen.values() if names), [])

    async def selecting(
        self, products: Sequence[str], interval: Interval
    ) -> Sequence[tuple[FoundField, Sequence[str]]]:
        seen = await self._values(interval)
        sightings = [
            Sighting(_ANY, asked.label, name)
            for asked, names in seen.items()
            for name in dict.fromkeys(names.values())
        ]
        plain = [LabelAsked(asked.label, pods=False) for asked in seen]  # names are workloads here
        found = places_by_metric(sightings, products, plain, "").get(_ANY, {})
        by_field: dict[str, dict[str, frozenset[str]]] = {}
        for product, places in found.items():
            field, known = places[0].label, {place.value for place in places}
            values = next(names for asked, names in seen.items() if asked.label == field)
            by_field.setdefault(field, {})[product] = frozenset(
                value for value, name in values.items() if name in known
            )
        return [(FoundField(field, of), sorted(of)) for field, of in sorted(by_field.items())]

    async def _values(self, interval: Interval) -> Mapping[LabelAsked, Mapping[str, str]]:
        about = self._looks.key(interval.end)
        return await self._seen.get(about, lambda: self._look(interval))

    async def _look(self, interval: Interval) -> Mapping[LabelAsked, Mapping[str, str]]:
        day = Interval(min(interval.start, interval.end - _LOOK_BACK), interval.end)
        asked = await self._asked(day)
        found = await asyncio.gather(*(self._source.values(one.label, day) for one in asked))
        return {
            one: {value: workload_of(name) if one.pods else name for value, name in names.items()}
            for one, names in zip(asked, found, strict=True)
        }

    async def _asked(self, interval: Interval) -> Sequence[LabelAsked]:
        if self._own:
            return [LabelAsked(self._own, pods=False)]
        by_plain = _by_plain_name(await self._source.fields(interval))
        preferred = [_plain(one) for one in self._preferred]
        known = labels_to_ask(by_plain, ProductLabels(preferred))
        usual = {*preferred, *WORKLOAD_LABELS, *POD_LABELS}
        asked = [LabelAsked(by_plain[one.label], one.pods) for one in known if one.label in usual]
        return asked[:_MOST_FIELDS]


def _by_plain_name(fields: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for field in sorted(fields, key=lambda one: (len(one), one)):
        found.setdefault(_plain(field), field)
    return found


def _plain(field: str) -> str:
    """`resource.attributes.service.name.keyword` is `service_name`."""
    return re.sub(r"\W", "_", _BEFORE.sub("", field.removesuffix(".keyword")))
