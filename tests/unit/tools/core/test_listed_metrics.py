"""Every name that find_metrics lists can be given to get_metrics and to compare_to_baseline."""

from collections.abc import Sequence
from datetime import timedelta

import orjson
import pytest

from adapters.recorded.packs.recording import RecordedSeries
from adapters.recorded.player.metrics import RecordedMetrics
from adapters.recorded.player.signals import PackSeries
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.set_clock import SetClock
from tests.fakes.tools import Bench, bench
from tests.packs import NOW
from tools.core.compare_to_baseline import CompareToBaseline
from tools.core.find_metrics import FindMetrics
from tools.core.metric_series import GetMetrics


def recorded(name: str, rate: float = 0.0, **labels: str) -> RecordedSeries:
    """Two hours of a gauge of 3 or of a counter that grows by `rate` a minute."""
    points = [
        ((NOW - timedelta(minutes=minute)).timestamp(), (120 - minute) * rate or 3.0)
        for minute in range(120, -1, -1)
    ]
    return RecordedSeries(name, {"service": "checkout", **labels}, None, points)


POOL = [recorded("hikaricp_connections_active"), recorded("hikaricp_connections_max")]
FAILURES = [
    recorded("http_requests_total", 600.0, code="200"),
    recorded("http_requests_total", 6.0, code="500"),
]
TIMER = [recorded("task_duration_seconds_sum", 90.0), recorded("task_duration_seconds_count", 30.0)]
HISTOGRAM = [
    recorded("rpc_duration_seconds_bucket", rate, le=le)
    for le, rate in (("0.1", 10.0), ("1", 29.0), ("+Inf", 30.0))
]


def tools_over(series: Sequence[RecordedSeries]) -> Bench:
    metrics = RecordedMetrics(PackSeries(series), SetClock(NOW))
    return bench(
        [FindMetrics(), GetMetrics(), CompareToBaseline()], caps=fake_capabilities(metrics=metrics)
    )


async def answer(tools: Bench, tool: str, **arguments: object) -> dict[str, object]:
    given = orjson.dumps({"product": "checkout", "time_range": "last 30m", **arguments}).decode()
    outcome = await tools.run(given, f"core__{tool}", now=NOW)
    assert outcome.record.ok, outcome.content
    body: dict[str, object] = orjson.loads(outcome.content)
    return body


@pytest.mark.parametrize(
    ("series", "name"),
    [
        (POOL, "hikaricp_connections_active_ratio"),
        (FAILURES, "http_requests_total_error_ratio"),
        (TIMER, "task_duration_seconds_mean"),
        (HISTOGRAM, "rpc_duration_seconds_p99"),
    ],
)
async def test_a_listed_name_can_be_read_and_compared(
    series: Sequence[RecordedSeries], name: str
) -> None:
    tools = tools_over(series)
    found = await answer(tools, "find_metrics")
    read = await answer(tools, "get_metrics", metric_name=name)
    compared = await answer(tools, "compare_to_baseline", metric_name=name)

    assert name in str(found["found"])
    assert read["samples"]
    assert compared["window_mean"] is not None


async def test_a_ratio_cannot_be_filtered_by_labels_and_says_so() -> None:
    read = await answer(
        tools_over(POOL),
        "get_metrics",
        metric_name="hikaricp_connections_active_ratio",
        labels={"service": "checkout"},
    )

    assert read["samples"] == []
    assert "ask without labels" in str(read["notes"])
