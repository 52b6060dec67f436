"""What core__sweep_metrics says of samples that are missing, and of targets that are not reached."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from tools.analysis.gaps import Gap, gap_in
from tools.capabilities import Interval, SweptSeries
from tools.core.metric_history import History
from tools.core.metric_sweep import MetricGap, MetricSweep
from tools.core.sweep_arguments import at_text
from tools.output import clean_text
from tools.signals import Role, Signal

MOST_GAPS: Final = 20
_MOST_UNNAMED: Final = 2  # of a product
# Roles that a running product always has; series of the others come and go.
_STEADY: Final = frozenset[Role](
    {"traffic", "errors", "latency", "cpu", "memory", "disk", "pool", "queue"}
)
# Where all samples are late it is how their store works: CloudWatch gives those of a new metric within two minutes.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/publishingMetrics.html
_LATE_STEPS: Final = 2
_OF_REQUESTS: Final = frozenset[Role]({"errors", "latency"})  # no request, no sample


def with_gaps(
    output: MetricSweep,
    series: Sequence[SweptSeries],
    signals: Mapping[str, Signal],
    window: Interval,
    now: datetime,
    past: History,
) -> MetricSweep:
    """The same with its gaps; what ended before the window is no longer too short to compare.

    `past` shows what ended, or went down, before all of `series`.
    """
    by_product: dict[str, list[SweptSeries]] = defaultdict(list)
    for one in series:
        by_product[one.product].append(one)
    end = _measured_until(series, min(window.end, now), output.step_s)
    found: list[MetricGap] = []
    short = dict(output.too_short)
    for product, own in sorted(by_product.items()):
        gaps = dict(_gaps(own, signals, Interval(window.start, end), output.step_s))
        gaps |= _ended_before(product, own, signals, past, Interval(window.start, end))
        found.extend(_gap_rows(product, gaps, window.start))
        found.extend(_down(product, own, signals, end, past))
        unnamed = _unnamed_ended(
            product, own, signals, past, Interval(window.start, end), output.step_s
        )
        found.extend(islice(unnamed, _MOST_UNNAMED))
        ended = {
            role
            for role, gap in gaps.items()
            if gap.until is None and gap.since < window.start.timestamp()
        }
        if left := [role for role in short.pop(product, "").split() if role not in ended]:
            short[product] = " ".join(left)
    found.sort(key=lambda gap: (not gap.is_down, gap.until is not None, gap.product))
    return output.model_copy(update={"gaps": found[:MOST_GAPS], "too_short": short})


def _measured_until(series: Sequence[SweptSeries], end: datetime, step_s: float) -> datetime:
    last_s = end.timestamp()
    newest_s = max((at for one in series for at, _ in one.points if at <= last_s), default=last_s)
    return max(
        end - timedelta(seconds=_LATE_STEPS * step_s), datetime.fromtimestamp(newest_s, end.tzinfo)
    )


def tells_absence(signal: Signal) -> bool:
    """Whether a low value of it, such as 0 of Prometheus' `up`, says that there is nothing to measure."""
    return signal.worse == "down" and signal.limit is not None


def _gaps(
    own: Sequence[SweptSeries], signals: Mapping[str, Signal], window: Interval, step_s: float
) -> Iterator[tuple[Role, Gap]]:
    start, end = window.start.timestamp(), window.end.timestamp()
    by_role: dict[Role, list[Gap | None]] = defaultdict(list)
    for one in own:
        role = signals[one.signal].role
        gap = gap_in(one.points, start, end, step_s) if role in _STEADY else None
        is_idle = gap is not None and role in _OF_REQUESTS and _is_idle(own, signals, gap, end)
        by_role[role].append(None if is_idle else gap)
    for role, gaps in by_role.items():
        known = [gap for gap in gaps if gap is not None]
        if len(known) == len(gaps) and (gap := _common(known)) is not None:
            yield role, gap


def _unnamed_ended(
    product: str,
    own: Sequence[SweptSeries],
    signals: Mapping[str, Signal],
    past: History,
    window: Interval,
    step_s: float,
) -> Iterator[MetricGap]:
    start, end = window.start.timestamp(), window.end.timestamp()
    read = {one.signal: one.points for one in own}
    day = {name: points for (name, of), points in past.points.items() if of == product}
    for name in (*read, *(one for one in day if one not in read)):
        if signals[name].role != "other":
            continue
        if name in read:
            gap, late_s = gap_in(read[name], start, end, step_s), 0.0
        else:
            gap, late_s = gap_in(day[name], start, end, past.step_s), past.step_s
        if gap is not None and gap.until is None:
            yield MetricGap(
                product=clean_text(product),
                roles="other",
                signal=clean_text(name),
                since=at_text(min(gap.since + late_s, end), window.start),
            )


def _ended_before(
    product: str,
    own: Sequence[SweptSeries],
    signals: Mapping[str, Signal],
    past: History,
    window: Interval,
) -> dict[Role, Gap]:
    there = {signals[one.signal].role for one in own if one.points}
    found: dict[Role, Gap] = {}
    for (name, of), points in past.points.items():
        role = signals[name].role
        if of != product or role in there or role not in _STEADY:
            continue
        end = window.end.timestamp()
        gap = gap_in(points, window.start.timestamp(), end, past.step_s)
        if gap is not None and gap.until is None:
            # The last sample came within the step that follows the last one read.
            since = min(gap.since + past.step_s, end)
            found[role] = Gap(max(since, found[role].since if role in found else since), None)
    return found


def _is_idle(
    own: Sequence[SweptSeries], signals: Mapping[str, Signal], gap: Gap, end: float
) -> bool:
    until = end if gap.until is None else gap.until
    counted = [
        value
        for one in own
        if signals[one.signal].role == "traffic"
        for at, value in one.points
        if gap.since < at < until
    ]
    return bool(counted) and not any(counted)


def _common(gaps: Sequence[Gap]) -> Gap | None:
    since = max(gap.since for gap in gaps)
    ends = [gap.until for gap in gaps if gap.until is not None]
    if not ends:
        return Gap(since, None)
    return Gap(since, min(ends)) if since < min(ends) else None


def _gap_rows(product: str, gaps: Mapping[Role, Gap], start: datetime) -> Iterator[MetricGap]:
    for is_open in (True, False):
        roles = sorted(role for role, gap in gaps.items() if (gap.until is None) is is_open)
        shared = _common([gaps[role] for role in roles]) if roles else None
        if shared is not None:
            yield MetricGap(
                product=clean_text(product),
                roles=" ".join(roles),
                since=at_text(shared.since, start),
                until=None if shared.until is None else at_text(shared.until, start),
            )


def _down(
    product: str,
    own: Sequence[SweptSeries],
    signals: Mapping[str, Signal],
    end: datetime,
    past: History,
) -> Iterator[MetricGap]:
    for one in own:
        signal = signals[one.signal]
        recent = [point for point in one.points if point[0] <= end.timestamp()]
        if not tells_absence(signal) or signal.limit is None or not recent:
            continue
        day = past.day_of(signal, product)
        points = [*(point for point in day if point[0] < recent[0][0]), *recent]
        well = [number for number, (_, value) in enumerate(points) if value > signal.limit]
        if not well or well[-1] < len(points) - 1:
            yield MetricGap(
                product=clean_text(product),
                roles="",
                signal=clean_text(signal.name),
                since=at_text(points[well[-1] + 1 if well else 0][0], end),
                since_before=not well,
                is_down=True,
            )
            return
