"""Which label explains what moved most: one pod of twelve, one zone, one dependency.

A sweep reads the series of a product as one. Only of what moved most each series is read by itself.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tools.analysis.explaining_label import explaining_label
from tools.analysis.series_shape import growth_of
from tools.analysis.shift import Points, shift
from tools.analysis.usual import UNUSUAL
from tools.capabilities import Interval, Metrics
from tools.core.metric_sweep import MetricShift, MetricSweep
from tools.errors import ToolError
from tools.output import clean_text
from tools.signals import Place, Signal
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
    return f'{signal.metric}{{{places[0].label}="{places[0].value}"}}' if is_plain else ""


def _key(one: MetricShift) -> tuple[str, str]:
    return one.product, one.signal


def _is_plain(place: Place, metric: str) -> bool:
    texts = _PLAIN.fullmatch(metric) and _PLAIN.fullmatch(place.label)
    is_quotable = '"' not in place.value and "\\" not in place.value and place.value.isprintable()
    return bool(texts) and is_quotable and not place.pods and not place.namespace


def _points(points: Sequence[tuple[datetime, float | None]], signal: Signal) -> Points:
    known = [(at.timestamp(), value) for at, value in finite(points)]
    return growth_of(known) if signal.reading == "rate" else known
