"""What core__compare_to_baseline answers: a compared series with all that is needed to doubt it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from tools.baseline import Baseline, Direction, direction, sustained_from
from tools.contract import ToolOutput
from tools.statistics import FinitePoint, downsampled, relative_change, rounded
from tools.timerange import TimeRange, instant_text

MAX_SAMPLES = 12
MAX_PRODUCTS = 20
AGREEING_DAYS = 2  # earlier days on which it was so: then it is the time of day


class ComparedSample(ToolOutput):
    ts: str
    value: float
    z_score: float | None = None
    anomalous: bool


class ComparedProduct(ToolOutput):
    """One product of several; without a verdict its baseline is too short."""

    product: str
    baseline_median: float
    window_median: float
    window_max: float
    relative_change: float | None = None
    max_z_score: float | None = None
    anomalous: bool | None = None
    direction: Direction | None = None
    first_anomaly_at: str | None = None


class CompareOutput(ToolOutput):
    """The verdict, with all figures needed to doubt it. Without a z-score, `notes` says why.

    Of several products the fields show the most unusual one; `products` has all.
    """

    range: str
    baseline_window: str
    unit: str | None = None
    series: dict[str, str] | None = None
    baseline_median: float | None = None
    baseline_mean: float | None = None
    baseline_stddev: float | None = None
    baseline_spread: float | None = None
    n: int
    coverage: float
    window_mean: float | None = None
    window_median: float | None = None
    window_max: float | None = None
    hour_before_median: float | None = None
    same_time_yesterday_mean: float | None = None
    same_time_earlier_days: list[float] | None = None
    relative_change: float | None = None
    direction: Direction | None = None
    anomalous: bool
    anomaly_count: int
    max_z_score: float | None = None
    first_anomaly_at: str | None = None
    samples: list[ComparedSample]
    products: list[ComparedProduct] | None = None
    notes: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """One series: its points in the window, against its baseline."""

    labels: dict[str, str]
    usual: Baseline
    window: Sequence[FinitePoint]
    hour_before: Sequence[float]
    yesterday: Sequence[float]
    spacing_s: float

    @property
    def middle(self) -> float:
        """The window's median; there is one point at least."""
        return median(value for _, value in self.window)

    @property
    def peak(self) -> FinitePoint | None:
        return max(self.window, key=lambda p: abs(p[1] - self.usual.median), default=None)

    @property
    def since(self) -> datetime | None:
        return sustained_from(self.window, self.usual, self.spacing_s)

    @property
    def way(self) -> Direction | None:
        """Where it went; None when the baseline is too short."""
        if not self.usual.sufficient:
            return None
        if self.since is None or self.peak is None:
            return direction(self.usual, self.middle)
        return "up" if self.peak[1] > self.usual.median else "down"

    @property
    def rank(self) -> tuple[bool, bool, float]:
        """A sustained anomaly before a lone spike, however high the spike's score."""
        if self.peak is None:
            return False, False, 0.0
        distance = abs(self.peak[1] - self.usual.median) / self.usual.spread
        return self.since is not None, self.usual.sufficient, distance


@dataclass(frozen=True, slots=True)
class AnswerNotes:
    when: TimeRange
    usual: str
    unit: str | None
    notes: list[str]
    earlier: list[float]


def answer(worst: Compared | None, told: AnswerNotes, several: Sequence[Compared]) -> CompareOutput:
    """`several` are all products that were compared, when there were more than one."""
    products = [_product(one) for one in _ranked(several)[:MAX_PRODUCTS]] if several else None
    if worst is None or worst.peak is None:
        return CompareOutput(
            range=told.when.text,
            baseline_window=told.usual,
            unit=told.unit,
            n=worst.usual.n if worst else 0,
            coverage=rounded(worst.usual.coverage, 3) if worst else 0.0,
            anomalous=False,
            anomaly_count=0,
            samples=[],
            products=products,
            notes=told.notes or None,
        )
    known, values = worst.usual, [value for _, value in worst.window]
    mean, has_past = sum(values) / len(values), known.n > 0
    usual_then = _usual_at_this_time(worst, told.earlier)
    if usual_then:
        told.notes.append(f"the same at this time on {usual_then} earlier days: not called unusual")
    since = None if usual_then else worst.since
    return CompareOutput(
        range=told.when.text,
        baseline_window=told.usual,
        unit=told.unit,
        series=worst.labels or None,
        baseline_median=rounded(known.median) if has_past else None,
        baseline_mean=rounded(known.mean) if has_past else None,
        baseline_stddev=rounded(known.stddev) if has_past else None,
        baseline_spread=rounded(known.spread) if has_past else None,
        n=known.n,
        coverage=rounded(known.coverage, 3),
        window_mean=rounded(mean),
        window_median=rounded(worst.middle),
        window_max=rounded(max(values)),
        hour_before_median=_rounded(median(worst.hour_before) if worst.hour_before else None),
        same_time_yesterday_mean=_rounded(_mean(worst.yesterday)),
        same_time_earlier_days=[rounded(one) for one in told.earlier] or None,
        relative_change=_rounded(relative_change(known.median, mean)) if has_past else None,
        direction=worst.way,
        anomalous=since is not None,
        anomaly_count=sum(known.anomalous(value) for value in values),
        max_z_score=_rounded(known.z_score(worst.peak[1])),
        first_anomaly_at=None if since is None else instant_text(since),
        samples=_samples(worst, worst.peak),
        products=products,
        notes=told.notes or None,
    )


def _usual_at_this_time(worst: Compared, earlier: Sequence[float]) -> int:
    near = max(worst.usual.spread, worst.usual.least_effect)
    agree = sum(abs(one - worst.middle) <= near for one in earlier)
    return agree if agree >= AGREEING_DAYS else 0


def _ranked(compared: Sequence[Compared]) -> list[Compared]:
    return sorted((one for one in compared if one.window), key=lambda one: one.rank, reverse=True)


def _product(one: Compared) -> ComparedProduct:
    known, values = one.usual, [value for _, value in one.window]
    peak = one.peak
    return ComparedProduct(
        product=one.labels.get("product", ""),
        baseline_median=rounded(known.median),
        window_median=rounded(one.middle),
        window_max=rounded(max(values)),
        relative_change=_rounded(relative_change(known.median, one.middle)),
        max_z_score=_rounded(known.z_score(peak[1])) if peak else None,
        anomalous=one.since is not None if known.sufficient else None,
        direction=one.way,
        first_anomaly_at=None if one.since is None else instant_text(one.since),
    )


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)


def _samples(compared: Compared, peak: FinitePoint) -> list[ComparedSample]:
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
