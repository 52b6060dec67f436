"""Requests that end earlier than before: after which call, and which product ends them.

A product that throws or returns nonsense often leaves no error line and no slow span. The trace is
a caller that makes no further calls. A request is a product's work for one incoming call.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from tools.capabilities import Span, Trace

_LEAST_BEFORE: Final = 5  # requests that show how such requests used to end
_LEAST_CUT: Final = 3
_LEAST_GROWTH: Final = 0.1  # of the share that is cut
_CHANCE: Final = 0.05  # that any of all compared endings grew so by chance
_MAY_BE: Final = 0.02  # that this one did; enough to mention what never happened before
_SHORT: Final = 0.5  # of the time that used to follow the call
_MOSTLY: Final = 0.5
_RARELY: Final = 0.1
_DEEPEST: Final = 20

_Operation = tuple[str, str]  # product and what it was asked to do
_Ending = tuple[_Operation, _Operation | None]  # a request, and the last call that it made


@dataclass(frozen=True, slots=True)
class CutRequests:
    """`operation` of `caller` ends after its call to `last`, or before any call where that is empty.

    `product` ends it, as far as traces show. `before` and `after` are shares of the requests that got as
    far as that call; `n` of them came after. Not `is_sure`: too few to exclude chance.
    """

    product: str
    caller: str
    operation: str
    last: str
    before: float
    after: float
    n: int
    is_sure: bool = True


@dataclass(slots=True)
class _Request:
    key: _Operation
    start_us: int
    end_us: int
    calls: list["_Call"] = field(default_factory=list)
    steps: set[_Operation] = field(default_factory=set)

    @property
    def last(self) -> tuple[_Operation | None, "_Request | None"]:
        return (self.calls[-1].key, self.calls[-1].request) if self.calls else (None, None)

    def rest_us(self, key: _Operation | None) -> int:
        ends = [call.end_us for call in self.calls if call.key == key]
        return self.end_us - (ends[-1] if ends else self.start_us)


@dataclass(frozen=True, slots=True)
class _Call:
    start_us: int
    key: _Operation
    end_us: int
    request: _Request | None  # of the called product; None where none arrived


def cut_requests(before: Iterable[Trace], after: Iterable[Trace]) -> Sequence[CutRequests]:
    """Operations whose share clearly grew, the largest growth first, one per product."""
    early_traces, late_traces = list(before), list(after)
    around = _wrappers(early_traces)
    early = [one for trace in early_traces for one in _requests(trace.spans, around)]
    late = [one for trace in late_traces for one in _requests(trace.spans, around)]
    history, now = _Endings(early), _Endings(late)
    found: dict[str, CutRequests] = {}
    compared = _compared(history, now)
    for ending in compared:
        was, share = history.share(ending), now.share(ending)
        counts = now.ends[ending], now.reached[ending], history.ends[ending]
        chance = _chance(*counts, history.reached[ending])
        is_sure = chance * len(compared) <= _CHANCE
        if share - was < _LEAST_GROWTH or not (is_sure or (not was and chance <= _MAY_BE)):
            continue
        ended = [one for one in late if (one.key, one.last[0]) == ending]
        if not _is_short(ended, early, ending):
            continue
        product = _ended_by(ended, history)
        (caller, operation), last = ending
        called = last[0] if last else ""
        one = CutRequests(product, caller, operation, called, was, share, counts[1], is_sure)
        if product not in found or _rank(one) > _rank(found[product]):
            found[product] = one
    return sorted(found.values(), key=_rank, reverse=True)


def _is_short(ended: Sequence[_Request], early: Sequence[_Request], ending: _Ending) -> bool:
    """Whether little followed the call: where as much time did as before, spans were lost instead."""
    key, last = ending
    usual = [
        one.rest_us(last)
        for one in early
        if one.key == key and one.last[0] != last and (last is None or last in _keys(one))
    ]
    rest = median(one.rest_us(last) for one in ended)
    return not usual or rest <= _SHORT * median(usual)


def _keys(one: _Request) -> set[_Operation]:
    return {*one.steps, *(call.key for call in one.calls)}


def _rank(one: CutRequests) -> tuple[bool, float, str]:
    return one.is_sure, one.after - one.before, one.product


class _Endings:
    """How often requests made a call, and how often it was the last one."""

    def __init__(self, requests: Sequence[_Request]) -> None:
        self.reached: Counter[_Ending] = Counter()
        self.ends: Counter[_Ending] = Counter()
        self.calling: Counter[_Operation] = Counter()
        for one in requests:
            for call in {None, *_keys(one)}:
                self.reached[one.key, call] += 1
            self.ends[one.key, one.last[0]] += 1
            self.calling[one.key] += bool(one.calls)

    def share(self, ending: _Ending) -> float:
        return self.ends[ending] / self.reached[ending] if self.reached[ending] else 0.0

    def is_leaf(self, key: _Operation) -> bool:
        return self.calling[key] < _MOSTLY * self.reached[key, None]


def _compared(history: _Endings, now: _Endings) -> Sequence[_Ending]:
    return [
        ending
        for ending, cut in now.ends.items()
        if history.reached[ending] >= _LEAST_BEFORE and cut >= _LEAST_CUT
    ]


def _chance(hits: int, of: int, hits_before: int, of_before: int) -> float:
    """Fisher's exact test: the probability of so many hits or more after, if nothing changed."""
    total = hits + hits_before
    ways = math.comb(of + of_before, total)
    most = min(of, total)
    return sum(
        math.comb(of, number) * math.comb(of_before, total - number) / ways
        for number in range(hits, most + 1)
        if total - number <= of_before
    )


