"""What discovery and sweeps of every metrics backend must do; a subclass provides `metrics`.

The backend holds `contract_series()` of `tests.fixtures_metrics_contract`.
"""

from datetime import UTC, datetime, timedelta

import pytest

from tests.fixtures_metrics_contract import P99, PRODUCTS
from tools.capabilities import Interval, MetricQuery, Metrics, SweepQuery
from tools.core.metric_series import read_metric
from tools.errors import InvalidArguments


class SignalsContract:
    """Run against every implementation."""

    NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)

    @pytest.fixture
    def hour(self) -> Interval:
        return Interval(self.NOW - timedelta(hours=1), self.NOW)

    async def test_each_metric_has_its_role(self, metrics: Metrics, hour: Interval) -> None:
        found = await metrics.discover(PRODUCTS, hour)
        assert {signal.role for signal in found.of("payments")} == {
            "traffic", "errors", "latency", "cpu", "memory",
        }  # fmt: skip
        assert {signal.role for signal in found.of("payments-db")} == {
            "pool", "latency", "cpu", "memory",
        }  # fmt: skip
        best = found.best("payments", "latency")
        assert best is not None
        assert (best.name, best.unit, best.reading) == (P99, "seconds", "gauge")

    async def test_spacing_is_learned_from_samples(self, metrics: Metrics, hour: Interval) -> None:
        found = await metrics.discover(PRODUCTS, hour)
        assert {signal.spacing_s for signal in found.signals} == {60.0}

    async def test_product_without_metrics_is_named(self, metrics: Metrics, hour: Interval) -> None:
        found = await metrics.discover(["payments", "nowhere"], hour)
        assert list(found.without) == ["nowhere"]
        assert found.of("nowhere") == []

    async def test_no_name_means_all_products(self, metrics: Metrics, hour: Interval) -> None:
        found = await metrics.discover([], hour)
        assert set(PRODUCTS) <= set(found.products)
        assert list(found.without) == []

    async def test_product_label_is_reported(self, metrics: Metrics, hour: Interval) -> None:
        found = await metrics.discover(PRODUCTS, hour)
        assert found.labels == {"service": len(PRODUCTS)}

    async def test_sweep_reads_the_same_as_a_single_query(
        self, metrics: Metrics, hour: Interval
    ) -> None:
        found = await metrics.discover(PRODUCTS, hour)
        swept = await metrics.sweep(SweepQuery(found.signals, hour, 60.0))
        by_place = {(one.signal, one.product): one.points for one in swept.series}
        alone = await metrics.query_range(MetricQuery("payments", P99, hour, step_s=60.0))
        read: list[tuple[object, object]] = [*by_place[P99, "payments"]]
        assert read == [
            (at.timestamp(), pytest.approx(value)) for at, value in alone.series[0].points
        ]
        assert set(by_place) == {(s.name, product) for s in found.signals for product in s.places}

    async def test_every_listed_name_can_be_read_alone(
        self, metrics: Metrics, hour: Interval
    ) -> None:
        found = await metrics.discover(PRODUCTS, hour)
        unread = [
            (signal.name, product)
            for signal in found.signals
            for product in signal.products
            if not (await read_metric(metrics, MetricQuery(product, signal.name, hour))).series
        ]
        assert unread == []

    async def test_sweep_covers_only_the_requested_products(
        self, metrics: Metrics, hour: Interval
    ) -> None:
        found = await metrics.discover(PRODUCTS, hour)
        swept = await metrics.sweep(SweepQuery(found.signals, hour, 60.0, ["checkout"]))
        assert {one.product for one in swept.series} == {"checkout"}

    async def test_empty_range_is_refused(self, metrics: Metrics) -> None:
        nothing = Interval(self.NOW, self.NOW)
        with pytest.raises(InvalidArguments, match="empty"):
            await metrics.discover(PRODUCTS, nothing)
        with pytest.raises(InvalidArguments, match="empty"):
            await metrics.sweep(SweepQuery([], nothing, 60.0))
