"""Series as tools show them: with statistics of all their points, thinned to what can be read."""

from collections.abc import Sequence

from tools.capabilities import MetricResult, Series
from tools.contract import ToolOutput
from tools.output import clean_text
from tools.statistics import MAX_POINTS, downsampled, finite, rounded, summary
from tools.timerange import instant_text

MAX_SERIES = 20
POINTS_BUDGET = 240  # over all series; four can have 60 points each
MIN_POINTS = 12
MAX_NOTES = 10
# What of it may be shown.
REDACTION = frozenset(
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
)


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


def view(result: MetricResult, when: str, more_notes: Sequence[str] = ()) -> MetricsOutput:
    """The series with the highest maximum first. `when` is the range in words."""
    series = sorted(result.series, key=_height, reverse=True)
    shown = series[:MAX_SERIES]
    each = max(MIN_POINTS, min(MAX_POINTS, POINTS_BUDGET // max(1, len(shown))))
    found = [_series(one, each) for one in shown]
    alone = found[0] if len(found) == 1 else None
    return MetricsOutput(
        range=when,
        step_s=result.step_s,
        unit=result.unit,
        labels=alone.labels if alone else None,
        stats=alone.stats if alone else None,
        gaps=alone.gaps if alone else None,
        samples=alone.samples if alone else None if found else [],
        series=found if len(found) > 1 else None,
        truncated=len(series) > MAX_SERIES,
        notes=[*_notes(result, len(series)), *more_notes] or None,
    )


def told(name: str, output: MetricsOutput, when: str) -> str:
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
