"""core__compare_to_baseline: is a metric unusual now, against its own last 24 hours?

The window under test and a guard gap before it are left out of the baseline, so that the incident
does not raise its own bar.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from tools.capabilities import (
    CallContext,
    Capabilities,
    Interval,
    MetricQuery,
    MetricResult,
    Series,
)
from tools.contract import COMPUTED, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import MetricName, Product, TimeRangeText
from tools.core.bound import bound
from tools.errors import InvalidArguments
from tools.output import clean_text
from tools.products import BY_PRODUCT
from tools.statistics import (
    MIN_BASELINE_POINTS,
    Baseline,
    Direction,
    FinitePoint,
    baseline,
    direction,
    downsampled,
    finite,
    relative_change,
    rounded,
    sustained_from,
)
from tools.timerange import TimeRange, instant_text, parse_time_range, range_text

BASELINE_LENGTH = timedelta(hours=24)
GUARD_GAP = timedelta(minutes=10)  # an incident begins before anybody asks about it
MAX_WINDOW = timedelta(hours=24)
STEP_S = 60.0
MAX_SAMPLES = 12
MAX_SERIES = 50
MAX_NOTES = 10


class CompareInput(ToolInput):
    """Which metric, and the window under test."""

    product: Product
    metric_name: MetricName
    time_range: TimeRangeText


class ComparedSample(ToolOutput):
    """One of the most telling points."""

    ts: str
    value: float
    z_score: float | None = None
    anomalous: bool


class CompareOutput(ToolOutput):
    """The verdict, with all that is needed to doubt it. Without a z-score, `notes` says why."""

    range: str
    baseline_window: str
    unit: str | None = None
    series: dict[str, str] | None = None
    baseline_mean: float | None = None
    baseline_stddev: float | None = None
    n: int
    coverage: float
    window_mean: float | None = None
    window_max: float | None = None
    same_time_yesterday_mean: float | None = None
    relative_change: float | None = None
    direction: Direction | None = None
    anomalous: bool
    anomaly_count: int
    max_z_score: float | None = None
    first_anomaly_at: str | None = None
    samples: list[ComparedSample]
    notes: list[str] | None = None


@dataclass(frozen=True, slots=True)
class _Compared:
    """One series: its points in the window, against what is usual for it."""

    labels: dict[str, str]
    usual: Baseline
    window: Sequence[FinitePoint]
    yesterday_mean: float | None

    @property
    def peak(self) -> FinitePoint | None:
        """The point furthest from usual."""
        return max(self.window, key=lambda p: abs(p[1] - self.usual.mean), default=None)

    @property
    def since(self) -> datetime | None:
        """When the sustained anomaly began."""
        return sustained_from(self.window, self.usual)

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """A sustained anomaly before a lone spike, however high the spike's score."""
        if self.peak is None:
            return False, False, 0.0
        distance = abs(self.peak[1] - self.usual.mean) / self.usual.floor
        return self.since is not None, self.usual.sufficient, distance


class CompareToBaseline:
    """Compares a window of a metric with the 24 hours before it."""

    contract = ToolContract(
        id="core__compare_to_baseline",
        description=(
            "Whether a metric is unusual in a time range, against the 24 hours before it:"
            " z-score, relative change, when the anomaly began. Use to confirm or rule out a"
            " suspicion. Trust it less when coverage is low or notes say so."
        ),
        input=CompareInput,
        output=CompareOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(CompareOutput.model_fields),
        timeouts=COMPUTED,
        capabilities=frozenset({"metrics"}),
        products=BY_PRODUCT,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: CompareInput, call: CallContext, caps: Capabilities
    ) -> CompareOutput:
        """Raises InvalidArguments for a bad time range or a raw counter; what Metrics raises."""
        when = parse_time_range(arguments.time_range, call.now)
        window = when.interval
        if window.end - window.start > MAX_WINDOW:
            raise InvalidArguments("time_range: at most 24 hours can be compared")
        usual = Interval(window.start - GUARD_GAP - BASELINE_LENGTH, window.start - GUARD_GAP)
        query = MetricQuery(
            product=arguments.product,
            metric=arguments.metric_name,
            interval=Interval(usual.start, window.end),
            step_s=STEP_S,
        )
        result = await bound(caps.metrics, "metrics").query_range(query)
        _refuse_raw_counter(arguments.metric_name, result.series)
        compared = [
            _compared(series, usual, window, result.step_s) for series in result.series[:MAX_SERIES]
        ]
        worst = max(compared, key=lambda one: one.rank, default=None)
        notes = _notes(worst, result, when)
        return _output(worst, when, range_text(usual), result.unit, notes)

    def summarise(self, output: CompareOutput, arguments: CompareInput) -> str:
        """`p99 3.1x baseline, z 14`."""
        name = arguments.metric_name
        if output.window_mean is None or output.window_max is None:
            return f"{name}: no data, {arguments.time_range}"
        if output.baseline_mean is None or output.n < MIN_BASELINE_POINTS:
            return f"{name}: insufficient baseline"
        if not output.anomalous:
            return f"{name} within baseline"
        score = "" if output.max_z_score is None else f", z {output.max_z_score:.0f}"
        reached = output.window_mean if output.direction == "down" else output.window_max
        change = relative_change(output.baseline_mean, reached)
        if change is None or output.baseline_mean < 0:
            return f"{name} {output.baseline_mean:g} → {reached:g}{score}"
        return f"{name} {reached / output.baseline_mean:.1f}x baseline{score}"


