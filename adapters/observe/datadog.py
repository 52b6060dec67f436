"""Metrics of Datadog, through v1 of its API: the list of active metrics, and timeseries.

https://docs.datadoghq.com/api/latest/metrics/: keys go into the headers DD-API-KEY and
DD-APPLICATION-KEY, several queries of one request are joined by commas, and an error may come with
status 200. A request for timeseries counts against 1,600 an hour, one for the list against 100
(https://docs.datadoghq.com/api/latest/rate-limits/), so what exists is remembered.
"""

import asyncio
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import httpx
import structlog
from pydantic import Field, TypeAdapter

from adapters.observe.backend import Answer, Backend, read_body, refusal
from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.metric_source import Catalogue, How, Row, Rows, SeriesSelection
from adapters.observe.signal_map import KnownMetric
from tools.capabilities import Interval
from tools.errors import InvalidArguments, UpstreamFailed
from tools.outside_json import Entries, OutsideModel, left_out, parse
from tools.signals import UNKNOWN, Place

SERVICE: Final = "service"  # of unified service tagging, with env and version
_ENVIRONMENT: Final = "env"
_METRIC: Final = re.compile(
    r"[A-Za-z][A-Za-z0-9_.]{0,199}"
)  # developers.datadoghq.com, "Submission naming"
_TAG: Final = re.compile(r"[A-Za-z0-9_\-:./]{1,200}", re.ASCII)
# A series has at most some 1,500 points: https://docs.datadoghq.com/metrics/#query-and-visualize
_MOST_POINTS: Final = 1500
_FINEST_S: Final = 15.0  # agents report as often
_MOST_METRICS: Final = 80  # products are searched in meaningful metrics, the most specific first
_AT_ONCE: Final = 10  # queries of one request
_MOST_CHARS: Final = 4000  # of these: an address of 8 KB is refused by many a server before it
_LOOKED: Final = timedelta(minutes=20)
_AGGREGATED: Final[Mapping[How, tuple[str, str]]] = {  # over space, over time
    "avg": ("avg", "avg"), "max": ("max", "avg"), "min": ("min", "avg"), "total": ("sum", "avg"),
    "sum": ("sum", "sum"), "rate": ("sum", "sum"),
}  # fmt: skip
_UNITS: Final = {
    "second": "seconds", "millisecond": "milliseconds", "byte": "bytes", "fraction": "ratio",
    "percent": "percent",
}  # fmt: skip


class _Unit(OutsideModel):
    name: str = ""


class _Series(OutsideModel):
    points: Entries[tuple[float, float | None]] = Field(default_factory=list, alias="pointlist")
    tags: list[str] | None = Field(default=None, alias="tag_set")
    scope: str | None = None
    interval: float | None = None
    query: int = Field(default=0, alias="query_index", ge=0)
    unit: list[_Unit | None] | None = None


class _Timeseries(OutsideModel):
    status: str = ""
    error: str | None = None
    series: Entries[_Series] = Field(default_factory=list)


class _Active(OutsideModel):
    metrics: Entries[str] = Field(default_factory=list)


class _Refusal(OutsideModel):
    errors: Entries[str] = Field(default_factory=list)


_TIMESERIES: Final = TypeAdapter(_Timeseries)
_ACTIVE: Final = TypeAdapter(_Active)
_REFUSAL: Final = TypeAdapter(_Refusal)
_log = structlog.stdlib.get_logger(__name__)


