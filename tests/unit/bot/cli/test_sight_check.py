"""`kortex check` shows what a label or a selector matched."""

from collections.abc import Sequence
from datetime import timedelta

from bot.app.backend_selection import Observed
from bot.cli.check.observe import matched_products
from bot.settings.named_backends import FAMILIES, Family
from bot.settings.observe import ObserveSettings
from tests.fakes.capabilities import NOW, FakeLogs, FakeMetrics
from tools.capabilities import LogLine, Logs, Metrics, Series
from tools.errors import UpstreamFailed

SETTINGS = ObserveSettings.model_validate(
    {"logs": {"kind": "loki"}, "metrics": {"kind": "prometheus"}}
)
FLAT = [Series({}, [(NOW - timedelta(minutes=1), 1.0)])]
LOGS = FakeLogs({"checkout": [LogLine(1, "info", "h", "x")], "cart": []})
METRICS = FakeMetrics({("checkout", "depth"): FLAT})


def observed(logs: Logs | None = LOGS, metrics: Metrics | None = METRICS) -> Observed:
    nothing = dict.fromkeys(Observed.__dataclass_fields__)
    return Observed(**{**nothing, "logs": logs, "metrics": metrics})  # type: ignore[arg-type]


def named(*products: str) -> dict[Family, Sequence[str]]:
    return dict.fromkeys(FAMILIES, products)


async def test_matched_products_are_counted_and_unmatched_ones_named() -> None:
    logs, metrics, checkout = await matched_products(
        SETTINGS, observed(), named("checkout", "cart", "nope"), NOW
    )
    assert (logs.ok, logs.detail) == (
        True, "loki answers; 2 of 3 products have logs, by service; none of nope",
    )  # fmt: skip
    assert "1 of 3 products have metrics" in metrics.detail
    assert checkout.part == "metrics of checkout"
    assert "1 others; no traffic, errors, latency" in checkout.detail


async def test_products_with_the_same_signals_share_a_line() -> None:
    alike = [f"p{number}" for number in range(5)]
    metrics = FakeMetrics(
        {**{(one, "depth"): FLAT for one in alike}, ("own", "depth"): FLAT, ("own", "size"): FLAT}
    )

    _logs, _metrics, *measured = await matched_products(
        SETTINGS, observed(metrics=metrics), named("own", *alike), NOW
    )

    assert [each.part for each in measured] == [
        "metrics of own",
        "metrics of p0, p1, p2 and 2 more",
    ]


async def test_label_that_matches_nothing_fails() -> None:
    logs, metrics = await matched_products(SETTINGS, observed(), named("nope"), NOW)
    assert (logs.fails, metrics.fails) == (True, True)
    assert logs.detail == (
        "loki answers; 0 of 1 products have logs; none of nope; it has checkout, cart"
    )
    assert metrics.detail.endswith("; it has checkout")
    assert "add [observe.logs.NAME]" in logs.mend
    assert "add [observe.metrics.NAME]" in metrics.mend


async def test_empty_backend_without_named_products_is_only_a_warning() -> None:
    logs, metrics = await matched_products(
        SETTINGS, observed(FakeLogs(), FakeMetrics()), named(), NOW
    )
    assert (logs.fails, logs.mark, metrics.mark) == (False, "WARNING", "WARNING")


async def test_failing_backend_has_its_reason() -> None:
    broken = FakeMetrics(failure=UpstreamFailed("no org id", 401))
    _logs, metrics = await matched_products(
        SETTINGS, observed(metrics=broken), named("checkout"), NOW
    )
    assert (metrics.ok, "no org id" in metrics.detail) == (False, True)


async def test_slow_backend_is_reported_as_timed_out() -> None:
    silent = FakeMetrics(failure=TimeoutError())
    _logs, metrics = await matched_products(
        SETTINGS, observed(metrics=silent), named("checkout"), NOW
    )
    assert metrics.detail == "prometheus: no answer within 7 s"


async def test_unconfigured_backend_is_not_a_failure() -> None:
    found = await matched_products(SETTINGS, observed(None, None), named("checkout"), NOW)
    assert [one.fails for one in found] == [False, False]
