"""`kortex check` reads what an action is to be judged by."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.actions.catalog import ActionRule
from bot.cli.check.actions import check_effects
from bot.reports.finding import Finding
from tests.fakes.capabilities import NOW, FakeMetrics
from tests.fixtures_actions import ROLLBACK
from tools.capabilities import Series
from tools.errors import UpstreamFailed

P99 = "http_request_duration_seconds_p99"
BARE = "http_request_duration_seconds"
FLAT = [Series({}, [(NOW - timedelta(minutes=1), 1.0)])]
OLD = [Series({}, [(NOW - timedelta(minutes=45), 1.0)])]
METRICS = FakeMetrics({("checkout", P99): FLAT, ("checkout", "depth"): FLAT})


def verified_by(metric: str) -> ActionRule:
    return replace(ROLLBACK, products=("checkout",), verify_metric=metric)


async def found(
    metric: str, metrics: FakeMetrics | None = METRICS, products: Sequence[str] = ("checkout",)
) -> Sequence[Finding]:
    return await check_effects([verified_by(metric)], products, metrics, NOW)


async def test_a_metric_without_data_gets_a_warning_with_the_known_names() -> None:
    (told,) = await found(BARE)

    assert told.mark == "WARNING"
    assert told.detail == (
        f"rollback-deploy: verify_metric {BARE}: no data of checkout in the last half hour; "
        f"its metrics are depth, {P99}"
    )


async def test_a_metric_without_samples_for_half_an_hour_gets_a_warning() -> None:
    (told,) = await found(P99, FakeMetrics({("checkout", P99): OLD}))

    assert told.warning


async def test_a_product_without_metrics_is_skipped_for_one_with_some() -> None:
    metrics = FakeMetrics({("cart", "depth"): FLAT})
    rule = replace(verified_by(BARE), products=("*",))

    (told,) = await check_effects([rule], ("nope", "cart"), metrics, NOW)

    assert "no data of cart" in told.detail


@pytest.mark.parametrize(
    ("metric", "metrics", "products"),
    [
        (P99, METRICS, ("checkout",)),
        ("", METRICS, ("checkout",)),
        (BARE, None, ("checkout",)),
        (BARE, METRICS, ("cart",)),
        (BARE, FakeMetrics(), ("checkout",)),
        (BARE, FakeMetrics(failure=UpstreamFailed("no org id", 401)), ("checkout",)),
        (BARE, FakeMetrics(failure=TimeoutError()), ("checkout",)),
    ],
    ids=["read", "unset", "no store", "other products", "no metrics", "refused", "silent"],
)
async def test_a_readable_or_uncheckable_metric_gets_no_warning(
    metric: str, metrics: FakeMetrics | None, products: Sequence[str]
) -> None:
    assert await found(metric, metrics, products) == []
