"""core__sweep_traces: calls between products, and their own times or ways that grew."""

from datetime import timedelta
from typing import Final

from tools.analysis.cut_requests import CutRequests
from tools.analysis.spans import SpanShift, TraceReading, read_traces
from tools.capabilities import CallContext, Capabilities, Interval
from tools.contract import ToolOutput
from tools.core.built_in import bound, read_only
from tools.core.sweep_arguments import SWEEP_SCOPE, SweepInput, products_of, window_of
from tools.output import clean_text
from tools.timerange import range_text

BASELINE: Final = timedelta(hours=1)
LONG_BASELINE: Final = timedelta(hours=24)  # where the hour holds few traces
FEW_TRACES: Final = 150
MOST_TRACES: Final = 200  # of the window, and again of the time before
MOST_CALLS: Final = 300
MOST_SHIFTS: Final = 40
MOST_CUTS: Final = 5


class TraceShift(ToolOutput):
    """`own`: time outside calls; `way`: what `product` waits beyond the called product's own time.

    Milliseconds by the median; `failing`: the share of spans with an error. `weight` is how much of
    a usual trace the growth is, at most 1. `cut`: the share of the requests of `caller` that end
    after the call to `callee`, or before any; `product` ends them, as far as traces show; a
    `weight` below 1 means that they are too few to exclude chance. `versus` is `others` without
    earlier spans: `before` is then the median of the other ways.
    """

    product: str
    what: str
    operation: str
    callee: str = ""
    caller: str | None = None
    versus: str | None = None
    before: float
    after: float
    n: int
    weight: float


class TraceSweep(ToolOutput):
    """`calls` are caller > called. `ways_slow`: of a product, the share of its ways that got slower."""

    range: str
    traces_before: int
    traces_after: int
    usual_ms: float
    shifts: list[TraceShift]
    ways_slow: dict[str, float]
    calls: list[str]
    requests: int
    truncated: bool
    notes: list[str] | None = None


class SweepTraces:
    contract = read_only(
        "sweep_traces",
        "Calls between services, and services with a growing own time, network time or share "
        "of failures, or with requests that end early.",
        (SweepInput, TraceSweep),
        "traces",
        SWEEP_SCOPE,
        "investigate",
    )

    async def execute(
        self, arguments: SweepInput, call: CallContext, caps: Capabilities
    ) -> TraceSweep:
        traces = bound(caps.traces, "traces")
        window, products = window_of(arguments, call), products_of(arguments, call)
        before = Interval(window.start - BASELINE, window.start)
        early = await traces.sample(products, before, MOST_TRACES)
        requests = early.requests
        if len(early.traces) < FEW_TRACES and not early.more:
            before = Interval(window.start - LONG_BASELINE, window.start)
            early = await traces.sample(products, before, MOST_TRACES)
            requests += early.requests
        late = await traces.sample(products, window, MOST_TRACES)
        reading = read_traces(early.traces, late.traces)
        calls = sorted({*reading.calls, *early.calls, *late.calls})
        notes = dict.fromkeys((*early.notes, *late.notes))
        return TraceSweep(
            range=range_text(window),
            traces_before=reading.traces_before,
            traces_after=reading.traces_after,
            usual_ms=round(reading.usual_ms, 1),
            shifts=[
                *(_cut(one) for one in reading.cuts[:MOST_CUTS]),
                *(_trace_row(one, reading) for one in reading.shifts[:MOST_SHIFTS]),
            ],
            ways_slow={
                clean_text(product): round(way.share, 2)
                for product, way in sorted(reading.ways.items())
                if way.share
            },
            calls=[clean_text(f"{caller} > {callee}") for caller, callee in calls[:MOST_CALLS]],
            requests=requests + late.requests,
            truncated=len(reading.shifts) > MOST_SHIFTS or len(calls) > MOST_CALLS,
            notes=[clean_text(note) for note in notes][:10] or None,
        )

    def summarise(self, output: TraceSweep, arguments: SweepInput) -> str:
        del arguments
        number = output.traces_before + output.traces_after
        return f"{number} traces, {len(output.shifts)} operations changed"


def _cut(one: CutRequests) -> TraceShift:
    return TraceShift(
        product=clean_text(one.product),
        what="cut",
        operation=clean_text(one.operation)[:120],
        callee=clean_text(one.last),
        caller=clean_text(one.caller),
        before=round(one.before, 3),
        after=round(one.after, 3),
        n=one.n,
        weight=1.0 if one.is_sure else 0.5,
    )


def _trace_row(one: SpanShift, reading: TraceReading) -> TraceShift:
    growth = one.after - one.before
    weight = 1.0 if one.what == "failing" else growth / max(1.0, 0.3 * reading.usual_ms)
    return TraceShift(
        product=clean_text(one.product),
        what=one.what,
        operation=clean_text(one.operation)[:120],
        callee=clean_text(one.callee),
        versus="others" if one.is_outlier else None,
        before=round(one.before, 3),
        after=round(one.after, 3),
        n=one.n,
        weight=round(min(1.0, weight), 3),
    )
