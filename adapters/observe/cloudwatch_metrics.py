"""Metrics of CloudWatch: what ListMetrics knows, read by GetMetricData.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html: 500 metrics and
100,800 values of one request, periods of whole minutes, of 5 minutes after 15 days and of an hour
after 63. ListMetrics gives 500 a page, of those with values in the last two weeks. A metric is paid
for each time that it is read.
"""

import asyncio
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pydantic import Field, JsonValue, TypeAdapter

from adapters.observe.aws import Aws, unreadable
from adapters.observe.backend import read_body
from adapters.observe.metric_source import Catalogue, How, Row, Rows, SeriesSelection
from adapters.observe.remembered import Remembered
from adapters.observe.signal_map import KnownMetric
from tools.capabilities import Interval
from tools.errors import UpstreamFailed
from tools.outside_json import Entries, EpochSeconds, OutsideModel, left_out
from tools.product_names import WORKLOAD_LABELS
from tools.signals import Place

_MOST_QUERIES: Final = 500  # of one request
_MOST_VALUES: Final = 100_800  # of one request
_MOST_READ: Final = 2000  # metrics of one question: some 0.02 USD
_MOST_PAGES: Final = 40  # of ListMetrics: 20,000 metrics
_MOST_PARTS: Final = 20  # of one answer of GetMetricData
_MOST_PRODUCTS: Final = 200
_REMEMBERED_FOR: Final = timedelta(minutes=5)
_PERIODS: Final = ((timedelta(days=63), 3600.0), (timedelta(days=15), 300.0))
# Across series they are combined where they are read.
_STATISTICS: Final[Mapping[How, str]] = {"sum": "Sum", "rate": "Sum", "p99": "p99"}
# The dimensions that AWS's own services name their things by, then those of people's own metrics.
_DIMENSIONS: Final = (
    "Service", "ServiceName", "FunctionName", "DBClusterIdentifier", "DBInstanceIdentifier",
    "LoadBalancer", "TargetGroup", "QueueName", "TableName", "TopicName", "StreamName", "ApiName",
    "ApiId", "CacheClusterId", "StateMachineArn", "FileSystemId", "AutoScalingGroupName", "ClusterName",
)  # fmt: skip
# app/my-load-balancer/50dc6c495c0c9188, targetgroup/my-targets/73e2d6bc24d8a067
_BALANCED: Final = re.compile(r"(?:app|net|gwy|targetgroup)/([^/]+)/[0-9a-f]+")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_:.]")


class _Dimension(OutsideModel):
    name: str = Field(alias="Name")
    value: str = Field(alias="Value")


class _Metric(OutsideModel):
    namespace: str = Field(alias="Namespace")
    name: str = Field(alias="MetricName")
    dimensions: Entries[_Dimension] = Field(default_factory=list, alias="Dimensions")


class _Metrics(OutsideModel):
    metrics: Entries[_Metric] = Field(default_factory=list, alias="Metrics")
    next: str = Field(default="", alias="NextToken")


class _Result(OutsideModel):
    id: str = Field(alias="Id")
    times: list[EpochSeconds] = Field(default_factory=list, alias="Timestamps")
    values: list[float] = Field(default_factory=list, alias="Values")
    status: str = Field(default="Complete", alias="StatusCode")


class _Results(OutsideModel):
    results: Entries[_Result] = Field(default_factory=list, alias="MetricDataResults")
    next: str = Field(default="", alias="NextToken")


_METRICS: Final = TypeAdapter(_Metrics)
_RESULTS: Final = TypeAdapter(_Results)


@dataclass(frozen=True, slots=True)
class _Listed:
    namespace: str
    name: str
    dimensions: Mapping[str, str]


