"""What every metrics backend must do, as one suite; a subclass provides the `metrics` fixture.

The backend holds `contract_series()`: one value a minute for two hours before `NOW`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.scenario import INCIDENTS
from tests.fakes.prometheus_server import StoredSeries
from tools.capabilities import Interval, MetricQuery, Metrics
from tools.errors import InvalidArguments

P99 = "http_request_duration_seconds_p99"
PRODUCTS = ("checkout", "payments", "payments-db")


def contract_dataset(now: datetime) -> Dataset:
    return Dataset(INCIDENTS["saturated-dependency"](now), now, 11)


def contract_series(now: datetime) -> Sequence[StoredSeries]:
    """The samples of a few products, one a minute on the minute, from 2 h before until now."""
    data = contract_dataset(now)
    instants = [now - timedelta(minutes=number) for number in range(120, -1, -1)]
    return [
        StoredSeries(
            metric,
            {"service": product, "env": "prod"},
            [(at.timestamp(), data.value(product, metric, at) or 0.0) for at in instants],
        )
        for product in PRODUCTS
        for metric in data.metrics(product)
    ]


class MetricsContract:
    """Run against every implementation."""

    NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)

    @pytest.fixture
    def now(self) -> datetime:
        return self.NOW

    async def test_points_are_the_samples_in_order_without_the_end(
        self, metrics: Metrics, now: datetime
    ) -> None:
        start = now - timedelta(minutes=30)
        query = MetricQuery("payments", P99, Interval(start, now), step_s=60)
        result = await metrics.query_range(query)
        data = contract_dataset(now)
        instants = [start + timedelta(minutes=number) for number in range(30)]
        assert len(result.series) == 1
        points = result.series[0].points
        assert [at for at, _value in points] == instants
        assert [value for _at, value in points] == pytest.approx(
            [data.value("payments", P99, at) for at in instants], rel=1e-9
        )
        assert result.step_s == 60
        assert list(result.notes) == []

    async def test_labels_name_the_series_but_not_its_metric(
        self, metrics: Metrics, now: datetime
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        result = await metrics.query_range(MetricQuery("payments", P99, interval))
        assert dict(result.series[0].labels) == {"service": "payments", "env": "prod"}

    @pytest.mark.parametrize(
        ("product", "metric", "unit"),
        [
            ("payments", P99, "seconds"),
            ("payments", "http_request_error_ratio", "ratio"),
            ("payments-db", "db_query_duration_seconds_p99", "seconds"),
            ("payments", "http_requests_per_second", "per second"),
        ],
    )
    async def test_unit_comes_from_the_name(
        self, metrics: Metrics, now: datetime, product: str, metric: str, unit: str
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        result = await metrics.query_range(MetricQuery(product, metric, interval))
        assert len(result.series) == 1
        assert result.unit == unit

    async def test_matching_label_selects_series(self, metrics: Metrics, now: datetime) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        result = await metrics.query_range(MetricQuery("payments", P99, interval, {"env": "prod"}))
        assert len(result.series) == 1

    async def test_label_without_series_says_that_the_metric_exists(
        self, metrics: Metrics, now: datetime
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        query = MetricQuery("payments", P99, interval, {"env": "staging"})
        result = await metrics.query_range(query)
        assert list(result.series) == []
        assert f"metric {P99} exists" in result.notes[-1]

    async def test_unknown_metric_lists_the_products_metrics(
        self, metrics: Metrics, now: datetime
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        result = await metrics.query_range(MetricQuery("payments-db", P99, interval))
        assert list(result.series) == []
        assert f"metric {P99} does not exist for product payments-db; it has: " in result.notes[-1]
        assert "db_query_duration_seconds_p99" in result.notes[-1]

    async def test_label_value_cannot_widen_the_query(
        self, metrics: Metrics, now: datetime
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        query = MetricQuery("payments", P99, interval, {"env": 'x"} or {service="checkout'})
        assert list((await metrics.query_range(query)).series) == []

    async def test_step_fits_the_range(self, metrics: Metrics, now: datetime) -> None:
        interval = Interval(now - timedelta(hours=24), now)
        result = await metrics.query_range(MetricQuery("payments", P99, interval))
        assert result.step_s in {288, 300}  # CloudWatch has whole minutes
        assert 0 < len(result.series[0].points) <= 300

    async def test_too_fine_step_is_raised_with_a_note(
        self, metrics: Metrics, now: datetime
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        result = await metrics.query_range(MetricQuery("payments", P99, interval, step_s=1))
        assert result.step_s in {15, 60}
        assert "step raised" in result.notes[0]

    @pytest.mark.parametrize(("instant", "number"), [(False, 10), (True, 1)])
    async def test_selector_is_a_valid_query(
        self, metrics: Metrics, now: datetime, instant: bool, number: int
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        text = f'{P99}{{service="payments"}}'
        result = await metrics.promql(text, interval, 60.0, instant=instant)
        assert [dict(one.labels) for one in result.series] == [
            {"service": "payments", "env": "prod"}
        ]
        assert len(result.series[0].points) == number

    async def test_unreadable_query_is_refused_with_a_message(
        self, metrics: Metrics, now: datetime
    ) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        with pytest.raises(InvalidArguments, match="query"):
            await metrics.promql("sum by (", interval, 60.0)

    async def test_query_without_a_match_says_so(self, metrics: Metrics, now: datetime) -> None:
        interval = Interval(now - timedelta(minutes=10), now)
        result = await metrics.promql('no_such{service="payments"}', interval, 60.0)
        assert list(result.series) == []
        assert "nothing" in result.notes[-1]

    async def test_empty_range_is_refused(self, metrics: Metrics, now: datetime) -> None:
        with pytest.raises(InvalidArguments, match="empty"):
            await metrics.query_range(MetricQuery("payments", P99, Interval(now, now)))
