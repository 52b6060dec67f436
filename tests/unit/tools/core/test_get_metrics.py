"""Series thinned to what can be read, with statistics of everything."""

from datetime import timedelta

import orjson
import pytest

from tests.fakes.capabilities import NOW, FakeMetrics, fake_capabilities
from tests.fakes.tools import Bench, bench
from tools.capabilities import Series
from tools.core.metric_series import GetMetrics
from tools.records import ToolOutcome


def course(values: list[float | None], **labels: str) -> Series:
    begin = NOW - timedelta(minutes=len(values))
    points = [(begin + timedelta(minutes=i), value) for i, value in enumerate(values)]
    return Series(labels, points)


def metrics_bench(*series: Series, **options: object) -> tuple[Bench, FakeMetrics]:
    metrics = FakeMetrics({("checkout", "latency_seconds"): series}, **options)  # type: ignore[arg-type]
    return bench([GetMetrics()], caps=fake_capabilities(metrics=metrics)), metrics


async def ask(b: Bench, **arguments: object) -> ToolOutcome:
    given = {
        "product": "checkout",
        "metric_name": "latency_seconds",
        "time_range": "last 10m",
        **arguments,
    }
    return await b.run(orjson.dumps(given).decode(), "core__get_metrics")


async def test_a_series_has_the_documented_shape() -> None:
    b, _ = metrics_bench(course([0.123456, None, 0.5], pod="p1"), unit="seconds")
    outcome = await ask(b)
    assert orjson.loads(outcome.content) == {
        "range": "2026-04-07T14:25:00Z/2026-04-07T14:35:00Z",
        "step_s": 60.0,
        "unit": "seconds",
        "labels": {"pod": "p1"},
        "stats": {
            "min": 0.1235,
            "max": 0.5,
            "mean": 0.3117,
            "p50": 0.3117,
            "p95": 0.4812,
            "p99": 0.4962,
        },
        "gaps": 1,
        "samples": [
            {"ts": "2026-04-07T14:32:00Z", "value": 0.1235},
            {"ts": "2026-04-07T14:34:00Z", "value": 0.5},
        ],
        "truncated": False,
    }
    assert outcome.summary == "latency_seconds: 1 series, max 0.5 seconds"


async def test_a_long_series_is_thinned_and_keeps_its_extremes() -> None:
    b, _ = metrics_bench(course([*[1.0] * 500, 99.0, *[1.0] * 500, -5.0]))
    body = orjson.loads((await ask(b, time_range="last 1d")).content)
    values = [sample["value"] for sample in body["samples"]]
    assert len(values) <= 60
    assert (min(values), max(values)) == (-5.0, 99.0)


async def test_many_series_share_the_points_and_the_highest_are_shown() -> None:
    many = [course([float(n)] * 100, pod=f"p{n}") for n in range(200)]
    b, _ = metrics_bench(*many)
    outcome = await ask(b, time_range="last 2h")
    body = orjson.loads(outcome.content)
    assert [one["labels"]["pod"] for one in body["series"]][:2] == ["p199", "p198"]
    assert (len(body["series"]), body["truncated"]) == (20, True)
    assert body["notes"] == ["200 series, the 20 with the highest maximum are shown"]
    assert outcome.record.bytes < 32_000


async def test_a_missing_metric_is_reported_as_missing() -> None:
    b, _ = metrics_bench()
    outcome = await ask(b, metric_name="latency_secnods")
    assert orjson.loads(outcome.content)["notes"] == ["no metric latency_secnods exists"]
    assert outcome.summary == "latency_secnods: no data, last 10m"


async def test_an_empty_result_always_has_a_note() -> None:
    b, _ = metrics_bench()
    body = orjson.loads((await ask(b)).content)
    assert body["notes"] == ["no series matched; the metric's name or labels may be wrong"]
    assert (body["samples"], body["truncated"]) == ([], False)


async def test_step_and_labels_reach_the_backend() -> None:
    b, metrics = metrics_bench()
    await ask(b, step="5m", labels={"pod": "p1"})
    assert (metrics.queries[0].step_s, metrics.queries[0].labels) == (300.0, {"pod": "p1"})


@pytest.mark.parametrize(
    "arguments",
    [
        {"step": "soon"},
        {"step": "0s"},
        {"step": "2d"},
        {"step": "1mo"},
        {"step": "999999999w"},
        {"labels": {'a"} or up{b': "x"}},
        {"labels": {"a": 1}},
        {"metric_name": "rate(x[5m])"},
        {"metric_name": ""},
    ],
)
async def test_arguments_outside_the_contract_do_not_reach_the_backend(
    arguments: dict[str, object],
) -> None:
    b, metrics = metrics_bench()
    assert orjson.loads((await ask(b, **arguments)).content)["error"] == "validation"
    assert metrics.queries == []
