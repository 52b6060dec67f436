"""Metrics on Prometheus, VictoriaMetrics and Mimir, through the query API they share.

With what to say when a query found nothing, or series end too early.
"""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote

import httpx

from adapters.observe.backend import Backend
from adapters.observe.conventions import SHIPPED, Conventions
from adapters.observe.instants import check_order, seconds_text
from adapters.observe.metric_shape import QUANTILE_NAME, step_for, unit_read
from adapters.observe.product_places import ProductLabels
from adapters.observe.prometheus_answer import instant_of, matrix_of, names_of
from adapters.observe.prometheus_kinds import Kinds
from adapters.observe.prometheus_sweep import Sweeper
from adapters.observe.signal_promql import (
    is_quotable,
    label_name,
    matchers_of,
    quoted,
    selected,
    window_of,
)
from tools.capabilities import Clock, Interval, MetricQuery, MetricResult, Series, SweepQuery, Swept
from tools.errors import InvalidArguments, UpstreamFailed
from tools.signals import Discovered

# Letters of any language, digits and the signs of names; never the brackets or quotes of a query.
_METRIC_NAME: Final = re.compile(r"[^\W\d][\w:./-]*|:[\w:./-]+")
_FINEST_STEP_S: Final = 15.0
_ITS_FAULT: Final = frozenset(
    {400, 422}
)  # bad_data and execution: errors of the query, not of the server
_NOTHING: Final = (
    "the query is valid and selects nothing: a name or a label may be wrong, or nothing happened"
)

_SHOWN_NAMES: Final = 30
_SHOWN_SERIES: Final = 3
# Backends carry a sample forward for 5 minutes, so a point that is missing at the end means data
# older than that; VictoriaMetrics hides the newest 30 s.
_LOOK_BACK: Final = timedelta(minutes=5)
_TOLERANCE: Final = timedelta(seconds=60)


class PrometheusMetrics:
    """Metric series by name and product.

    `product_label` alone names the product of a series; empty, the label is found for each metric,
    those of `preferred_labels` before the usual ones. Counters are read as rates over at least four scrapes; `scrape_interval_s` is how far these lie apart,
    None: learned from the data. A name such as `http_request_duration_seconds_p99` that does not
    exist is estimated from the histogram `http_request_duration_seconds_bucket` when that does.
    `org_id` is Mimir's tenant. The client's base URL includes any prefix (`/prometheus` on Mimir).
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        clock: Clock,
        product_label: str = "",
        org_id: str = "",
        scrape_interval_s: float | None = None,
        conventions: Conventions = SHIPPED,
        preferred_labels: Sequence[str] = (),
    ) -> None:
        if product_label and not is_quotable(product_label):
            raise ValueError(f"product_label {product_label!r} is not a label name")
        self._backend = Backend("Prometheus", client, org_id)
        self._clock = clock
        self._product_label = product_label
        self._kinds = Kinds(self._backend, scrape_interval_s, conventions)
        told = ProductLabels(tuple(preferred_labels), product_label)
        self._sweeper = Sweeper(self._backend, clock, self._kinds, told)

    async def query_range(self, query: MetricQuery) -> MetricResult:
        """Points lie on start + k x step, before end. Counters come as rates. All series."""
        _check(query)
        check_order(query.interval)
        step_s, step_note = step_for(query.interval, query.step_s, _FINEST_STEP_S)
        selectors = await self._selectors(query, query.metric)
        is_counter = await self._kinds.is_counter(query.metric, query.interval)
        series: Sequence[Series] = ()
        warnings: Sequence[str] = ()
        if selectors:
            reading = await self._rates(selectors, query, step_s) if is_counter else selectors
            series, warnings = await self._matrix(" or ".join(reading), query.interval, step_s)
        notes = [note for note in (step_note, *warnings) if note]
        if not series:
            series, note = await self._otherwise(query, step_s)
            notes.append(note)
        unit = unit_read(query.metric, is_counter=is_counter)
        if not series:
            return MetricResult((), unit, step_s, tuple(notes))
        notes.extend(staleness_notes(series, query.interval, step_s, self._clock.now()))
        return MetricResult(tuple(series), unit, step_s, tuple(notes))

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        """PromQL as it is. Raises InvalidArguments with the backend's words where it refuses."""
        check_order(interval)
        step, note = step_for(interval, step_s, _FINEST_STEP_S)
        try:
            if instant:
                at = min(interval.end, self._clock.now())
                form = {"query": text, "time": seconds_text(at)}
                answer = await self._backend.post_form("/api/v1/query", form)
                series, warnings = instant_of(answer)
            else:
                series, warnings = await self._matrix(text, interval, step)
        except UpstreamFailed as error:
            if error.status not in _ITS_FAULT:
                raise
            raise InvalidArguments(f"query: the backend refuses it: {error.message}") from error
        notes = [one for one in (note if not instant else "", *warnings) if one]
        if not series:
            notes.append(_NOTHING)
        elif not instant:
            notes.extend(staleness_notes(series, interval, step, self._clock.now()))
        return MetricResult(tuple(series), None, step, tuple(notes))

    async def discover(self, products: Sequence[str], interval: Interval) -> Discovered:
        """What these products have; of all that are known when none is named."""
        return await self._sweeper.discover(products, interval)

    async def sweep(self, query: SweepQuery) -> Swept:
        return await self._sweeper.sweep(query)

    async def _selectors(self, query: MetricQuery, metric: str) -> list[str]:
        labels = dict(query.labels)
        if self._product_label:
            labels.pop(self._product_label, None)
            of_product = [f"{label_name(self._product_label)}={quoted(query.product)}"]
        else:
            found = await self._sweeper.discover([query.product], query.interval)
            of_product = matchers_of(found, metric, query.product)
        others = [f"{label_name(name)}={quoted(value)}" for name, value in labels.items()]
        return [selected(metric, sorted([*others, one])) for one in of_product]

    async def _rates(
        self, selectors: Sequence[str], query: MetricQuery, step_s: float
    ) -> list[str]:
        at = min(query.interval.end, self._clock.now())
        spacing_s = await self._kinds.spacing(selectors[0], at)
        window = window_of(step_s, spacing_s)
        return [f"rate({selector}[{window}])" for selector in selectors]

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
        metrics = await self._metrics_of(query)
        quantile = QUANTILE_NAME.fullmatch(query.metric)
        if quantile is not None and query.metric not in metrics:
            base, share = quantile[1], float(f"0.{quantile[2]}")
            # A native histogram is one series that holds its buckets itself (Prometheus 3).
            kinds = ((f"{base}_bucket", "sum by (le)"), (base, "sum"))
            histogram, total = next((kind for kind in kinds if kind[0] in metrics), ("", ""))
            if histogram:
                rates = await self._rates(await self._selectors(query, histogram), query, step_s)
                promql = f"histogram_quantile({share:g}, {total} ({' or '.join(rates)}))"
                series, _warnings = await self._matrix(promql, query.interval, step_s)
                return series, f"estimated from the histogram {histogram}, over all its series"
        products = [] if metrics else await self._products(query.interval)
        return (), absence_note(query, self._product_label, metrics, products)

    async def _metrics_of(self, query: MetricQuery) -> Sequence[str]:
        if not self._product_label:
            found = await self._sweeper.discover([query.product], query.interval)
            return [metric.name for metric in found.metrics]
        of_product = f"{label_name(self._product_label)}={quoted(query.product)}"
        return await self._names("__name__", query.interval, {"match[]": f"{{{of_product}}}"})

    async def _products(self, interval: Interval) -> Sequence[str]:
        if self._product_label:
            return await self._names(self._product_label, interval, {})
        return (await self._sweeper.discover([], interval)).products

    async def _names(
        self, label: str, interval: Interval, extra: Mapping[str, str]
    ) -> Sequence[str]:
        params = {
            "start": seconds_text(interval.start),
            "end": seconds_text(interval.end),
            **extra,
        }
        return names_of(
            await self._backend.get(f"/api/v1/label/{quote(label, safe='')}/values", params)
        )


