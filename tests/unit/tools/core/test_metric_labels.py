"""A sweep names the label that explains what moved most, and reads little for it."""

from datetime import timedelta

import orjson
import pytest

from adapters.recorded.packs.recording import RecordedSeries
from adapters.recorded.player.metrics import RecordedMetrics
from adapters.recorded.player.signals import PackSeries
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.set_clock import SetClock
from tests.fakes.tools import bench
from tests.packs import NOW
from tools.capabilities import Interval, MetricResult
from tools.core.metric_labels import MOST_READ
from tools.core.sweep_metrics import SweepMetrics
from tools.errors import UpstreamFailed


class CountingMetrics(RecordedMetrics):
    """Counts the queries for single series; with `fails` it answers none."""

    queries = 0
    fails = False

    async def promql(
        self, text: str, interval: Interval, step_s: float | None, *, instant: bool = False
    ) -> MetricResult:
        self.queries += 1
        if self.fails:
            raise UpstreamFailed("too busy", status=503)
        return await super().promql(text, interval, step_s, instant=instant)


def series(product: str, then: float, **labels: str) -> RecordedSeries:
    points = [
        (
            (NOW - timedelta(minutes=minute)).timestamp(),
            (then if minute < 20 else 60.0) * (1 + (minute % 7) / 100),
        )
        for minute in range(180, -1, -1)
    ]
    return RecordedSeries("took_p95", {"svc": product, **labels}, None, points)


async def only_at(metrics: RecordedMetrics, *products: str) -> dict[str, str | None]:
    outcome = await bench([SweepMetrics()], caps=fake_capabilities(metrics=metrics)).run(
        "{}", SweepMetrics.contract.id, now=NOW, products=products
    )
    assert outcome.record.ok, outcome.content
    shifts = orjson.loads(outcome.content)["shifts"]
    return {one["product"]: one.get("only_at") for one in shifts if one["score"] >= 3}


PODS = [series("search", 900.0 if n == 7 else 60.0, pod=f"search-{n}") for n in range(12)]


@pytest.mark.parametrize(
    ("found", "label"),
    [
        (PODS, "pod=search-7 (1 of 12)"),
        ([series("search", 900.0, pod=f"search-{n}") for n in range(12)], None),
        ([series("search", 900.0)], None),
        (
            [series("search", 900.0, to="bank"), series("search", 60.0, to="maps")],
            "to=bank (1 of 2)",
        ),
    ],
)
async def test_the_label_that_explains_a_shift_is_named(
    found: list[RecordedSeries], label: str | None
) -> None:
    assert await only_at(RecordedMetrics(PackSeries(found), SetClock(NOW)), "search") == {
        "search": label
    }


async def test_few_queries_are_made_and_none_when_many_products_are_calm() -> None:
    products = [f"p{number}" for number in range(20)]
    moved = CountingMetrics(
        PackSeries(
            [
                series(one, 900.0 if n else 60.0, pod=f"{one}-{n}")
                for one in products
                for n in (0, 1)
            ]
        ),
        SetClock(NOW),
    )
    quiet = CountingMetrics(PackSeries([series(one, 60.0) for one in products]), SetClock(NOW))

    await only_at(moved, *products)
    await only_at(quiet, *products)

    assert (moved.queries, quiet.queries) == (MOST_READ, 0)


async def test_a_refused_label_query_keeps_the_shift() -> None:
    metrics = CountingMetrics(PackSeries(PODS), SetClock(NOW))
    metrics.fails = True

    assert await only_at(metrics, "search") == {"search": None}
