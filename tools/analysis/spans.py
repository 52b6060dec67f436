"""Compare the spans of a window with earlier ones: the calls between products, and growth of their
own times and ways.

Own time is a span without the union of its children. The way is the caller's wait beyond the called
span: network, queue, a busy host. Both are compared by operation and by medians, so that another
mix of requests is not a change. Without earlier spans, a way is compared with the other ways of the
same time.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final, Literal

from tools.analysis.cut_requests import CutRequests, cut_requests
from tools.analysis.usual import quantile
from tools.capabilities import Span, Trace

LEAST_SPANS: Final = 3  # of an operation on either side
_LEAST_GROWTH_MS: Final = 5.0
_LEAST_FACTOR: Final = 1.8
_FLOOR_MS: Final = 1.0
_FEWEST_WAYS: Final = 5  # to know the baseline of a way
_FAR_FACTOR: Final = 8.0  # of the other ways' baseline
_FAR_MS: Final = 50.0

What = Literal["own", "way", "failing"]


@dataclass(frozen=True, slots=True)
class SpanShift:
    """One operation that changed. Milliseconds, or for `failing` the share of spans with an error.

    `callee` is the called product of a way, else empty; `n` spans in the window. `is_outlier`: `before`
    is the median of the other ways of the same time.
    """

    product: str
    what: What
    operation: str
    before: float
    after: float
    n: int
    callee: str = ""
    is_outlier: bool = False


@dataclass(frozen=True, slots=True)
class CallNeighbours:
    """A product's neighbours: its callers and callees, and the number of slower ways."""

    into: int = 0
    slow_into: int = 0
    out: int = 0
    slow_out: int = 0

    @property
    def share(self) -> float:
        """Of the side that is worse, from 0 to 1. Slow both ways is the product's own; one side may
        be the other end's.
        """
        sides = ((self.slow_into, self.into), (self.slow_out, self.out))
        worst = max((slow / of for slow, of in sides if of), default=0.0)
        both = self.slow_into and (self.slow_out or not self.out)
        return worst * (1.0 if both else 0.8)


@dataclass(frozen=True, slots=True)
class TraceReading:
    """`calls` with how often. `products` with how many spans.

    `usual_ms` is how long a trace took before, by the median. `cuts` are requests that end early.
    """

    calls: Mapping[tuple[str, str], int]
    products: Mapping[str, int]
    shifts: Sequence[SpanShift]
    ways: Mapping[str, CallNeighbours]
    usual_ms: float
    traces_before: int
    traces_after: int
    cuts: Sequence[CutRequests] = ()


@dataclass(slots=True)
class _Samples:
    own: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    way: dict[tuple[str, str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    failed: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))


def read_traces(before: Sequence[Trace], after: Sequence[Trace]) -> TraceReading:
    """Compare two samples of traces."""
    calls: Counter[tuple[str, str]] = Counter()
    products: Counter[str] = Counter()
    sides = (_Samples(), _Samples())
    numbers = []
    lasted: list[float] = []
    for traces, samples in zip((before, after), sides, strict=True):
        number = 0
        for trace in traces:
            number += 1
            if samples is sides[0]:
                lasted.append(_length_ms(trace.spans))
            _read(trace.spans, samples, calls, products)
        numbers.append(number)
    usual_ms = median(lasted) if lasted else 0.0
    outliers = _outliers(*sides)
    shifts = [*_shifts(*sides), *outliers]
    ways = _ways(*sides, {(one.product, one.callee) for one in outliers})
    cuts = cut_requests(before, after)
    return TraceReading(calls, products, shifts, ways, usual_ms, numbers[0], numbers[1], cuts)


def _length_ms(spans: Sequence[Span]) -> float:
    begun = min((span.start_us for span in spans), default=0)
    return (max((span.start_us + span.duration_us for span in spans), default=0) - begun) / 1000


def _outliers(before: _Samples, after: _Samples) -> Sequence[SpanShift]:
    if before.way:
        return []
    found = {key: median(late) for key, late in after.way.items() if len(late) >= LEAST_SPANS}
    pairs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (caller, callee, _), way_ms in found.items():
        pairs[caller, callee].append(way_ms)
    if len(pairs) < _FEWEST_WAYS:
        return []
    usual = max(median(median(one) for one in pairs.values()), _FLOOR_MS)
    return [
        SpanShift(caller, "way", operation, usual, way_ms, len(after.way[key]), callee, True)
        for key, way_ms in found.items()
        for caller, callee, operation in (key,)
        if way_ms >= _FAR_FACTOR * usual and way_ms - usual >= _FAR_MS
    ]