def _check(query: MetricQuery) -> None:
    if not _METRIC_NAME.fullmatch(query.metric):
        raise InvalidArguments(
            f"{query.metric!r} is not a metric's name: give the bare name, without PromQL"
        )
    if not query.product.strip():
        raise InvalidArguments("name one product")
    wrong = [name for name in query.labels if not is_quotable(name)]
    if wrong:
        raise InvalidArguments(f"not a label's name: {', '.join(map(repr, wrong))}")


def absence_note(
    query: MetricQuery, product_label: str, metrics: Sequence[str], products: Sequence[str]
) -> str:
    """Why there are no series. `metrics` are the product's, `products` are those there are."""
    if query.metric in metrics:
        labels = ", ".join(f"{name}={value}" for name, value in sorted(query.labels.items()))
        reason = f"no series has {labels}" if labels else "it has no samples in this time range"
        return f"metric {query.metric} exists for product {query.product}, but {reason}"
    if metrics:
        return (
            f"metric {query.metric} does not exist for product {query.product}; "
            f"it has: {_nearest(query.metric, metrics)}"
        )
    known = f"; products are: {_nearest(query.product, products)}" if products else ""
    by = f"{product_label}={query.product}" if product_label else f"the product {query.product}"
    return f"no metric has {by} in this time range{known}"


def staleness_notes(
    series: Sequence[Series], interval: Interval, step_s: float, now: datetime
) -> Iterator[str]:
    """Names the series whose last sample is more than 5 minutes before the end of the range."""
    step = timedelta(seconds=step_s)
    end = min(interval.end, now)
    tolerance = max(step, _TOLERANCE)
    stale = [one for one in series if end - one.points[-1][0] > tolerance]
    for one in stale[:_SHOWN_SERIES]:
        last = one.points[-1][0]
        labels = ", ".join(f"{name}={value}" for name, value in one.labels.items())
        yield (
            f"no recent samples: {{{labels}}} ends at {last.isoformat()}, "
            f"{_minutes(end - last)} before the end of the range "
            f"(its last sample may be {_minutes(_LOOK_BACK)} older still)"
        )
    if len(stale) > _SHOWN_SERIES:
        yield f"{len(stale) - _SHOWN_SERIES} more series end early"


def _nearest(wanted: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(wanted, names, n=5, cutoff=0.5)
    ordered = [*near, *(name for name in names if name not in near)]
    rest = len(ordered) - _SHOWN_NAMES
    return ", ".join(ordered[:_SHOWN_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def _minutes(span: timedelta) -> str:
    return f"{span.total_seconds() / 60:.0f} min"
