"""What Prometheus, VictoriaMetrics and Mimir know of some products, in half a dozen requests.

Names and types come from the metadata API, products from the labels' values, the time between two
samples from the data. One query asks all labels at once; nothing is asked product by product.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Final
from urllib.parse import quote

from adapters.observe.backend import Answer, Backend, few_at_once
from adapters.observe.instants import seconds_text
from adapters.observe.product_label import LabelSeen, chosen_label, labels_to_try
from adapters.observe.product_places import (
    LabelAsked,
    ProductLabels,
    Sighting,
    labels_to_ask,
    places_by_metric,
    underscored,
    value_pattern,
)
from adapters.observe.prometheus_answer import names_of, vector_of
from adapters.observe.prometheus_kinds import SPACING_WINDOW, Kinds
from adapters.observe.query_size import MOST_BYTES, MOST_NAME_BYTES, OR_BYTES, bytes_of, runs
from adapters.observe.series_owners import Owners
from adapters.observe.signal_map import KnownMetric, base_of, dimension_labels, signals_of
from adapters.observe.signal_promql import (
    counted_metric,
    is_plain_name,
    is_quotable,
    joined_by_or,
    label_name,
    literal,
    names_size,
    quoted,
    selector,
    spacing_of,
)
from tools.capabilities import Clock, Interval
from tools.errors import UpstreamFailed
from tools.product_names import NAMESPACE_LABELS, workload_of
from tools.signals import Discovered, Metric, MetricType, Place, Signal

LABEL: Final = "kortex_label"
METRIC: Final = "kortex_metric"
_ITS_FAULT: Final = frozenset({400, 422})  # errors of the query, not of the server
SEEN_WITHIN: Final = "15m"  # of an instant: three samples at five minutes
_MOST_PRODUCTS: Final = 500
# Series that rules make: https://prometheus.io/docs/prometheus/latest/configuration/alerting_rules/
# and, with a colon in their names, https://prometheus.io/docs/practices/rules/. Grafana writes its own:
# https://grafana.com/docs/grafana/latest/alerting/set-up/configure-alert-state-history/
_ALERTS: Final = ("ALERTS", "ALERTS_FOR_STATE", "GRAFANA_ALERTS")
_OWN_SERIES: Final = f'__name__=~"[^:]+",__name__!~"{"|".join(_ALERTS)}"'
# Of exporters and collectors, and what each of them says of itself: their labels describe other things.
# https://github.com/kubernetes/kube-state-metrics, https://github.com/prometheus/node_exporter,
# https://github.com/prometheus/blackbox_exporter, https://opentelemetry.io/docs/collector/internal-telemetry/
_OF_EXPORTERS: Final = re.compile(
    "(?:kube|node|probe|blackbox|otelcol|prometheus|promhttp|process|go|scrape)_.*|up"
)
_MOST_FACTS: Final = 20  # metrics of a label that may all state facts; more are a program's
_COUNTED: Final = re.compile(".*_(?:total|bucket|count|sum)")
_MOST_SPACED: Final = 40  # families whose spacing is measured; the rest use a similar family's


@dataclass
class Discovery:
    """One look at what there is. `preferred` are labels that name a product, the first first."""

    backend: Backend
    clock: Clock
    interval: Interval
    told: ProductLabels
    kinds: Kinds
    requests: int = 0
    notes: list[str] = field(default_factory=list)

    async def look(self, products: Sequence[str]) -> Discovered:
        """Raises UpstreamFailed, CapabilityUnavailable."""
        labels, types = await asyncio.gather(self._labels(), self.kinds.types())
        self.requests += 1
        asked = labels_to_ask(labels, self.told)
        wanted = tuple(dict.fromkeys(products)) or await self._products(asked)
        if not wanted or not asked:
            return Discovered((), wanted, wanted, notes=self.notes, requests=self.requests)
        spaces = {underscored(label): label for label in labels}
        namespace = next((spaces[name] for name in NAMESPACE_LABELS if name in spaces), "")
        places = await self._places_by_readable(wanted, asked, namespace)
        values = await self._values(places, labels)
        known = [
            KnownMetric(metric, at, *_typed(metric, places, types), values.get(metric, {}))
            for metric, at in sorted(places.items())
        ]
        signals = await self._spaced(signals_of(known, self.kinds.conventions))
        metrics = [Metric(one.metric, one.type, one.unit, one.places) for one in known]
        return self._discovered(signals, wanted, metrics)

    def _discovered(
        self, signals: Sequence[Signal], wanted: Sequence[str], metrics: Sequence[Metric]
    ) -> Discovered:
        found = {product for signal in signals for product in signal.places}
        by_label: dict[str, set[str]] = defaultdict(set)
        for signal in signals:
            for product, places in signal.places.items():
                for place in places:
                    by_label[place.label].add(product)
        counts = Counter({label: len(products) for label, products in by_label.items()})
        return Discovered(
            signals,
            wanted,
            tuple(product for product in wanted if product not in found),
            dict(counts.most_common()),
            tuple(self.notes),
            self.requests,
            metrics,
        )

    async def _labels(self) -> Sequence[str]:
        names = names_of(await self._get("/api/v1/labels", self._range()))
        odd = [name for name in names if not is_quotable(name)]
        if odd:
            self.notes.append(f"{len(odd)} labels have names that no query can hold; not read")
        return [name for name in names if is_quotable(name)]

    async def _products(self, asked: Sequence[LabelAsked]) -> Sequence[str]:
        """All that the backend knows, by the label that names a service.

        Only a product's own series count: alerts and recording rules carry the labels of a rule.
        """
        scrape = [one.label for one in asked if one.label in ("job", "instance")]
        tried = [partial(self._label_seen, one, scrape) for one in labels_to_try(asked, self.told)]
        seen = [one for one in await few_at_once(tried) if one is not None]
        chosen = chosen_label(seen, asked, self.told)
        if chosen is None:
            return ()
        pods = {one.label for one in asked if one.pods}
        named = map(workload_of, chosen.values) if chosen.label in pods else chosen.values
        values = tuple(dict.fromkeys(named))
        if len(values) > _MOST_PRODUCTS:
            self.notes.append(
                f"{chosen.label} has {len(values)} values; the first {_MOST_PRODUCTS} are products here"
            )
        return values[:_MOST_PRODUCTS]

    async def _label_seen(self, label: str, scrape: Sequence[str]) -> LabelSeen | None:
        own = {**self._range(), "match[]": f'{{{label_name(label)}!="",{_OWN_SERIES}}}'}
        try:
            values, metrics = await asyncio.gather(
                self._get(f"/api/v1/label/{quote(label, safe='')}/values", own),
                self._get("/api/v1/label/__name__/values", own),
            )
        except UpstreamFailed as error:
            if error.status not in _ITS_FAULT or is_plain_name(label):
                raise
            return None
        names = names_of(metrics)
        return LabelSeen(
            label, names_of(values), len(names), await self._is_at_work(label, names, scrape)
        )

    async def _is_at_work(self, label: str, metrics: Sequence[str], scrape: Sequence[str]) -> bool:
        """Whether one of the metrics counts, or moves and has the labels of a scrape if there are any.

        Rules' results without a colon in their names have none. Exporters' own do not tell.
        """
        metrics = [one for one in metrics if not _OF_EXPORTERS.fullmatch(one)]
        types = await self.kinds.types()
        if len(metrics) > _MOST_FACTS or any(_is_counted(one, types) for one in metrics):
            return True
        own = [f'{label_name(one)}!=""' for one in dict.fromkeys([label, *scrape])]
        moved = "count(changes({}[1h]) > 0)"
        parts = [moved.format(selector(one, *own)) for one in metrics if is_quotable(one)]
        return bool(parts and await self._instant(parts, self._end()))

    async def _places_by_readable(
        self, products: Sequence[str], asked: Sequence[LabelAsked], namespace: str
    ) -> dict[str, dict[str, list[Place]]]:
        """By every label; by those with plain names alone on a server that reads no quoted ones."""
        plain = [one for one in asked if is_plain_name(one.label)]
        try:
            return await self._places(products, asked, namespace)
        except UpstreamFailed as error:
            if error.status not in _ITS_FAULT or len(plain) == len(asked):
                raise
        odd = ", ".join(one.label for one in asked if one not in plain)
        self.notes.append(f"the backend reads no quoted label names; not read: {odd}")
        return await self._places(products, plain, namespace)

    async def _places(
        self, products: Sequence[str], asked: Sequence[LabelAsked], namespace: str
    ) -> dict[str, dict[str, list[Place]]]:
        """Places at the end of the range, and at its beginning for vanished products."""
        seen = await self._sightings(products, asked, namespace, self._end())
        found = places_by_metric(seen, products, asked, namespace)
        there = {product for at in found.values() for product in at}
        missing = [product for product in products if product not in there]
        if not missing:
            return found
        begin = min(self.interval.start + SPACING_WINDOW, self._end())
        seen += await self._sightings(missing, asked, namespace, begin)
        return places_by_metric(seen, products, asked, namespace)

    async def _sightings(
        self,
        products: Sequence[str],
        asked: Sequence[LabelAsked],
        namespace: str,
        at: datetime,
    ) -> list[Sighting]:
        by_namespace = namespace and any("/" in p for p in products)
        by = {one.label: [namespace] if by_namespace else [] for one in asked}
        pods = {one.label for one in asked if one.pods}
        parts = _seen_parts(products, by, pods)
        seen = [_sighting(row, namespace) for row in await self._sighted(parts, at)]
        owners = Owners(seen, products, asked)
        told = {each.label: [*each.owners, *by[each.label]] for each in owners.doubts()}
        rows = await self._sighted(_seen_parts(products, told, pods), at) if told else []
        owned_by_another = owners.owned_by_another((_sighting(row, namespace), row) for row in rows)
        return [one for one in seen if one not in owned_by_another]

    async def _sighted(self, parts: Sequence[str], at: datetime) -> list[Mapping[str, str]]:
        rows = await self._instant(parts, at)
        return [row for row, _value in rows if LABEL in row and _is_own(row.get("__name__", ""))]

    async def _values(
        self, places: Mapping[str, Mapping[str, Sequence[Place]]], labels: Sequence[str]
    ) -> Mapping[str, Mapping[str, frozenset[str]]]:
        telling = sorted(dimension_labels() & set(labels))
        if not telling:
            return {}
        # Not by the metrics' names: there may be thousands. What else has these labels is left out below.
        metrics: dict[str, set[str]] = defaultdict(set)
        values: dict[str, set[str]] = defaultdict(set)
        for metric, at in places.items():
            for place in (place for of_product in at.values() for place in of_product):
                metrics[place.label].add(metric)
                values[place.label].add(place.value)
        by = f"group by (__name__, {', '.join(telling)})"
        parts = [
            _labelled(f"{by} ({{{label_name(label)}=~{quoted(_any_beginning(some))}}})", label)
            for label, all_values in sorted(values.items())
            for some in runs(sorted(all_values), lambda one: names_size([one]), MOST_NAME_BYTES)
        ]
        found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for row, _value in await self._instant(parts, self._end()):
            if row.get("__name__") not in metrics.get(row.get(LABEL, ""), ()):
                continue
            for label in telling:
                if row.get(label):
                    found[row["__name__"]][label].add(row[label])
        return {
            metric: {label: frozenset(values) for label, values in of_metric.items()}
            for metric, of_metric in found.items()
        }

    async def _spaced(self, signals: Sequence[Signal]) -> list[Signal]:
        if self.kinds.scrape_s is not None:
            return [replace(signal, spacing_s=self.kinds.scrape_s) for signal in signals]
        samples: dict[str, Signal] = {}
        for signal in signals:
            samples.setdefault(_exporter(signal), signal)
        parts = [_counting(one) for one in list(samples.values())[:_MOST_SPACED]]
        if not parts:
            return list(signals)
        spacing: dict[str, float] = {}
        for row, count in await self._instant(parts, self._end()):
            if count > 1 and METRIC in row:
                spacing[row[METRIC]] = spacing_of(SPACING_WINDOW.total_seconds(), count)
        return [replace(signal, spacing_s=spacing.get(_exporter(signal))) for signal in signals]

    async def _instant(
        self, parts: Sequence[str], at: datetime
    ) -> Sequence[tuple[Mapping[str, str], float]]:
        """All rows of all parts, in as many requests as their length takes."""
        queries = runs(parts, lambda part: bytes_of(part) + OR_BYTES, MOST_BYTES)
        asks = [partial(self._vector, joined_by_or(some), at) for some in queries]
        return [row for rows in await few_at_once(asks) for row in rows]

    async def _vector(self, promql: str, at: datetime) -> Sequence[tuple[Mapping[str, str], float]]:
        self.requests += 1
        form = {"query": promql, "time": seconds_text(at)}
        return vector_of(await self.backend.post_form("/api/v1/query", form))

    async def _get(self, path: str, params: Mapping[str, str]) -> Answer:
        self.requests += 1
        return await self.backend.get(path, params)

    def _range(self) -> Mapping[str, str]:
        return {
            "start": seconds_text(self.interval.start),
            "end": seconds_text(self.interval.end),
        }

    def _end(self) -> datetime:
        return min(self.interval.end, self.clock.now())


def _seen_parts(
    products: Sequence[str], by: Mapping[str, Sequence[str]], pods: Collection[str]
) -> list[str]:
    few = list(runs(products, lambda name: 2 * names_size([name]), MOST_NAME_BYTES))
    parts = []
    for label, beside in by.items():
        for some in few:
            matcher = f"{label_name(label)}=~{quoted(value_pattern(some, label in pods))}"
            seen = f"last_over_time({{{matcher}}}[{SEEN_WITHIN}])"
            by_labels = ", ".join(map(label_name, ("__name__", label, *beside)))
            parts.append(_labelled(f"group by ({by_labels}) ({seen})", label))
    return parts


def _is_own(metric: str) -> bool:
    """Whether a product itself may have the metric; of rules only recording rules count."""
    return bool(metric) and metric not in _ALERTS


def _labelled(promql: str, label: str) -> str:
    return f'label_replace({promql}, "{LABEL}", {quoted(label)}, "", "")'


def _sighting(row: Mapping[str, str], namespace: str) -> Sighting:
    label = row[LABEL]
    return Sighting(row["__name__"], label, row.get(label, ""), row.get(namespace, ""))


def _typed(
    metric: str, names: Mapping[str, object], types: Mapping[str, tuple[MetricType, str]]
) -> tuple[MetricType, str | None]:
    base, _part = base_of(metric, names)
    nothing: tuple[MetricType, str] = ("", "")
    kind, unit = types.get(metric) or types.get(base) or nothing
    return kind, unit or None


def _any_beginning(values: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(literal, sorted(values)))}).*"


def _is_counted(metric: str, types: Mapping[str, tuple[MetricType, str]]) -> bool:
    kind = types.get(metric, ("", ""))[0]
    return kind in ("counter", "histogram") or (not kind and bool(_COUNTED.fullmatch(metric)))


def _exporter(signal: Signal) -> str:
    """Metrics with the same prefix and place come from the same exporter, at the same interval."""
    return f"{'_'.join(re.split(r'[_.]', signal.metric)[:2])} by {_first_place(signal).label}"


def _first_place(signal: Signal) -> Place:
    return next(place for places in signal.places.values() for place in places)


def _counting(signal: Signal) -> str:
    place = _first_place(signal)
    end = f"{literal(place.value)}.*" if place.pods else literal(place.value)
    selected = selector(counted_metric(signal), f"{label_name(place.label)}=~{quoted(end)}")
    counted = f"max(count_over_time({selected}[{SPACING_WINDOW.total_seconds():.0f}s]))"
    return f'label_replace({counted}, "{METRIC}", {quoted(_exporter(signal))}, "", "")'
