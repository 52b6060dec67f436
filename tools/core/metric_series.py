"""core__get_metrics and core__query_metrics: series with the statistics of all their points, thinned."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, Field

from tools.capabilities import (
    CallContext,
    Capabilities,
    MetricQuery,
    MetricResult,
    Metrics,
    Series,
    SweepQuery,
)
from tools.contract import ToolInput, ToolOutput
from tools.core.arguments import Labels, MetricName, Product, StepText, TimeRangeText, step_seconds
from tools.core.built_in import bound, read_only
from tools.output import clean_text
from tools.products import BY_PRODUCT, CANNOT_BE_TOLD
from tools.statistics import MAX_POINTS, downsampled, finite, rounded, summary
from tools.timerange import TimeRange, instant_text, parse_time_range

MAX_SERIES = 20
POINTS_BUDGET = 240  # over all series; four can have 60 points each
MIN_POINTS = 12
MAX_NOTES = 10
MAX_CHARS = 4000  # of a query


class Sample(ToolOutput):
    ts: str
    value: float


class SeriesStats(ToolOutput):
    """Of every point in the range, not only of those shown."""

    min: float
    max: float
    mean: float
    p50: float
    p95: float
    p99: float


class MetricSeries(ToolOutput):
    """One series. `gaps` counts points without a finite value."""

    labels: dict[str, str]
    stats: SeriesStats | None = None
    gaps: int | None = None
    samples: list[Sample]


class MetricsOutput(ToolOutput):
    """One series has its fields here; several are a list, those with the highest maximum first."""

    range: str
    step_s: float
    unit: str | None = None
    labels: dict[str, str] | None = None
    stats: SeriesStats | None = None
    gaps: int | None = None
    samples: list[Sample] | None = None
    series: list[MetricSeries] | None = None
    truncated: bool
    notes: list[str] | None = None


class MetricsInput(ToolInput):
    product: Product
    metric_name: MetricName
    time_range: TimeRangeText
    labels: Annotated[Labels, Field(description="Label filters", default_factory=dict)]
    step: Annotated[StepText | None, Field(description="Resolution, e.g. '1m', '5m'")] = None


class GetMetrics:
    contract = read_only(
        "get_metrics",
        "Series of a metric of a product over a time range, with min/max/mean/percentiles."
        " Use to see a value's course; it does not"
        " say whether that is unusual.",
        (MetricsInput, MetricsOutput),
        "metrics",
        BY_PRODUCT,
        "investigate",
    )

    async def execute(
        self, arguments: MetricsInput, call: CallContext, caps: Capabilities
    ) -> MetricsOutput:
        when = parse_time_range(arguments.time_range, call.now)
        query = MetricQuery(
            product=arguments.product,
            metric=arguments.metric_name,
            interval=when.interval,
            labels=arguments.labels,
            step_s=step_seconds(arguments.step),
        )
        return view(await read_metric(bound(caps.metrics, "metrics"), query), when)

    def summarise(self, output: MetricsOutput, arguments: MetricsInput) -> str:
        return _summary(arguments.metric_name, output, arguments.time_range)


async def read_metric(metrics: Metrics, query: MetricQuery) -> MetricResult:
    """The series of a metric, or of a ratio, mean or quantile that only find_metrics names."""
    result = await metrics.query_range(query)
    if result.series:
        return result
    found = await metrics.discover([query.product], query.interval)
    made = (one for one in found.signals if query.metric == one.name != one.metric)
    signal = next(made, None)
    if signal is None:
        return result
    if query.labels:
        note = f"{signal.name} is made of {signal.metric} over all its labels: ask without labels"
        return replace(result, notes=(note,))
    swept = await metrics.sweep(
        SweepQuery([signal], query.interval, result.step_s, [query.product])
    )
    series = [
        Series({}, [(datetime.fromtimestamp(at_s, UTC), value) for at_s, value in one.points])
        for one in swept.series
    ]
    return MetricResult(series, signal.unit, swept.step_s, swept.notes) if series else result


def _query(text: str) -> str:
    if not text.strip() or not text.replace("\n", " ").replace("\t", " ").isprintable():
        raise ValueError("a query is printable text, not empty")
    return text.strip()


class QueryInput(ToolInput):
    query: Annotated[
        str,
        AfterValidator(_query),
        Field(max_length=MAX_CHARS, description="PromQL, e.g. 'sum by (pod) (rate(x_total[5m]))'"),
    ]
    time_range: TimeRangeText
    step: Annotated[StepText | None, Field(description="Resolution, e.g. '1m', '5m'")] = None
    instant: Annotated[bool, Field(description="Only the value at the range's end")] = False


class QueryMetrics:
    contract = read_only(
        "query_metrics",
        "Runs PromQL over a time range. Use where one metric is not enough: sums over labels,"
        " ratios, topk. Use only names that were found before.",
        (QueryInput, MetricsOutput),
        "metrics",
        CANNOT_BE_TOLD,
        "investigate",
    )

    async def execute(
        self, arguments: QueryInput, call: CallContext, caps: Capabilities
    ) -> MetricsOutput:
        when = parse_time_range(arguments.time_range, call.now)
        step_s = step_seconds(arguments.step)
        metrics = bound(caps.metrics, "metrics")
        result = await metrics.promql(
            arguments.query, when.interval, step_s, instant=arguments.instant
        )
        return view(result, when)

    def summarise(self, output: MetricsOutput, arguments: QueryInput) -> str:
        return _summary(" ".join(arguments.query.split())[:40], output, arguments.time_range)


def view(result: MetricResult, when: TimeRange) -> MetricsOutput:
    """The series with the highest maximum first."""
    series = sorted(result.series, key=_height, reverse=True)
    shown = series[:MAX_SERIES]
    each = max(MIN_POINTS, min(MAX_POINTS, POINTS_BUDGET // max(1, len(shown))))
    found = [_series(one, each) for one in shown]
    alone = found[0] if len(found) == 1 else None
    return MetricsOutput(
        range=when.text,
        step_s=result.step_s,
        unit=result.unit,
        labels=alone.labels if alone else None,
        stats=alone.stats if alone else None,
        gaps=alone.gaps if alone else None,
        samples=alone.samples if alone else None if found else [],
        series=found if len(found) > 1 else None,
        truncated=len(series) > MAX_SERIES,
        notes=[*_notes(result, len(series)), *when.notes] or None,
    )


def _summary(name: str, output: MetricsOutput, when: str) -> str:
    """`p99_latency: 2 series, max 0.85 seconds`."""
    known = [output.stats, *(one.stats for one in output.series or ())]
    tops = [stats.max for stats in known if stats is not None]
    if not tops:
        return f"{name}: no data, {when}"
    unit = f" {output.unit}" if output.unit else ""
    number = len(output.series) if output.series else 1
    return f"{name}: {number} series, max {max(tops):g}{unit}"


def _height(series: Series) -> float:
    return max((value for _, value in finite(series.points)), default=float("-inf"))


def _notes(result: MetricResult, found: int) -> list[str]:
    notes = [clean_text(note) for note in result.notes[:MAX_NOTES]]
    if found > MAX_SERIES:
        notes.append(f"{found} series, the {MAX_SERIES} with the highest maximum are shown")
    if not found and not notes:
        notes.append("no series matched; the metric's name or labels may be wrong")
    return notes


def _series(series: Series, max_points: int) -> MetricSeries:
    points = finite(series.points)
    stats = summary([value for _, value in points])
    gaps = len(series.points) - len(points)
    return MetricSeries(
        labels={clean_text(key): clean_text(value) for key, value in series.labels.items()},
        stats=SeriesStats(**{n: rounded(v) for n, v in asdict(stats).items()}) if stats else None,
        gaps=gaps or None,
        samples=[
            Sample(ts=instant_text(at), value=rounded(value))
            for at, value in downsampled(points, max_points)
        ],
    )
