"""core__get_metrics: series of a metric with their statistics, thinned to what can be read."""

from typing import Annotated

from pydantic import Field

from tools.capabilities import CallContext, Capabilities, MetricQuery, MetricResult, Series
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import Labels, MetricName, Product, StepText, TimeRangeText, step_seconds
from tools.core.bound import bound
from tools.output import clean_text
from tools.products import BY_PRODUCT
from tools.statistics import MAX_POINTS, downsampled, finite, rounded, summary
from tools.timerange import instant_text, parse_time_range

MAX_SERIES = 20
POINTS_BUDGET = 240  # over all series; four can have 60 points each
MIN_POINTS = 12
MAX_NOTES = 10


class MetricsInput(ToolInput):
    """Which metric."""

    product: Product
    metric_name: MetricName
    time_range: TimeRangeText
    labels: Annotated[Labels, Field(description="Label filters", default_factory=dict)]
    step: Annotated[StepText | None, Field(description="Resolution, e.g. '1m', '5m'")] = None


class Sample(ToolOutput):
    """One point."""

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
    """One series lies open; of several there is a list, those with the highest maximum first."""

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


class GetMetrics:
    """Reads a metric over a time range."""

    contract = ToolContract(
        id="core__get_metrics",
        description=(
            "Series of a metric of a product over a time range, with min/max/mean/percentiles."
            " Use to see a value's course; to ask whether it is unusual use"
            " core__compare_to_baseline."
        ),
        input=MetricsInput,
        output=MetricsOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(
            {
                "range",
                "step_s",
                "unit",
                "labels",
                "stats",
                "gaps",
                "samples[].ts",
                "samples[].value",
                "series[].labels",
                "series[].stats",
                "series[].gaps",
                "series[].samples[].ts",
                "series[].samples[].value",
                "truncated",
                "notes",
            }
        ),
        timeouts=QUERY,
        capabilities=frozenset({"metrics"}),
        products=BY_PRODUCT,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: MetricsInput, call: CallContext, caps: Capabilities
    ) -> MetricsOutput:
        """Raises InvalidArguments for a bad time range or step; what Metrics raises."""
        when = parse_time_range(arguments.time_range, call.now)
        query = MetricQuery(
            product=arguments.product,
            metric=arguments.metric_name,
            interval=when.interval,
            labels=arguments.labels,
            step_s=step_seconds(arguments.step),
        )
        result = await bound(caps.metrics, "metrics").query_range(query)
        series = sorted(result.series, key=_height, reverse=True)
        shown = series[:MAX_SERIES]
        each = max(MIN_POINTS, min(MAX_POINTS, POINTS_BUDGET // max(1, len(shown))))
        notes = [*_notes(result, len(series)), *([when.assumed] if when.assumed else [])]
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
            notes=notes or None,
        )

    def summarise(self, output: MetricsOutput, arguments: MetricsInput) -> str:
        """`p99_latency: 2 series, max 0.85 seconds`."""
        known = [output.stats, *(one.stats for one in output.series or ())]
        tops = [stats.max for stats in known if stats is not None]
        if not tops:
            return f"{arguments.metric_name}: no data, {arguments.time_range}"
        unit = f" {output.unit}" if output.unit else ""
        number = len(output.series) if output.series else 1
        return f"{arguments.metric_name}: {number} series, max {max(tops):g}{unit}"


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
        stats=None
        if stats is None
        else SeriesStats(
            min=rounded(stats.min),
            max=rounded(stats.max),
            mean=rounded(stats.mean),
            p50=rounded(stats.p50),
            p95=rounded(stats.p95),
            p99=rounded(stats.p99),
        ),
        gaps=gaps or None,
        samples=[
            Sample(ts=instant_text(at), value=rounded(value))
            for at, value in downsampled(points, max_points)
        ],
    )