class CloudWatchMetrics:
    """Implements `MetricSource`.

    `namespaces` are those to read, empty: all. `product_dimension` names a product before the usual
    dimensions do. A name in two namespaces becomes `AWS_RDS:CPUUtilization`.
    """

    name = "CloudWatch"
    quantiles = True

    def __init__(
        self, aws: Aws, namespaces: Sequence[str] = (), product_dimension: str = ""
    ) -> None:
        self._aws = aws
        self._namespaces = tuple(namespaces)
        own = (product_dimension,) if product_dimension else ()
        self._dimensions = tuple(dict.fromkeys((*own, *_DIMENSIONS, *WORKLOAD_LABELS)))
        self._listed: Remembered[Mapping[str, Sequence[_Listed]]] = Remembered(_REMEMBERED_FOR)

    def finest_s(self, interval: Interval, now: datetime) -> float:
        """What CloudWatch still has of that time."""
        age = now - interval.start
        return next((period for older, period in _PERIODS if age > older), 60.0)

    async def catalogue(self, products: Sequence[str], interval: Interval) -> Catalogue:
        """From the list alone: metrics written in the last two weeks."""
        del interval
        listed = await self._all()
        known = []
        for metric, found in sorted(listed.items()):
            places = self._placed(found)
            kept = {one: at for one, at in places.items() if not products or one in products}
            if kept:
                known.append(KnownMetric(metric, kept))
        every = dict.fromkeys(one for metric in known for one in metric.places)
        named = tuple(products) or tuple(sorted(every)[:_MOST_PRODUCTS])
        # AWS's services write once a minute, or every five: a step that is too fine has gaps alone.
        spacing = {metric.metric: 60.0 for metric in known}
        count = sum(map(len, listed.values()))
        cut = count >= _MOST_PAGES * _MOST_QUERIES
        notes = [f"only the first {count} metrics were listed; set namespaces"] if cut else []
        return Catalogue(known, named, spacing, notes)

    async def places(self, metric: str, product: str, interval: Interval) -> Sequence[Place]:
        """Of the list."""
        del interval
        return self._placed((await self._all()).get(metric, ())).get(product, ())

    async def read(
        self, asked: Sequence[SeriesSelection], interval: Interval, step_s: float
    ) -> Rows:
        """The aggregate where a product has one: the series of fewest dimensions."""
        listed = await self._all()
        wanted = [
            (number, one, each)
            for number, one in enumerate(asked)
            for each in _coarsest(one, listed.get(one.metric, ()))
        ]
        if len(wanted) > _MOST_READ:
            raise UpstreamFailed(
                f"CloudWatch: {len(wanted)} series at once, at most {_MOST_READ}; name fewer products"
            )
        period = math.ceil(step_s / 60) * 60
        points = math.ceil((interval.end - interval.start).total_seconds() / period) + 1
        size = max(1, min(_MOST_QUERIES, _MOST_VALUES // points))
        parts = [wanted[at : at + size] for at in range(0, len(wanted), size)]
        found = await asyncio.gather(*(self._part(part, interval, period) for part in parts))
        return Rows([row for rows in found for row in rows], len(parts))

    async def _part(
        self, part: Sequence[tuple[int, SeriesSelection, _Listed]], interval: Interval, period: int
    ) -> list[Row]:
        queries: list[JsonValue] = [
            {
                "Id": f"q{at}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": one.namespace,
                        "MetricName": one.name,
                        "Dimensions": [
                            {"Name": name, "Value": value} for name, value in one.dimensions.items()
                        ],
                    },
                    "Period": period,
                    "Stat": _STATISTICS.get(asked.how, "Average"),
                },
            }
            for at, (_number, asked, one) in enumerate(part)
        ]
        body: dict[str, JsonValue] = {
            "MetricDataQueries": queries,
            "StartTime": interval.start.timestamp() // period * period,
            "EndTime": interval.end.timestamp(),
            "ScanBy": "TimestampAscending",
        }
        points = await self._points(body)
        return [
            Row(number, one.dimensions, sorted(_values(points[f"q{at}"], asked.how, period)))
            for at, (number, asked, one) in enumerate(part)
        ]

    async def _points(
        self, body: dict[str, JsonValue]
    ) -> Mapping[str, Sequence[tuple[float, float]]]:
        """By query. Raises UpstreamFailed for an answer that does not end, or is not whole."""
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        token = ""
        for _ in range(_MOST_PARTS):
            more: dict[str, JsonValue] = {"NextToken": token} if token else {}
            answer = await self._aws.call("GetMetricData", {**body, **more})
            page = await read_body(answer, _RESULTS)
            if page is None:
                raise unreadable(self.name, answer)
            for one in page.results:
                if one.status not in ("Complete", "PartialData"):
                    raise UpstreamFailed(f"CloudWatch: a metric ended as {one.status}")
                pairs = list(zip(one.times, one.values, strict=False))
                is_whole = len(pairs) == len(one.times) == len(one.values)
                found[one.id] += pairs if is_whole else []  # else a value's time is not known
                left_out(not is_whole)
            if not page.next:
                left_out(sum(one.status == "PartialData" for one in page.results))
                return found
            token = page.next
        raise UpstreamFailed(f"CloudWatch: more than {_MOST_PARTS} parts of one answer")

    async def _all(self) -> Mapping[str, Sequence[_Listed]]:
        return await self._listed.get("", self._list)

    async def _list(self) -> Mapping[str, Sequence[_Listed]]:
        found = await asyncio.gather(*(self._pages(one) for one in self._namespaces or ("",)))
        listed = [one for part in found for one in part]
        namespaces: dict[str, set[str]] = defaultdict(set)
        for one in listed:
            namespaces[one.name].add(one.namespace)
        named: dict[str, list[_Listed]] = defaultdict(list)
        for one in listed:
            alone = len(namespaces[one.name]) == 1
            full = one.name if alone else f"{one.namespace.replace(':', '_')}:{one.name}"
            named[_OTHER.sub("_", full)].append(one)
        return named

    async def _pages(self, namespace: str) -> list[_Listed]:
        listed: list[_Listed] = []
        token = ""
        for _ in range(_MOST_PAGES):
            body: dict[str, JsonValue] = {"Namespace": namespace} if namespace else {}
            body |= {"NextToken": token} if token else {}
            answer = await self._aws.call("ListMetrics", body)
            page = await read_body(answer, _METRICS)
            if page is None:
                raise unreadable(self.name, answer)
            listed += [
                _Listed(one.namespace, one.name, {d.name: d.value for d in one.dimensions})
                for one in page.metrics
            ]
            if not page.next or page.next == token:
                break
            token = page.next
        return listed

    def _placed(self, listed: Iterable[_Listed]) -> dict[str, list[Place]]:
        found: dict[str, dict[str, dict[str, None]]] = defaultdict(lambda: defaultdict(dict))
        for one in listed:
            for dimension in self._dimensions:
                value = one.dimensions.get(dimension, "")
                if value:
                    found[_product(value)][dimension][value] = None
        return {
            product: [Place(dimension, value) for value in of[dimension]]
            for product, of in found.items()
            for dimension in [min(of, key=self._dimensions.index)]
        }


def _product(value: str) -> str:
    balanced = _BALANCED.fullmatch(value)
    return balanced[1] if balanced else value.rpartition("/")[2].rpartition(":")[2]


def _coarsest(asked: SeriesSelection, listed: Iterable[_Listed]) -> list[_Listed]:
    fit: dict[str, list[_Listed]] = defaultdict(list)
    for one in listed:
        value = one.dimensions.get(asked.label, "")
        others = all(one.dimensions.get(name) == of for name, of in asked.labels.items())
        if others and (not asked.label or value in asked.values):
            fit[value].append(one)
    if not asked.label:
        return [one for of in fit.values() for one in of]
    fewest = {value: min(len(one.dimensions) for one in of) for value, of in fit.items()}
    return [one for value, of in fit.items() for one in of if len(one.dimensions) == fewest[value]]


def _values(
    points: Iterable[tuple[float, float]], how: How, period: int
) -> Iterator[tuple[float, float]]:
    each = period if how == "rate" else 1
    return ((at, value / each) for at, value in points if math.isfinite(value))
