"""Reads a case from live backends: rows in the format of a pack, and notes about missing data.

Everything is bounded. Data that was cut or could not be read becomes a note; the rest is kept. A
cluster has no history, so its objects are of the moment of the capture.
"""

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from pydantic import JsonValue

from adapters.observe.signal_promql import groups_of, quoted
from adapters.recorded.packs.schema import DeployRow
from tools.analysis.cluster.fields import labels_of, name_of, namespace_of
from tools.analysis.cluster.inventory import owner_of, workload_of_pod
from tools.capabilities import (
    Deploys,
    Interval,
    Logs,
    LogSweepQuery,
    Metrics,
    Series,
    Trace,
    Traces,
)
from tools.cluster_objects import (
    ClusterEvent,
    Kubernetes,
    KubernetesObject,
    ObjectList,
    ObjectQuery,
)
from tools.core.cluster_reading import ALWAYS, OF_THE_CLUSTER, PODS, STORAGE
from tools.errors import InvalidArguments, ToolError
from tools.output import json_number
from tools.product_names import product_in
from tools.signals import Discovered, Metric, Place

Row = dict[str, JsonValue]
T = TypeVar("T")

MOST_SERIES: Final = 4_000
MOST_SAMPLES: Final = 2_000_000  # some 40 MB of text
MOST_LINES: Final = 50_000
MOST_TRACES: Final = 200
_LINES_A_SLICE: Final = 10_000
_SLICE: Final = timedelta(minutes=15)
_EACH_S: Final = 60.0  # for one answer
_TOGETHER: Final = 8  # questions at a time
_GIVE_UP: Final = 3
_BARE_NAME: Final = re.compile(r"[a-zA-Z_:][\w:]*")


@dataclass(slots=True)
class CapturedRows:
    """Rows of one file, and what of it was not read."""

    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: int = 0  # without an answer in between

    @property
    def is_given_up(self) -> bool:
        """Whether the backend failed so often that it is not asked any more."""
        return self.failures >= _GIVE_UP

    def failed(self, what: str, error: ToolError | TimeoutError) -> None:
        """Note a failure. A refused question does not count against the backend."""
        words = error.message if isinstance(error, ToolError) else "no answer in time"
        self.notes.append(f"{what}: not read: {words}")
        if isinstance(error, InvalidArguments):
            return
        self.failures += 1
        if self.failures == _GIVE_UP:
            self.notes.append(f"{what.partition(':')[0]}: given up after {_GIVE_UP} failures")


async def take_metrics(
    metrics: Metrics, products: Sequence[str], interval: Interval, step_s: float
) -> CapturedRows:
    """Every series of these products as the backend has it: counters count, nothing is rated."""
    taken = CapturedRows()
    found = await asked(lambda: metrics.discover(products, interval), "metrics", taken)
    if found is None:
        return taken
    taken.notes += [f"metrics: none of {product}" for product in found.without]
    left = _by_meaning(found)
    samples = 0
    while left and samples < MOST_SAMPLES and len(taken.rows) < MOST_SERIES:
        if taken.is_given_up:
            break
        now, left = left[:_TOGETHER], left[_TOGETHER:]
        answers = await asyncio.gather(
            *(_series(metrics, one, interval, step_s, taken) for one in now)
        )
        for metric, series in zip(now, answers, strict=True):
            new = [row for one in series if (row := series_row(metric, one))]
            taken.rows += new
            samples += sum(len(series.points) for series in series)
    if left:
        taken.notes.append(f"metrics: {len(left)} of {len(found.metrics)} names were left out")
    return taken


def _by_meaning(found: Discovered) -> list[Metric]:
    """The metrics that signals are made of first, in case there is no room for all."""
    telling = {name for signal in found.signals for name in (signal.metric, signal.over) if name}
    return sorted(
        found.metrics, key=lambda one: (not any(one.name.startswith(n) for n in telling), one.name)
    )