def _ways(
    before: _Samples, after: _Samples, outliers: Collection[tuple[str, str]]
) -> Mapping[str, CallNeighbours]:
    pairs: dict[tuple[str, str], bool] = {}
    for key, late in after.way.items():
        early = before.way.get(key, ())
        caller, callee, _ = key
        if before.way and min(len(early), len(late)) < LEAST_SPANS:
            continue
        slower = (caller, callee) in outliers or _grown(early, late) is not None
        pairs[caller, callee] = pairs.get((caller, callee), False) or slower
    ways: dict[str, CallNeighbours] = {}
    for (caller, callee), slower in pairs.items():
        sent, come = ways.get(caller, CallNeighbours()), ways.get(callee, CallNeighbours())
        ways[caller] = replace(sent, out=sent.out + 1, slow_out=sent.slow_out + slower)
        ways[callee] = replace(come, into=come.into + 1, slow_into=come.slow_into + slower)
    return ways


def _read(
    spans: Sequence[Span],
    samples: _Samples,
    calls: Counter[tuple[str, str]],
    products: Counter[str],
) -> None:
    by_id = {span.span_id: span for span in spans}
    inside: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        if span.parent_id != span.span_id:
            inside[span.parent_id].append(span)
    for span in spans:
        products[span.service] += 1
        children = inside.get(span.span_id, [])
        key = span.service, span.operation
        if not _is_around_a_call(span, children):
            samples.own[key].append((span.duration_us - _covered(span, children)) / 1000)
        samples.failed[key].append(1.0 if span.status == "error" else 0.0)
        parent = by_id.get(span.parent_id)
        if parent is not None and parent.service != span.service:
            calls[parent.service, span.service] += 1
            if not _is_around_a_call(parent, inside[parent.span_id]):
                continue
            waited = (parent.duration_us - span.duration_us) / 1000
            samples.way[parent.service, span.service, parent.operation].append(max(0.0, waited))


def _is_around_a_call(span: Span, children: Sequence[Span]) -> bool:
    """Whether it is a client's span of one call: the rest of its time is then the way."""
    return len(children) == 1 and children[0].service != span.service


def _covered(span: Span, children: Iterable[Span]) -> int:
    total, until, end = 0, span.start_us, span.start_us + span.duration_us
    for child in sorted(children, key=lambda one: one.start_us):
        begin = max(child.start_us, until)
        finish = min(child.start_us + child.duration_us, end)
        if finish > begin:
            total, until = total + finish - begin, finish
    return total


def _shifts(before: _Samples, after: _Samples) -> Sequence[SpanShift]:
    found: list[SpanShift] = []
    for own_key, late in after.own.items():
        grown = _grown(before.own.get(own_key, ()), late)
        if grown is not None:
            found.append(SpanShift(own_key[0], "own", own_key[1], *grown, len(late)))
    for (caller, callee, operation), late in after.way.items():
        grown = _grown(before.way.get((caller, callee, operation), ()), late)
        if grown is not None:
            found.append(SpanShift(caller, "way", operation, *grown, len(late), callee))
    for key, late in after.failed.items():
        early = before.failed.get(key, ())
        share, usual = sum(late) / len(late), sum(early) / len(early) if early else 0.0
        if sum(late) >= LEAST_SPANS and share - usual >= 0.05:
            found.append(SpanShift(key[0], "failing", key[1], usual, share, len(late)))
    return sorted(found, key=lambda s: (s.what, -s.after / max(s.before, _FLOOR_MS), s.product))


def _grown(early: Sequence[float], late: Sequence[float]) -> tuple[float, float] | None:
    if len(early) < LEAST_SPANS or len(late) < LEAST_SPANS:
        return None
    was, now = max(median(early), _FLOOR_MS), median(late)
    usual_most = quantile(sorted(early), 0.9)
    if now - was < _LEAST_GROWTH_MS or now < _LEAST_FACTOR * was or now <= usual_most:
        return None
    return was, now