def _ended_by(cut: Sequence[_Request], history: _Endings) -> str:
    """Down the last calls to the request that itself ends early, or that calls nothing.

    Where the called product did all that it always does, its caller ended the request.
    """
    product = cut[0].key[0]
    for _ in range(_DEEPEST):
        called = [one for request in cut if (one := request.last[1]) is not None]
        if not called:
            return product
        key, number = Counter(one.key for one in called).most_common(1)[0]
        if number < _MOSTLY * len(cut):
            return product
        alike = [one for one in called if one.key == key]
        last, ends = Counter(one.last[0] for one in alike).most_common(1)[0]
        if history.is_leaf(key):
            return key[0]
        if last is not None and last[0] == key[0] and ends >= _MOSTLY * len(alike):
            return key[0] if history.share((key, last)) <= _RARELY else product
        if ends < _MOSTLY * len(alike) or history.share((key, last)) > _RARELY:
            return product
        product, cut = key[0], [one for one in alike if one.last[0] == last]
    return product


def _wrappers(traces: Iterable[Trace]) -> frozenset[_Operation]:
    """Spans within a request that hold a call: one without any shows a call that was not made."""
    return frozenset(
        (span.service, span.operation)
        for trace in traces
        for span in _holding(trace.spans, {one.span_id: one for one in trace.spans})
    )


def _holding(spans: Sequence[Span], by_id: Mapping[str, Span]) -> Sequence[Span]:
    """Of each call the spans of its caller around it."""
    found: dict[str, Span] = {}
    for parent, _ in _crossings(spans, by_id):
        at: Span | None = parent
        while at is not None and at.service == parent.service and at.span_id not in found:
            found[at.span_id] = at
            at = by_id.get(at.parent_id)
    return list(found.values())


def _crossings(spans: Sequence[Span], by_id: Mapping[str, Span]) -> Iterator[tuple[Span, Span]]:
    for span in spans:
        parent = by_id.get(span.parent_id)
        if parent is not None and parent.service != span.service:
            yield parent, span


def _requests(spans: Sequence[Span], around: frozenset[_Operation]) -> Sequence[_Request]:
    by_id = {span.span_id: span for span in spans}
    entry = _entries(spans, by_id)
    requests: dict[str, _Request] = {top: _request_of(by_id[top]) for top in entry.values()}
    crossings = list(_crossings(spans, by_id))
    calls = Counter(parent.span_id for parent, _ in crossings)
    for parent, child in crossings:
        # The caller's clock orders its calls: that of another host may be off.
        is_client = calls[parent.span_id] == 1 and entry[parent.span_id] != parent.span_id
        around_it = parent if is_client else child
        called = requests[entry[child.span_id]]
        requests[entry[parent.span_id]].calls.append(
            _Call(around_it.start_us, called.key, _end_us(around_it), called)
        )
    holding = {span.span_id for span in _holding(spans, by_id)}
    for span in spans:
        own = span.service, span.operation
        if own in around and entry[span.span_id] != span.span_id:
            requests[entry[span.span_id]].steps.add(own)
            if span.span_id not in holding:
                requests[entry[span.span_id]].calls.append(
                    _Call(span.start_us, own, _end_us(span), None)
                )
    for one in requests.values():
        one.calls.sort(key=lambda call: (call.start_us, call.key))
    return list(requests.values())


def _request_of(span: Span) -> _Request:
    return _Request((span.service, span.operation), span.start_us, _end_us(span))


def _end_us(span: Span) -> int:
    return span.start_us + span.duration_us


def _entries(spans: Sequence[Span], by_id: Mapping[str, Span]) -> Mapping[str, str]:
    """Each span with the one that entered its product. A loop of parents ends where it began."""
    entry: dict[str, str] = {}
    for span in spans:
        way: dict[str, None] = {}
        at = span
        while at.span_id not in entry and at.span_id not in way:
            way[at.span_id] = None
            parent = by_id.get(at.parent_id)
            if parent is None or parent.service != at.service:
                break
            at = parent
        top = entry.get(at.span_id, at.span_id)
        entry.update(dict.fromkeys(way, top))
    return entry
