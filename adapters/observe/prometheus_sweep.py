"""Discovery and sweeps on Prometheus, VictoriaMetrics and Mimir, remembered for some minutes."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

from adapters.observe.backend import Backend, few_at_once
from adapters.observe.instants import check_order, seconds_text
from adapters.observe.metric_shape import MAX_STEPS
from adapters.observe.product_places import ProductLabels
from adapters.observe.prometheus_answer import SweptRow, rows_of
from adapters.observe.prometheus_discovery import Discovery
from adapters.observe.prometheus_kinds import Kinds
from adapters.observe.remembered import Remembered
from adapters.observe.signal_promql import PRODUCT, TERM, Term, chunks, joined, terms_of
from tools.capabilities import Clock, Interval, SweepQuery, Swept, SweptSeries
from tools.errors import InvalidArguments
from tools.signals import Discovered

REMEMBERED_FOR: Final = timedelta(minutes=5)  # new deploys appear within it
_MOST_POINTS: Final = 400_000  # of one answer: some 12 MB


class Sweeper:
    """What there is, and all of it at once. `labels` name a product."""

    def __init__(self, backend: Backend, clock: Clock, kinds: Kinds, labels: ProductLabels) -> None:
        self._kinds = kinds
        self._backend = backend
        self._clock = clock
        self._labels = labels
        self._remembered: Remembered[Discovered] = Remembered(REMEMBERED_FOR)

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        check_order(interval)
        about = int(interval.end.timestamp() // REMEMBERED_FOR.total_seconds())
        key = (tuple(sorted(set(products))), about)
        return await self._remembered.get(key, lambda: self._look(products, interval))

    async def sweep(self, query: SweepQuery) -> Swept:
        check_order(query.interval)
        range_s = (query.interval.end - query.interval.start).total_seconds()
        if query.step_s <= 0 or range_s / query.step_s > MAX_STEPS:
            raise InvalidArguments(f"step_s: at most {MAX_STEPS} steps fit a range")
        wanted = frozenset(query.products) if query.products else None
        terms = terms_of(query.signals, wanted, query.step_s)
        parts = list(chunks(terms, round(range_s / query.step_s) + 1, _MOST_POINTS))
        answers = await few_at_once([partial(self._ask, part, query) for part in parts])
        series = [one for answer in answers for one in answer]
        return Swept(series, query.step_s, requests=len(parts))

    async def _look(self, products: Sequence[str], interval: Interval) -> Discovered:
        looking = Discovery(self._backend, self._clock, interval, self._labels, self._kinds)
        return await looking.look(products)

    async def _ask(self, terms: Sequence[Term], query: SweepQuery) -> list[SweptSeries]:
        form = {
            "query": joined(terms),
            "start": seconds_text(query.interval.start),
            "end": seconds_text(query.interval.end),
            "step": f"{query.step_s:g}",
        }
        answer = await self._backend.post_form("/api/v1/query_range", form)
        end = min(query.interval.end, self._clock.now())
        rows = await asyncio.to_thread(rows_of, answer, end)
        return list(_series(rows, terms))


def _series(rows: Sequence[SweptRow], terms: Sequence[Term]) -> Iterator[SweptSeries]:
    for labels, points in rows:
        term = terms[int(labels[TERM])]
        signal = term.signals.get("") or term.signals.get(labels.get("__name__", ""))
        product = term.group.values.get(labels.get(PRODUCT, ""))
        if signal is not None and product is not None and points:
            yield SweptSeries(signal.name, product, points)
