"""The single series of what moved most: the label that explains it, and replicas that went quiet.

A sweep reads the series of a product as one: a sum hides one pod of twelve, one zone, one dependency.
Replicas get only the requests that the look at labels left.
"""

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from tools.analysis.explaining_label import explaining_label
from tools.analysis.series_shape import growth_of
from tools.analysis.shift import MIN_BASELINE, Points, shift
from tools.analysis.usual import UNUSUAL
from tools.capabilities import Interval, MetricResult, Metrics
from tools.core.metric_history import LONGEST, counts_work
from tools.core.metric_sweep import Disappeared, MetricShift, MetricSweep
from tools.core.sweep_arguments import at_text
from tools.errors import ToolError
from tools.output import clean_text
from tools.signals import ROLES, Place, Role, Signal
from tools.statistics import finite

MOST_READ: Final = 6  # each is a request
_EACH: Final = 2  # of a product
MOST_SERIES: Final = 500  # of one metric of a product; more are not compared here
_PLAIN: Final = re.compile(r"[a-zA-Z_]\w*")


@dataclass(frozen=True, slots=True)
class LabelLook:
    """Reads the single series of products over a range and the time before it."""

    metrics: Metrics
    signals: Mapping[str, Signal]  # by name, as the sweep understood them
    read: Interval
    window: Interval
    step_s: float

    async def explained(self, output: MetricSweep) -> MetricSweep:
        """The same with the label that explains each of the largest shifts, where one does.

        What cannot be read is left as it is.
        """
        told = self._largest(output.shifts)
        async with asyncio.TaskGroup() as group:
            found = {_key(one): group.create_task(self._only_at(one)) for one in told}
        only_at = {key: task.result() for key, task in found.items() if task.result()}
        shifts = [
            one.model_copy(update={"only_at": only_at[_key(one)]}) if _key(one) in only_at else one
            for one in output.shifts
        ]
        requests = output.requests + len(told)
        return output.model_copy(update={"shifts": shifts, "requests": requests})

    def _largest(self, shifts: Sequence[MetricShift]) -> Sequence[MetricShift]:
        taken: dict[str, int] = {}
        found: list[MetricShift] = []
        for one in shifts:
            number = taken.get(one.product, 0)
            if (
                one.score >= UNUSUAL
                and number < _EACH
                and selector_of(self.signals.get(one.signal), one.product)
            ):
                taken[one.product] = number + 1
                found.append(one)
        return found[:MOST_READ]

    async def _only_at(self, one: MetricShift) -> str:
        signal = self.signals[one.signal]
        try:
            selector = selector_of(signal, one.product)
            result = await self.metrics.promql(selector, self.read, self.step_s)
        except ToolError:
            return ""
        if not 1 < len(result.series) <= MOST_SERIES:
            return ""
        judged = [
            (each.labels, self._moved(_points(each.points, signal), signal, one.direction))
            for each in result.series
        ]
        label = explaining_label([(labels, moved) for labels, moved in judged if moved is not None])
        if label is None:
            return ""
        return clean_text(f"{label.label}={label.value} (1 of {label.values})")

    def _moved(self, points: Points, signal: Signal, direction: str) -> bool | None:
        start, end = self.window.start.timestamp() - 0.5, self.window.end.timestamp() + 1
        moved = shift(points, start, end, signal.role, signal.unit, self.step_s, signal.worse)
        if moved is None:
            return None
        return (moved.down if direction == "down" else moved.up) >= UNUSUAL


def selector_of(signal: Signal | None, product: str) -> str:
    """Of a product's single series; empty where one plain selector does not name them."""
    places = signal.places.get(product, ()) if signal else ()
    if signal is None or len(places) != 1 or signal.where or signal.over:
        return ""
    is_plain = signal.reading in {"gauge", "rate"} and _is_plain(places[0], signal.metric)
    name = "" if _PLAIN.fullmatch(signal.metric) else f'__name__="{signal.metric}",'
    metric = "" if name else signal.metric
    return f'{metric}{{{name}{places[0].label}="{places[0].value}"}}' if is_plain else ""


def _key(one: MetricShift) -> tuple[str, str]:
    return one.product, one.signal


def _is_plain(place: Place, metric: str) -> bool:
    quoted = metric + place.value
    is_quotable = '"' not in quoted and "\\" not in quoted and quoted.isprintable()
    is_label = _PLAIN.fullmatch(place.label) is not None
    return is_label and is_quotable and not place.pods and not place.namespace


def _points(points: Sequence[tuple[datetime, float | None]], signal: Signal) -> Points:
    known = [(at.timestamp(), value) for at, value in finite(points)]
    return growth_of(known) if signal.reading == "rate" else known


_REPLICA: Final = ("pod", "instance", "node", "host", "zone")  # labels, the first that all have
_TELLING: Final = frozenset[Role]({"traffic", "latency", "cpu", "memory"})
_MUCH: Final = 0.05  # of the work of all parts
_NEWEST: Final = 2  # steps in which a quiet replica has nothing


