"""Replicas that went quiet while the others of their product go on: a sum hides them.

It spends only the requests that the look at labels left.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from tools.analysis.series_shape import growth_of
from tools.analysis.shift import MIN_BASELINE, Points
from tools.capabilities import Interval, MetricResult, Metrics
from tools.core.metric_history import LONGEST
from tools.core.metric_labels import MOST_SERIES, selector_of
from tools.core.metric_sweep import Disappeared, MetricSweep
from tools.core.sweep_arguments import at_text
from tools.errors import ToolError
from tools.output import clean_text
from tools.signals import ROLES, Role, Signal
from tools.statistics import finite

_REPLICA: Final = ("pod", "instance", "node", "host", "zone")  # labels, the first that all have
_TELLING: Final = frozenset[Role]({"traffic", "latency", "cpu", "memory"})
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
        own = [one for one in self.signals.values() if one.role in _TELLING]
        own = [one for one in own if selector_of(one, product)]
        return min(own, key=lambda one: (ROLES.index(one.role), one.rank, one.name), default=None)

    async def _read(self, product: str, signal: Signal) -> MetricResult:
        steps = LONGEST.total_seconds() // self.step_s
        start = self.end - timedelta(seconds=steps * self.step_s)
        whole = Interval(start, self.end + timedelta(seconds=1))
        try:
            return await self.metrics.promql(selector_of(signal, product), whole, self.step_s)
        except ToolError:
            return MetricResult((), None, self.step_s, ())

    def _judged(self, product: str, signal: Signal, result: MetricResult) -> Disappeared | None:
        label = next(
            (one for one in _REPLICA if all(one in each.labels for each in result.series)), ""
        )
        replicas: dict[str, list[Points]] = defaultdict(list)
        for each in result.series[:MOST_SERIES]:
            points: Points = [(at.timestamp(), value) for at, value in finite(each.points)]
            grown = growth_of(points) if signal.reading == "rate" else points
            replicas[each.labels.get(label, "")].append(grown)
        if not label or len(replicas) < 2:
            return None
        alive = {name: self._alive(signal, of) for name, of in replicas.items()}
        return self._missing(product, signal, label, alive)

    def _alive(self, signal: Signal, series: Sequence[Points]) -> frozenset[int]:
        # Steps back from the end in which it does something.
        least = signal.limit if signal.worse == "down" and signal.limit is not None else None
        counts = signal.role == "traffic" or least is not None
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
        how = (
            "down" if signal.limit is not None else "zero" if signal.role == "traffic" else "ended"
        )
        return Disappeared(
            product=clean_text(product),
            role=signal.role,
            signal=clean_text(signal.name),
            how=how,
            since=at_text(self.end.timestamp() - (since - 1) * self.step_s, self.end),
            only_at=clean_text(f"{label}={name} ({number - now} of {number})"),
        )


def _smoothed(numbers: Mapping[int, int], oldest: int) -> Iterator[float]:
    # From the newest that counts as before; a dip of one step is a replica that begins.
    for step in range(_NEWEST, oldest):
        yield median(numbers.get(each, 0) for each in (step - 1, step, step + 1))
