"""Sweeps of log lines and searches of traces over a simulated incident."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from adapters.observe.instants import check_order, to_ns
from adapters.observe.levels import at_least, normalized
from adapters.observe.line_filter import line_test
from adapters.observe.trace_search import checked, fits, slowest, summary_of
from adapters.recorded.simulator.dataset import Dataset
from tools.capabilities import (
    Clock,
    Interval,
    LogLine,
    LogsFound,
    LogSweepQuery,
    SweptLogs,
    Trace,
    TraceQuery,
    TraceSample,
    TracesFound,
)

_BAD_LEVELS: Final = frozenset({"error", "fatal"})
_LABEL: Final = "service_name"
_MOST_TRACES_READ: Final = 2000
_MOST_MINUTES_SAMPLED: Final = 30


def products_with_lines(dataset: Dataset, products: Sequence[str], interval: Interval) -> LogsFound:
    """As the Logs port says: every product of a dataset has lines."""
    check_order(interval)
    wanted = tuple(dict.fromkeys(products)) or tuple(dataset.products)
    without = tuple(product for product in wanted if product not in dataset.products)
    count = len(wanted) - len(without)
    return LogsFound(wanted, without, {_LABEL: count} if count else {})


async def swept_logs(dataset: Dataset, clock: Clock, query: LogSweepQuery) -> SweptLogs:
    """As the Logs port says."""
    check_order(query.interval)
    products = [one for one in dict.fromkeys(query.products) if one in dataset.products]
    each = max(1, query.limit // max(1, len(products)))
    levels = at_least(query.min_level) if query.min_level else None
    lines_of = dataset.errors if query.min_level in _BAD_LEVELS else dataset.lines
    test = line_test(query.filter)
    start_ns, end_ns = to_ns(query.interval.start), _end_ns(query.interval, clock.now())
    found: dict[str, list[LogLine]] = {}
    # Minute by minute: the requests of one are computed once for all products.
    for minute in reversed(dataset.minutes(query.interval.start, query.interval.end)):
        for product in products:
            kept = [
                line
                for line in lines_of(product, minute)
                if start_ns <= line.ts_ns < end_ns
                and (levels is None or normalized(line.level) in levels)
                and test(line.message)
            ]
            if kept:
                found.setdefault(product, []).extend(kept)
        await asyncio.sleep(0)
    lines = {product: found[product][:each] for product in products if product in found}
    counts = {product: len(found[product]) for product in lines}
    cut = [product for product in lines if counts[product] > each]
    notes = [f"only the newest lines were read of: {', '.join(cut)}"] if cut else []
    return SweptLogs(lines, counts, notes)


async def found_traces(dataset: Dataset, clock: Clock, query: TraceQuery) -> TracesFound:
    """As the Traces port says. A trace that has not ended yet is not there."""
    checked(query)
    if query.product not in dataset.products:
        known = ", ".join(dataset.products)
        return TracesFound((), [f"no service {query.product!r}; there are: {known}"])
    now_us = to_ns(clock.now()) // 1000
    found, read = [], 0
    begin = query.interval.start - timedelta(minutes=1)  # a trace may begin before its span does
    for minute in reversed(dataset.minutes(begin, query.interval.end)):
        for trace in dataset.traces(minute):
            read += 1
            if not fits(trace, query):
                continue
            summary = summary_of(trace)
            if summary.start_us + summary.duration_us <= now_us:
                found.append(summary)
        await asyncio.sleep(0)
        if read >= _MOST_TRACES_READ:
            break
    notes = ["only the newest traces were searched"] if read >= _MOST_TRACES_READ else []
    return TracesFound(slowest(found, query.limit), notes)


async def sampled_traces(
    dataset: Dataset, clock: Clock, products: Sequence[str], interval: Interval, limit: int
) -> TraceSample:
    """As the Traces port says; of a long range its last minutes."""
    check_order(interval)
    wanted, now_us = set(products), to_ns(clock.now()) // 1000
    start_us, end_us = to_ns(interval.start) // 1000, to_ns(interval.end) // 1000
    found: list[Trace] = []
    for read, minute in enumerate(reversed(dataset.minutes(interval.start, interval.end))):
        for trace in dataset.traces(minute):
            if not any(span.service in wanted for span in trace.spans):
                continue
            root = trace.spans[0]
            ended_us = root.start_us + root.duration_us
            if start_us <= root.start_us < end_us and ended_us <= now_us:
                found.append(trace)
        await asyncio.sleep(0)
        if len(found) >= limit or read >= _MOST_MINUTES_SAMPLED:
            break
    found.sort(key=lambda one: -one.spans[0].start_us)
    return TraceSample(found[:limit])


def _end_ns(interval: Interval, now: datetime) -> int:
    return min(to_ns(interval.end), to_ns(now) + 1)
