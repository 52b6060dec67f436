"""Discovery and sweeps of a simulated incident: the same conventions, computed values."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from adapters.observe.instants import check_order
from adapters.observe.signal_map import Known, signals_of
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.series import STEP_S
from tools.capabilities import Clock, Interval, SweepQuery, Swept, SweptSeries
from tools.signals import Discovered, Metric, Place, Signal

LABEL: Final = "service"


def discovered(dataset: Dataset, products: Sequence[str], interval: Interval) -> Discovered:
    """As the Metrics port says. Raises InvalidArguments for an empty interval."""
    check_order(interval)
    wanted = tuple(dict.fromkeys(products)) or tuple(dataset.products)
    there = [product for product in wanted if product in dataset.products]
    places: dict[str, dict[str, list[Place]]] = {}
    for product in there:
        for metric in dataset.metrics(product):
            places.setdefault(metric, {})[product] = [Place(LABEL, product)]
    known = [Known(metric, at, type="gauge") for metric, at in sorted(places.items())]
    return Discovered(
        [_spaced(signal) for signal in signals_of(known)],
        wanted,
        tuple(product for product in wanted if product not in there),
        {LABEL: len(there)} if there else {},
        metrics=[Metric(one.metric, one.type, one.unit, one.places) for one in known],
    )


async def swept(dataset: Dataset, clock: Clock, query: SweepQuery) -> Swept:
    """As the Metrics port says. One series a time, so that the loop goes on."""
    check_order(query.interval)
    found = []
    for signal in query.signals:
        for product in sorted(signal.products & set(query.products or signal.products)):
            points = _points(dataset, clock, query, signal, product)
            if points:
                found.append(SweptSeries(signal.name, product, points))
            await asyncio.sleep(0)
    return Swept(found, query.step_s)


def _points(
    dataset: Dataset, clock: Clock, query: SweepQuery, signal: Signal, product: str
) -> Sequence[tuple[float, float]]:
    end_s = min(query.interval.end, dataset.end, clock.now()).timestamp()
    start_s = query.interval.start.timestamp()
    steps = max(0, -int(-(end_s - start_s) // query.step_s))
    instants_s = (start_s + number * query.step_s for number in range(steps))
    return dataset.points(product, signal.metric, instants_s)


def _spaced(signal: Signal) -> Signal:
    return replace(signal, spacing_s=float(STEP_S))