def _refuse_raw_counter(metric: str, series: Sequence[Series]) -> None:
    """A counter only grows: every window of it is above its past. A rate never looks like that."""
    for one in series if metric.endswith("_total") else ():
        values = [value for _, value in finite(one.points)]
        grows = all(before <= after for before, after in pairwise(values))
        if len(values) > MIN_BASELINE_POINTS and grows and values[0] < values[-1]:
            raise InvalidArguments(f"metric_name: {metric} is a raw counter; compare a rate")


def _compared(series: Series, usual: Interval, window: Interval, step_s: float) -> _Compared:
    points = finite(series.points)
    before = [value for at, value in points if usual.start <= at < usual.end]
    day = timedelta(days=1)
    yesterday = [value for at, value in points if window.start - day <= at < window.end - day]
    return _Compared(
        labels={clean_text(key): clean_text(value) for key, value in series.labels.items()},
        usual=baseline(before, round(BASELINE_LENGTH.total_seconds() / step_s)),
        window=[point for point in points if window.start <= point[0] < window.end],
        yesterday_mean=sum(yesterday) / len(yesterday) if yesterday else None,
    )


def _notes(worst: _Compared | None, result: MetricResult, when: TimeRange) -> list[str]:
    notes = [clean_text(note) for note in result.notes[:MAX_NOTES]]
    if when.assumed:
        notes.append(when.assumed)
    if len(result.series) > 1:
        notes.append(f"{len(result.series)} series; the most unusual one is shown")
    if len(result.series) > MAX_SERIES:
        notes.append(f"only the first {MAX_SERIES} series were compared")
    if worst is None or not worst.window:
        return [*notes, "no data in the time range"]
    usual = worst.usual
    if not usual.sufficient:
        return [*notes, f"insufficient baseline: {usual.n} points, {MIN_BASELINE_POINTS} needed"]
    if usual.constant:
        notes.append("baseline constant: no z-score; any change beyond 1 % counts")
    elif usual.floor > usual.stddev * 1.001:
        notes.append(f"z divides by {rounded(usual.floor):g}, a floor above the deviation")
    if usual.coverage < 0.8:
        notes.append("gaps in the baseline")
    return notes


def _output(
    worst: _Compared | None, when: TimeRange, usual: str, unit: str | None, notes: list[str]
) -> CompareOutput:
    if worst is None or worst.peak is None:
        return CompareOutput(
            range=when.text,
            baseline_window=usual,
            unit=unit,
            n=worst.usual.n if worst else 0,
            coverage=rounded(worst.usual.coverage, 3) if worst else 0.0,
            anomalous=False,
            anomaly_count=0,
            samples=[],
            notes=notes or None,
        )
    known, values = worst.usual, [value for _, value in worst.window]
    mean = sum(values) / len(values)
    has_past = known.n > 0
    return CompareOutput(
        range=when.text,
        baseline_window=usual,
        unit=unit,
        series=worst.labels or None,
        baseline_mean=rounded(known.mean) if has_past else None,
        baseline_stddev=rounded(known.stddev) if has_past else None,
        n=known.n,
        coverage=rounded(known.coverage, 3),
        window_mean=rounded(mean),
        window_max=rounded(max(values)),
        same_time_yesterday_mean=_rounded(worst.yesterday_mean),
        relative_change=_rounded(relative_change(known.mean, mean)) if has_past else None,
        direction=direction(known, mean) if known.sufficient else None,
        anomalous=worst.since is not None,
        anomaly_count=sum(known.anomalous(value) for value in values),
        max_z_score=_rounded(known.z_score(worst.peak[1])),
        first_anomaly_at=None if worst.since is None else instant_text(worst.since),
        samples=_samples(worst, worst.peak),
        notes=notes or None,
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)


def _samples(compared: _Compared, peak: FinitePoint) -> list[ComparedSample]:
    """The course in few points, with the peak and the begin of the anomaly among them."""
    course = downsampled(compared.window, MAX_SAMPLES - 2)
    begin = [point for point in compared.window if point[0] == compared.since]
    usual = compared.usual
    return [
        ComparedSample(
            ts=instant_text(at),
            value=rounded(value),
            z_score=_rounded(usual.z_score(value)),
            anomalous=usual.anomalous(value),
        )
        for at, value in sorted({*course, *begin, peak})
    ]
