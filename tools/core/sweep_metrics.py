"""core__sweep_metrics: every role of every product against the time before, in a few requests."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from tools.analysis.comparable import least_before_s
from tools.analysis.course import course
from tools.analysis.gaps import STALE_STEPS
from tools.analysis.shift import Shift
from tools.analysis.trajectory import Trajectory, at_limit
from tools.analysis.usual import UNUSUAL
from tools.capabilities import CallContext, Capabilities, Interval, SweptSeries
from tools.core.built_in import bound, read_only
from tools.core.metric_coverage import with_coverage
from tools.core.metric_gaps import with_gaps
from tools.core.metric_history import DayLook, read_history, with_week_ago
from tools.core.metric_labels import MOST_READ, LabelLook, ReplicaLook
from tools.core.metric_reading import (
    LONGEST_BASELINE,
    Judged,
    chosen,
    fine_step_of,
    read_at,
    step_of,
)
from tools.core.metric_shapes import counted_by_shape, units_of
from tools.core.metric_sweep import Comparable, Course, MetricShift, MetricStanding, MetricSweep
from tools.core.sweep_arguments import SWEEP_SCOPE, SweepInput, at_text, products_of, window_of
from tools.output import clean_text
from tools.signals import Discovered, Role, Signal
from tools.statistics import finite, rounded
from tools.timerange import instant_text, range_text

MOST_COURSES: Final = 4
COURSE_POINTS: Final = 20  # as many as a chart takes


def with_courses(
    output: MetricSweep, series: Sequence[SweptSeries], window: Interval, asked: str
) -> MetricSweep:
    """The same with a course for each role of a product, the product asked about first."""
    read = {(clean_text(one.product), clean_text(one.signal)): one.points for one in series}
    worst: dict[tuple[str, Role], MetricShift] = {}
    for one in sorted(output.shifts, key=lambda each: each.product != asked):
        if one.score >= UNUSUAL and (one.product, one.signal) in read:
            worst.setdefault((one.product, one.role), one)
    drawn = list(worst.values())[:MOST_COURSES]
    shifts = [
        one.model_copy(update={"course": _course(read[one.product, one.signal], one, window)})
        if one in drawn
        else one
        for one in output.shifts
    ]
    return output.model_copy(update={"shifts": shifts})


def _course(points: Sequence[tuple[float, float]], shift: MetricShift, window: Interval) -> Course:
    end = window.end
    begin = window.start - (end - window.start) / 2
    known = [(datetime.fromtimestamp(at_s, end.tzinfo), value) for at_s, value in points]
    since = [at for at, _ in known if shift.since and instant_text(at) == shift.since]
    kept = course([one for one in finite(known) if one[0] >= begin], COURSE_POINTS, since)
    return Course(
        before_end_s=[round((end - at).total_seconds()) for at, _ in kept],
        values=[rounded(value) for _, value in kept],
    )


MOST_SHIFTS: Final = 80
MOST_STANDING: Final = 20
MOST_BUSY: Final = 10
WORTH_TELLING: Final = 1.5  # spreads


class SweepMetrics:
    contract = read_only(
        "sweep_metrics",
        "Changed metrics of all products, by role, against the time before: size and onset, "
        "and metrics that stayed normal or could not be compared.",
        (SweepInput, MetricSweep),
        "metrics",
        SWEEP_SCOPE,
        "investigate",
    )

    async def execute(
        self, arguments: SweepInput, call: CallContext, caps: Capabilities
    ) -> MetricSweep:
        metrics = bound(caps.metrics, "metrics")
        window, products = window_of(arguments, call), products_of(arguments, call)
        found = await metrics.discover(
            products, Interval(window.start - LONGEST_BASELINE, window.end)
        )
        signals = chosen(found)
        read = await read_at(metrics, signals, window, products, step_of(signals))
        requests = found.requests + read.requests
        if read.is_young and fine_step_of(signals) < read.step_s:
            read = await read_at(metrics, signals, window, products, fine_step_of(signals))
            requests += read.requests
        by_name, series, judged = read.signals, read.series, read.judged
        start, step_s = read.start, read.step_s
        counters = counted_by_shape(signals, by_name)
        past = await read_history(
            metrics, by_name, window, products, step_s, judged.shifts, series, counters
        )
        recent = {(one.signal, one.product): one.points for one in series}
        look = DayLook(past, recent, window, units_of(by_name, series))
        judged.growing = list(past.trends(by_name, window.end))
        grows = {(one.signal, one.product) for one in judged.growing}
        judged.shifts, past = look.compared(judged.shifts, grows)
        past = await with_week_ago(past, metrics, by_name, window, products, judged.shifts)
        judged.shifts, at_this_time = past.without_time_of_day(judged.shifts, window)
        judged.standing += _lasting(judged.shifts)
        requests += past.requests
        output = _output(found, judged, window, start, step_s, requests, call.now)
        notes = [*(output.notes or ()), *past.notes] or None
        begin = past.begin(window.end)
        output = output.model_copy(
            update={
                "time_of_day": at_this_time,
                "notes": notes,
                "day_from": None if begin is None else instant_text(begin),
                "day_unread": clean_text(past.unread) or None,
            }
        )
        output = with_gaps(output, series, by_name, window, call.now, past)
        output = with_coverage(output, found, judged.shifts, by_name, window.start)
        output = with_courses(output, series, window, arguments.product)
        whole = Interval(start, window.end + timedelta(seconds=1))
        labels = LabelLook(metrics, by_name, whole, window, step_s)
        explained = await labels.explained(output)
        left = MOST_READ - (explained.requests - output.requests)
        replicas = ReplicaLook(metrics, by_name, window.end, past.step_s, left)
        return await replicas.quiet(explained, arguments.product)

    def summarise(self, output: MetricSweep, arguments: SweepInput) -> str:
        """`3 products changed, 44 normal`; the product asked about by name; missing samples."""
        lack = len({gap.product for gap in output.gaps})
        lacking = f"; samples of {lack} missing" if lack else ""
        moved = {one.product for one in output.shifts if one.score >= 3}
        quiet = output.within.keys() - moved
        asked = clean_text(arguments.product)
        if not asked:
            return f"{_number(moved)} changed, {len(quiet)} normal{lacking}"
        own = "changed" if asked in moved else "normal" if asked in quiet else "not compared"
        others = f"{len(moved - {asked})} other products changed, {len(quiet - {asked})} are normal"
        return f"{asked} {own}; {others}{lacking}"


def _number(products: Collection[str]) -> str:
    return f"{len(products)} product{'' if len(products) == 1 else 's'}"


def _lasting(
    shifted: Sequence[tuple[str, Signal, Shift]],
) -> Iterator[tuple[str, Signal, Trajectory]]:
    for product, signal, moved in shifted:
        if (stands := at_limit(moved, signal)) is not None:
            yield product, signal, stands


def _output(
    found: Discovered,
    judged: Judged,
    window: Interval,
    start: datetime,
    step_s: float,
    requests: int,
    now: datetime,
) -> MetricSweep:
    told = _shifts(judged, window, step_s)
    looked: dict[str, set[Role]] = {}
    for product, signal, _ in judged.shifts:
        looked.setdefault(product, set()).add(signal.role)
    moved_roles = {(one.product, one.role) for one in told if one.score >= 3}
    within = {
        product: " ".join(sorted(role for role in roles if (product, role) not in moved_roles))
        for product, roles in sorted(looked.items())
    }
    short = {
        product: " ".join(sorted(roles - looked.get(product, set())))
        for product, roles in sorted(judged.short.items())
        if roles - looked.get(product, set())
    }
    seen = looked.keys() | judged.short.keys()
    return MetricSweep(
        range=range_text(window),
        baseline_from=instant_text(start),
        step_s=step_s,
        shifts=told[:MOST_SHIFTS],
        within=within,
        too_short=short,
        least_before_s=least_before_s(step_s),
        comparable=_comparable(judged, short, window, now),
        gaps=[],
        standing=[
            _standing_row(*one, start, step_s) for one in sorted(judged.standing, key=_worst_first)
        ][:MOST_STANDING],
        traffic={} if judged.infers_requests else _busiest(judged.requests, found.products),
        without=[product for product in found.products if product not in seen],
        requests=requests,
        truncated=len(told) > MOST_SHIFTS,
        notes=[clean_text(note) for note in found.notes][:10] or None,
    )


def _shifts(judged: Judged, window: Interval, step_s: float) -> list[MetricShift]:
    grows = {(one.product, one.signal): one for one in judged.growing}
    told = [
        _with_trend(
            _shift_row(product, signal, moved, judged.requests.get(product), window, step_s), grows
        )
        for product, signal, moved in judged.shifts
        if _score(signal, moved) >= WORTH_TELLING
    ]
    told += grows.values()
    return sorted(told, key=lambda one: (-one.score, one.product, one.signal))


def _with_trend(row: MetricShift, grows: dict[tuple[str, str], MetricShift]) -> MetricShift:
    grown = grows.pop((row.product, row.signal), None)
    if grown is None or grown.direction != row.direction:
        return row
    if grown.score > row.score:
        return grown
    return row.model_copy(update={"full_in_s": grown.full_in_s})


def _comparable(
    judged: Judged, short: Mapping[str, str], window: Interval, now: datetime
) -> dict[str, Comparable]:
    """A range up to now begins later with every minute; one that ended stays where it is."""
    goes_on = now - window.end < timedelta(minutes=1)
    found: dict[str, Comparable] = {}
    for product in short.keys() & judged.range_from.keys():
        begin = datetime.fromtimestamp(judged.range_from[product], window.start.tzinfo)
        again = window.end + (begin - window.start)
        found[clean_text(product)] = Comparable(
            range_from=instant_text(begin), asked_at=instant_text(again) if goes_on else None
        )
    return dict(sorted(found.items()))


def _busiest(traffic: Mapping[str, float], products: Sequence[str]) -> dict[str, float]:
    asked = products[:1]
    first = sorted(traffic, key=lambda one: (one not in asked, -traffic[one], one))[:MOST_BUSY]
    return {clean_text(product): rounded(traffic[product], 3) for product in first}


def _worst_first(one: tuple[str, Signal, Trajectory]) -> tuple[bool, float, str, str]:
    product, signal, stands = one
    return stands.limit is None, -stands.size, product, signal.name


def _standing_row(
    product: str, signal: Signal, stands: Trajectory, start: datetime, step_s: float
) -> MetricStanding:
    began = stands.first_at > start.timestamp() + step_s
    return MetricStanding(
        product=clean_text(product),
        role=signal.role,
        signal=clean_text(signal.name),
        unit=signal.unit,
        first=rounded(stands.first),
        first_at=at_text(stands.first_at, start) if began else None,
        now=rounded(stands.now),
        direction="down" if stands.falls else "up",
        size=rounded(stands.size, 3),
        limit=stands.limit,
        runs_out_s=None if stands.runs_out_s is None else round(stands.runs_out_s),
    )


def _score(signal: Signal, moved: Shift) -> float:
    if signal.worse == "up":
        return moved.up
    return moved.down if signal.worse == "down" else moved.size


def _shift_row(
    product: str,
    signal: Signal,
    moved: Shift,
    requests: float | None,
    window: Interval,
    step_s: float,
) -> MetricShift:
    score = _score(signal, moved)
    falls = signal.worse == "down" or (signal.worse == "either" and moved.down > moved.up)
    worst = moved.low if falls else moved.high
    ended = window.end.timestamp() - moved.last_at > STALE_STEPS * step_s
    return MetricShift(
        product=clean_text(product),
        role=signal.role,
        signal=clean_text(signal.name),
        unit=signal.unit,
        usual=rounded(moved.usual),
        worst=rounded(worst),
        last=rounded(moved.last),
        last_at=at_text(moved.last_at, window.start) if ended else None,
        direction="down" if falls else "up",
        score=rounded(score, 3),
        beyond_all_before=worst < moved.least if falls else worst > moved.most,
        since=at_text(moved.since, window.start) if moved.since is not None else None,
        since_before=moved.began_before,
        under_way=moved.from_start,
        until=at_text(moved.until, window.start) if moved.until is not None else None,
        requests=rounded(requests) if requests is not None else None,
        inferred=signal.is_inferred or None,
    )
