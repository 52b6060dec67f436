"""Metrics on Prometheus, VictoriaMetrics and Mimir, through the query API they share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import httpx

from adapters.observe.backend import Backend
from adapters.observe.instants import check_order, seconds_text
from adapters.observe.metric_shape import step_for, unit_of
from adapters.observe.prometheus_answer import matrix_of, names_of
from adapters.observe.prometheus_notes import absence_note, staleness_notes
from adapters.observe.prometheus_sweep import Sweeper
from adapters.observe.signal_promql import quoted, window_of
from tools.capabilities import Clock, Interval, MetricQuery, MetricResult, Series, SweepQuery, Swept
from tools.errors import InvalidArguments
from tools.signals import Discovered

_METRIC_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_QUANTILE_NAME: Final = re.compile(r"(.+)_p(\d\d|999)")
_LABEL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_FINEST_STEP_S: Final = 15.0
_MAX_SERIES: Final = 50  # more than a chat answer can use; the rest is announced


@dataclass(frozen=True, slots=True)
class _Selector:
    """What is asked for, as PromQL."""

    metric: str
    matchers: str

    @property
    def promql(self) -> str:
        return f"{self.metric}{{{self.matchers}}}"


class PrometheusMetrics:
    """Metric series by name and product.

    `product_label` is the label that names a product. `scrape_interval_s` is how often targets
    are scraped: counters are read as rates over at least four scrapes. A name such as
    `http_request_duration_seconds_p99` that does not exist is estimated from the histogram
    `http_request_duration_seconds_bucket` when that does. `org_id` is Mimir's tenant. The client's base URL includes any prefix (`/prometheus` on Mimir).
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        clock: Clock,
        product_label: str = "service",
        org_id: str = "",
        scrape_interval_s: float = 15.0,
    ) -> None:
        if not _LABEL_NAME.fullmatch(product_label):
            raise ValueError(f"product_label {product_label!r} is not a label name")
        self._backend = Backend("Prometheus", client, org_id)
        self._clock = clock
        self._product_label = product_label
        self._scrape_interval_s = scrape_interval_s
        self._sweeper = Sweeper(self._backend, clock, (product_label,))

    async def query_range(self, query: MetricQuery) -> MetricResult:
        """Points lie on start + k x step, before end. Counters (`*_total`) come as rates."""
        selector = self._selector(query)
        check_order(query.interval)
        step_s, step_note = step_for(query.interval, query.step_s, _FINEST_STEP_S)
        promql = self._promql(selector, step_s)
        series, warnings = await self._matrix(promql, query.interval, step_s)
        notes = [note for note in (step_note, *warnings) if note]
        if not series:
            series, note = await self._otherwise(query, step_s)
            notes.append(note)
        if not series:
            return MetricResult((), unit_of(query.metric), step_s, tuple(notes))
        if len(series) > _MAX_SERIES:
            notes.append(f"{len(series)} series, the first {_MAX_SERIES} are here: add labels")
            series = series[:_MAX_SERIES]
        notes.extend(staleness_notes(series, query.interval, step_s, self._clock.now()))
        return MetricResult(tuple(series), unit_of(query.metric), step_s, tuple(notes))

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """What these products have; of all that are known when none is named."""
        return await self._sweeper.discover(products, interval)

    async def sweep(self, query: SweepQuery) -> Swept:
        """Every signal for every product, in a few requests."""
        return await self._sweeper.sweep(query)

    def _selector(self, query: MetricQuery) -> _Selector:
        if not _METRIC_NAME.fullmatch(query.metric):
            raise InvalidArguments(
                f"{query.metric!r} is not a metric's name: give the bare name, without PromQL"
            )
        if not query.product.strip():
            raise InvalidArguments("name one product")
        wrong = [name for name in query.labels if not _LABEL_NAME.fullmatch(name)]
        if wrong:
            raise InvalidArguments(f"not a label's name: {', '.join(map(repr, wrong))}")
        return _Selector(query.metric, self._matchers_of(query))

    def _matchers_of(self, query: MetricQuery) -> str:
        return _matchers({**query.labels, self._product_label: query.product})

    def _promql(self, selector: _Selector, step_s: float) -> str:
        if not selector.metric.endswith("_total"):
            return selector.promql
        return f"rate({selector.promql}[{self._window(step_s)}])"

    def _window(self, step_s: float) -> str:
        return window_of(step_s, self._scrape_interval_s)

    async def _matrix(
        self, promql: str, interval: Interval, step_s: float
    ) -> tuple[Sequence[Series], Sequence[str]]:
        form = {
            "query": promql,
            "start": seconds_text(interval.start),
            "end": seconds_text(interval.end),
            "step": f"{step_s:g}",
        }
        answer = await self._backend.post_form("/api/v1/query_range", form)
        # A sample is carried forward for 5 minutes, also past now, where nothing is known yet.
        return matrix_of(answer, before=min(interval.end, self._clock.now()))

    async def _otherwise(self, query: MetricQuery, step_s: float) -> tuple[Sequence[Series], str]:
        """What to give when nothing has the name: a quantile of its histogram, or why there is
        nothing. A misspelt name looks like no traffic, so find out which it is.
        """
        of_product = _matchers({self._product_label: query.product})
        metrics = await self._names("__name__", query.interval, {"match[]": f"{{{of_product}}}"})
        quantile = _QUANTILE_NAME.fullmatch(query.metric)
        buckets = f"{quantile[1]}_bucket" if quantile else ""
        if quantile is not None and query.metric not in metrics and buckets in metrics:
            rate = f"rate({buckets}{{{self._matchers_of(query)}}}[{self._window(step_s)}])"
            share = float(f"0.{quantile[2]}")
            promql = f"histogram_quantile({share:g}, sum by (le) ({rate}))"
            series, _warnings = await self._matrix(promql, query.interval, step_s)
            return series, f"estimated from the histogram {buckets}, over all its series"
        products = [] if metrics else await self._names(self._product_label, query.interval, {})
        return (), absence_note(query, self._product_label, metrics, products)

    async def _names(
        self, label: str, interval: Interval, extra: Mapping[str, str]
    ) -> Sequence[str]:
        params = {
            "start": seconds_text(interval.start),
            "end": seconds_text(interval.end),
            **extra,
        }
        return names_of(await self._backend.get(f"/api/v1/label/{label}/values", params))


def _matchers(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={quoted(value)}" for name, value in sorted(labels.items()))