@dataclass(frozen=True, slots=True)
class ReplicaLook:
    """Reads the series of single replicas over the last day. `most` is how many requests it may make."""

    metrics: Metrics
    signals: Mapping[str, Signal]
    end: datetime
    step_s: float
    most: int

    async def quiet(self, output: MetricSweep, asked: str) -> MetricSweep:
        """The same, with the replicas that went quiet, and how many of a target that is down are."""
        told = {one.product for one in output.disappeared}
        down = [one for one in output.disappeared if one.how == "down" and one.signal]
        wished = [(one.product, self.signals[one.signal]) for one in down]
        # All products of a question about none, or none of them: the budget of requests is small.
        of_all = output.within if len(output.within) <= self.most - len(down) else ()
        products = [one for one in ([asked] if asked else of_all) if one not in told]
        wished += [(one, best) for one in products if (best := self._best(one)) is not None]
        wished = [one for one in wished if selector_of(one[1], one[0])][: self.most]
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._read(*one)) for one in wished]
        found = {
            (product, signal.name): row
            for (product, signal), task in zip(wished, tasks, strict=True)
            if (row := self._judged(product, signal, task.result())) is not None
        }
        rows = [
            one.model_copy(update={"only_at": part.only_at})
            if (part := found.pop((one.product, one.signal), None)) is not None
            else one
            for one in output.disappeared
        ]
        return output.model_copy(
            update={
                "disappeared": [*rows, *(one for one in found.values() if one.how != "down")],
                "requests": output.requests + len(wished),
            }
        )

    def _best(self, product: str) -> Signal | None:
        own = [one for one in self.signals.values() if one.role in _TELLING or counts_work(one)]
        own = [one for one in own if selector_of(one, product)]
        return min(
            own,
            key=lambda one: (not counts_work(one), ROLES.index(one.role), one.rank, one.name),
            default=None,
        )

    async def _read(self, product: str, signal: Signal) -> MetricResult:
        steps = LONGEST.total_seconds() // self.step_s
        start = self.end - timedelta(seconds=steps * self.step_s)
        whole = Interval(start, self.end + timedelta(seconds=1))
        try:
            return await self.metrics.promql(selector_of(signal, product), whole, self.step_s)
        except ToolError:
            return MetricResult((), None, self.step_s, ())

    def _judged(self, product: str, signal: Signal, result: MetricResult) -> Disappeared | None:
        series = result.series[:MOST_SERIES]
        common = set.intersection(*(set(each.labels) for each in series)) if series else set()
        replica = next((one for one in _REPLICA if one in common), "")
        for label in [replica] if replica else sorted(common) if counts_work(signal) else []:
            parts: dict[str, list[Points]] = defaultdict(list)
            for each in series:
                points: Points = [(at.timestamp(), value) for at, value in finite(each.points)]
                grown = growth_of(points) if signal.reading == "rate" else points
                parts[each.labels[label]].append(grown)
            if not replica:
                parts = _main(parts)
            alive = {name: self._alive(signal, of) for name, of in parts.items()}
            found = self._missing(product, signal, label, alive) if len(parts) > 1 else None
            if found is not None:
                return found
        return None

    def _alive(self, signal: Signal, series: Sequence[Points]) -> frozenset[int]:
        # Steps back from the end in which it does something.
        least = signal.limit if signal.worse == "down" and signal.limit is not None else None
        counts = counts_work(signal) or least is not None
        return frozenset(
            round((self.end.timestamp() - at) / self.step_s)
            for points in series
            for at, value in points
            if value > (least or 0.0) or not counts
        )

    def _missing(
        self, product: str, signal: Signal, label: str, alive: Mapping[str, frozenset[int]]
    ) -> Disappeared | None:
        numbers = Counter(step for steps in alive.values() for step in steps)
        now = max(numbers.get(step, 0) for step in range(_NEWEST))
        gone = [
            (min(steps), name)
            for name, steps in sorted(alive.items())
            if len(steps) >= MIN_BASELINE and min(steps) >= _NEWEST
        ]
        before = list(_smoothed(numbers, max(numbers, default=0)))
        if not now or not gone or len(before) < MIN_BASELINE:
            return None
        # A rollout, or a load that varies, has had as few before.
        since, name = min(gone)
        earlier = before[since + 1 - _NEWEST :]
        if now >= min(earlier, default=now):
            return None
        number = round(earlier[0])
        how = "down" if signal.limit is not None else "zero" if counts_work(signal) else "ended"
        return Disappeared(
            product=clean_text(product),
            role=signal.role,
            signal=clean_text(signal.name),
            how=how,
            since=at_text(self.end.timestamp() - (since - 1) * self.step_s, self.end),
            only_at=clean_text(f"{label}={name} ({number - now} of {number})"),
        )


def _main(parts: Mapping[str, Sequence[Points]]) -> dict[str, list[Points]]:
    """The parts that did much of the work and never paused before: not a kind of failures, or a rare path."""
    usual = {name: _steady_work(of) for name, of in parts.items()}
    least = _MUCH * sum(usual.values())
    return {name: list(of) for name, of in parts.items() if usual[name] >= least > 0}


def _steady_work(series: Sequence[Points]) -> float:
    work: Counter[float] = Counter()
    for points in series:
        work.update(dict(points))
    done = [work[at] for at in sorted(work)]
    while done and done[-1] <= 0:
        done.pop()
    return median(done) if done and min(done) > 0 else 0.0


def _smoothed(numbers: Mapping[int, int], oldest: int) -> Iterator[float]:
    # From the newest that counts as before; a dip of one step is a replica that begins.
    for step in range(_NEWEST, oldest):
        yield median(numbers.get(each, 0) for each in (step - 1, step, step + 1))