async def _series(
    metrics: Metrics, metric: Metric, interval: Interval, step_s: float, taken: CapturedRows
) -> Sequence[Series]:
    """All products in one question; where the backend refuses that, one by one."""
    together = list(_selectors(metric, metric.places))
    try:
        return await _queried(metrics, together, interval, step_s)
    except InvalidArguments:
        alone = {product: {product: places} for product, places in metric.places.items()}
    except (ToolError, TimeoutError) as error:
        taken.failed(f"metrics: {metric.name}", error)
        return ()
    found: list[Series] = []
    for product, places in alone.items():
        selectors = list(_selectors(metric, places))
        what = f"metrics: {metric.name} of {product}"
        found += (
            await asked(partial(_queried, metrics, selectors, interval, step_s), what, taken) or ()
        )
    return found


async def _queried(
    metrics: Metrics, selectors: Sequence[str], interval: Interval, step_s: float
) -> Sequence[Series]:
    found: dict[str, Series] = {}
    for selector in selectors:
        async with asyncio.timeout(_EACH_S):
            result = await metrics.promql(selector, interval, step_s)
        found |= {repr(sorted(one.labels.items())): one for one in result.series}
    return list(found.values())


def _selectors(metric: Metric, places: Mapping[str, Sequence[Place]]) -> Iterator[str]:
    bare = _BARE_NAME.fullmatch(metric.name) is not None
    for group in groups_of(places):
        alone = len(group.values) == 1 and not group.pods and not group.namespace
        mine = f"{group.label}={quoted(next(iter(group.values)))}" if alone else group.matchers()
        named = metric.name if bare else ""
        yield f"{named}{{{mine if bare else f'__name__={quoted(metric.name)},{mine}'}}}"


def series_row(metric: Metric, one: Series) -> Row | None:
    """A series as a row of a case, whole values as integers; None without a finite value."""
    points: list[JsonValue] = [
        [round(at.timestamp()), json_number(int(value)) if value.is_integer() else value]
        for at, value in one.points
        if value is not None and math.isfinite(value)
    ]
    if not points:
        return None
    return {"name": metric.name, "labels": dict(one.labels), "unit": metric.unit, "points": points}


async def take_logs(logs: Logs, products: Sequence[str], interval: Interval) -> CapturedRows:
    """Lines of all levels, the newest first while there is room."""
    taken = CapturedRows()
    held, counted = 0, 0
    for slice_ in _slices(interval):
        limit = min(_LINES_A_SLICE, MOST_LINES - len(taken.rows))
        if limit <= 0:
            taken.notes.append(f"logs: nothing from before {slice_.end:%Y-%m-%d %H:%M} UTC")
            break
        query = LogSweepQuery(products, slice_, limit=limit)
        swept = await asked(partial(logs.sweep, query), "logs", taken)
        if swept is None:
            break
        for product, lines in swept.lines.items():
            for line in lines:
                labels: Row = {"service": product, "host": line.host, "level": line.level}
                row: Row = {
                    "ts_ns": line.ts_ns,
                    "labels": {name: value for name, value in labels.items() if value},
                    "line": line.message,
                }
                taken.rows.append({**row, "trace_id": line.trace_id} if line.trace_id else row)
        held += sum(len(lines) for lines in swept.lines.values())
        counted += sum(swept.counts.values())
    if counted > held:
        taken.notes.append(
            f"logs: {held} of {counted} lines were kept, the newest of each quarter hour"
        )
    return taken


def _slices(interval: Interval) -> Iterator[Interval]:
    end = interval.end
    while end > interval.start:
        start = max(interval.start, end - _SLICE)
        yield Interval(start, end)
        end = start


async def take_traces(
    traces: Traces, products: Sequence[str], intervals: Sequence[Interval]
) -> tuple[CapturedRows, Sequence[tuple[str, str]]]:
    """Whole traces, the same number from each interval, and the further calls that are known."""
    taken = CapturedRows()
    seen: set[str] = set()
    calls: set[tuple[str, str]] = set()
    each = MOST_TRACES // max(1, len(intervals))
    for interval in intervals:
        found = await asked(partial(traces.sample, products, interval, each), "traces", taken)
        if found is None:
            continue
        taken.notes += [f"traces: {note}" for note in found.notes]
        calls.update(found.calls)
        for trace in found.traces:
            if trace.trace_id not in seen:
                seen.add(trace.trace_id)
                taken.rows += _span_rows(trace)
    return taken, sorted(calls)