class Datadog:
    """Implements `MetricSource`. `product_tag` is the key of the tag that names a product."""

    name = "Datadog"
    quantiles = False  # only of metrics for which people switched them on

    def __init__(
        self,
        client: httpx.AsyncClient,
        product_tag: str = SERVICE,
        conventions: Conventions = SHIPPED,
    ) -> None:
        self._backend = Backend(self.name, client)
        self._tag = product_tag
        self._conventions = conventions

    def finest_s(self, interval: Interval, now: datetime) -> float:
        """What keeps all points apart."""
        del now
        range_s = (interval.end - interval.start).total_seconds()
        return max(_FINEST_S, float(-(-range_s // _MOST_POINTS)))

    async def places(self, metric: str, product: str, interval: Interval) -> Sequence[Place]:
        """Always by the tag."""
        del metric, interval
        return [Place(self._tag, product.lower())] if _TAG.fullmatch(product) else []

    async def catalogue(self, products: Sequence[str], interval: Interval) -> Catalogue:
        """The meaningful active metrics, and the products that have each."""
        names = await self._active(products, interval)
        telling = sorted(filter(self._rank, names), key=lambda name: (self._rank(name), name))
        chosen = telling[:_MOST_METRICS]
        values = tuple(product.lower() for product in products if _TAG.fullmatch(product))
        recent = Interval(max(interval.start, interval.end - _LOOKED), interval.end)
        asked = [SeriesSelection(name, "avg", self._tag, values) for name in chosen]
        found = await self._rows(asked, recent, None)
        wanted = {product.lower(): product for product in products}
        places: dict[str, dict[str, list[Place]]] = defaultdict(dict)
        spacing: dict[str, float] = {}
        units: dict[str, str | None] = {}
        for row, interval_s in found:
            value = row.labels.get(self._tag, "")
            product = wanted.get(value, value) if wanted else value
            if value and (not wanted or value in wanted):
                places[chosen[row.asked]][product] = [Place(self._tag, value)]
            units[chosen[row.asked]] = row.unit
            if interval_s > 0:
                spacing[chosen[row.asked]] = interval_s
        known = [
            KnownMetric(name, places[name], unit=units[name]) for name in chosen if name in places
        ]
        every = tuple(products) or tuple(sorted({one for at in places.values() for one in at}))
        left = len(telling) - len(chosen)
        notes = [f"{left} more metrics were not looked at"] if left else []
        if odd := [product for product in products if not _TAG.fullmatch(product)]:
            notes.append(f"no tag of Datadog can name {len(odd)} products; not read: {odd[:5]}")
        return Catalogue(known, every, spacing, notes, 1 + -(-len(chosen) // _AT_ONCE))

    async def read(
        self, asked: Sequence[SeriesSelection], interval: Interval, step_s: float
    ) -> Rows:
        """Ten queries in a request, each rolled up to the step."""
        found = await self._rows(asked, interval, step_s)
        return Rows([row for row, _interval in found], sum(1 for _ in self._parts(asked, step_s)))

    def _rank(self, name: str) -> int:
        meaning = self._conventions.of(name)
        return meaning.rank if meaning.role is not None and meaning.rank < UNKNOWN else 0

    async def _active(self, products: Sequence[str], interval: Interval) -> Sequence[str]:
        values = [product.lower() for product in products if _TAG.fullmatch(product)]
        if products and not values:
            return []
        params = {"from": str(int(interval.start.timestamp()))}
        if values:
            params["tag_filter"] = " OR ".join(f"{self._tag}:{value}" for value in values)
        answer = await self._backend.get("/api/v1/metrics", params)
        self._check(answer)
        found = await read_body(answer, _ACTIVE)
        if found is None:
            raise UpstreamFailed("Datadog: not a list of metrics", answer.status)
        return [name for name in dict.fromkeys(found.metrics) if _METRIC.fullmatch(name)]

    async def _rows(
        self, asked: Sequence[SeriesSelection], interval: Interval, step_s: float | None
    ) -> list[tuple[Row, float]]:
        parts = list(self._parts(asked, step_s))
        found = await asyncio.gather(*(self._part(part, interval, step_s) for part in parts))
        return [row for rows in found for row in rows]

    def _parts(
        self, asked: Sequence[SeriesSelection], step_s: float | None
    ) -> Iterator[list[tuple[int, SeriesSelection]]]:
        """What fits one address; every query names its products."""
        part: list[tuple[int, SeriesSelection]] = []
        size = 0
        for number, one in enumerate(asked):
            if not _sendable(one):
                continue
            length = len(self._query(one, step_s))
            if part and (len(part) == _AT_ONCE or size + length > _MOST_CHARS):
                yield part
                part, size = [], 0
            part.append((number, one))
            size += length
        if part:
            yield part

    async def _part(
        self, part: Sequence[tuple[int, SeriesSelection]], interval: Interval, step_s: float | None
    ) -> list[tuple[Row, float]]:
        params = {
            "from": str(int(interval.start.timestamp())),
            "to": str(int(interval.end.timestamp())),
            "query": ",".join(self._query(one, step_s) for _number, one in part),
        }
        answer = await self._backend.get("/api/v1/query", params)
        self._check(answer)
        found = await read_body(answer, _TIMESERIES)
        if found is None:
            raise UpstreamFailed("Datadog: not a list of series", answer.status)
        if found.status == "error" or found.error:
            raise InvalidArguments(f"Datadog refuses the query: {(found.error or '')[:500]}")
        asked_for = [one for one in found.series if one.query < len(part)]
        foreign = len(found.series) - len(asked_for)
        if foreign:
            left_out(foreign)
            _log.warning("metrics.unreadable_series", backend=self.name, count=foreign)
        if foreign and not asked_for:
            raise UpstreamFailed("Datadog: series of other queries", answer.status)
        return [
            (self._row(one, *part[one.query], step_s), one.interval or 0.0) for one in asked_for
        ]

    def _query(self, asked: SeriesSelection, step_s: float | None) -> str:
        scope = [f"{name}:{value.lower()}" for name, value in sorted(asked.labels.items())]
        if asked.values:
            scope.insert(0, f"{asked.label} IN ({','.join(asked.values)})")
        by = dict.fromkeys((self._tag, *([] if step_s is None else [_ENVIRONMENT]), *asked.labels))
        space, time = _AGGREGATED[asked.how]
        count = ".as_count()" if asked.how in ("rate", "sum") else ""
        rollup = f".rollup({time}, {step_s:.0f})" if step_s is not None else ""
        where = " AND ".join(scope) or "*"
        return f"{space}:{asked.metric}{{{where}}} by {{{','.join(by)}}}{count}{rollup}"

    def _row(
        self, series: _Series, number: int, asked: SeriesSelection, step_s: float | None
    ) -> Row:
        tags = [*(series.scope or "").split(","), *(series.tags or ())]
        pairs = (tag.partition(":") for tag in tags)
        labels = {name: value for name, _colon, value in pairs if value not in ("", "N/A")}
        each = step_s if asked.how == "rate" and step_s else 1.0
        unit = _UNITS.get(series.unit[0].name) if series.unit and series.unit[0] else None
        per_second = asked.how == "rate"
        return Row(number, labels, list(_points(series, each)), None if per_second else unit)

    def _check(self, answer: Answer) -> None:
        if answer.ok:
            return
        try:
            words = "; ".join(parse(_REFUSAL, answer.body).errors)
        except ValueError:
            words = ""
        if answer.status == 400:
            raise InvalidArguments(f"Datadog refuses the query: {words[:500] or answer.words()}")
        raise refusal(answer, words)


def _sendable(asked: SeriesSelection) -> bool:
    """Whether it holds valid names only: an invalid one would fail the whole query."""
    names = [*asked.labels, *asked.values, *asked.labels.values()]
    return all((_METRIC.fullmatch(asked.metric), *map(_TAG.fullmatch, names)))


def _points(series: _Series, each: float) -> Iterator[tuple[float, float]]:
    for at_ms, value in series.points:
        if value is not None and math.isfinite(value):
            yield at_ms / 1000, value / each