def _span_rows(trace: Trace) -> Iterator[Row]:
    for span in trace.spans:
        yield {
            "trace_id": trace.trace_id,
            "span_id": span.span_id,
            "parent_id": span.parent_id or None,
            "service": span.service,
            "name": span.operation,
            "start_ns": span.start_us * 1000,
            "end_ns": (span.start_us + span.duration_us) * 1000,
            "status": span.status,
            "message": span.message,
            "tags": dict(span.tags),
        }


async def take_deploys(
    sources: Sequence[Deploys], products: Sequence[str], interval: Interval
) -> CapturedRows:
    taken = CapturedRows()
    for source in sources:
        for product in products:
            between = partial(source.between, product, interval)
            found = await asked(between, f"deploys of {product}", taken)
            for one in found or ():
                row = asdict(one) | {"at": one.at.isoformat()}
                taken.rows.append({name: row[name] for name in DeployRow.model_fields})
    return taken


async def asked(ask: Callable[[], Awaitable[T]], what: str, taken: CapturedRows) -> T | None:
    """None with a note where the backend does not answer; a dead one is not asked again and again."""
    if taken.is_given_up:
        return None
    try:
        async with asyncio.timeout(_EACH_S):
            answer = await ask()
    except (ToolError, TimeoutError) as error:
        taken.failed(what, error)
        return None
    taken.failures = 0
    return answer


MOST_OBJECTS: Final = 500
_OF_NAMESPACES: Final = OF_THE_CLUSTER | {"ResourceQuota", "PersistentVolumeClaim"}
_EVERYWHERE: Final = "*"


async def take_cluster(kubernetes: Kubernetes, products: Sequence[str]) -> tuple[Row, list[str]]:
    """The content of `kubernetes.json` without secrets, and notes about missing data."""
    taken = CapturedRows()
    wanted: list[KubernetesObject] = []
    for plural, kind in (PODS, *ALWAYS, *STORAGE):
        ask = partial(_objects, kubernetes, plural)
        found = await asked(ask, f"Kubernetes: {plural}", taken)
        wanted += [one for one in found.objects if _is_wanted(one, kind, products)] if found else []
    if len(wanted) > MOST_OBJECTS:
        taken.notes.append(f"Kubernetes: {MOST_OBJECTS} of {len(wanted)} objects were taken")
    spaces = {namespace_of(one) for one in wanted} - {""} or {""}
    told: list[JsonValue] = []
    for namespace in sorted(spaces):
        ask_events = partial(kubernetes.events, ObjectQuery("", namespace=namespace))
        events = await asked(ask_events, f"Kubernetes: events {namespace}".rstrip(), taken)
        told += [_event(one) for one in events or ()]
    objects: list[JsonValue] = [dict(one) for one in wanted[:MOST_OBJECTS]]
    return {"objects": objects, "events": told}, taken.notes


async def _objects(kubernetes: Kubernetes, plural: str) -> ObjectList:
    try:
        return await kubernetes.objects(ObjectQuery(plural, namespace=_EVERYWHERE))
    except InvalidArguments:
        return await kubernetes.objects(ObjectQuery(plural))


def _is_wanted(one: KubernetesObject, kind: str, products: Sequence[str]) -> bool:
    if kind in _OF_NAMESPACES:
        return True
    workload = workload_of_pod(one)[1] if kind == "Pod" else ""
    names = (name_of(one), workload, product_in(labels_of(one), products))
    return any(owner_of(name, products) for name in names)


def _event(one: ClusterEvent) -> JsonValue:
    return {
        "involvedObject": {"kind": one.kind, "name": one.name, "namespace": one.namespace},
        "type": one.type,
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
        "lastTimestamp": one.at.isoformat() if one.at else None,
    }
