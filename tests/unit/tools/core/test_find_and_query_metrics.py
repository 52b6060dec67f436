"""What there is to read, and queries in the backend's own language."""

from datetime import timedelta

import orjson
import pytest

from tests.fakes.capabilities import NOW, FakeMetrics, fake_capabilities
from tests.fakes.tools import bench
from tools.capabilities import Series
from tools.core.find_metrics import FindMetrics
from tools.core.metric_series import QueryMetrics
from tools.errors import InvalidArguments
from tools.records import ToolOutcome

FLAT = [Series({"pod": "a"}, [(NOW - timedelta(minutes=n), 2.0) for n in range(30, 0, -1)])]
METRICS = {("checkout", "queue_depth"): FLAT, ("payments", "p99"): FLAT, ("secret", "p99"): FLAT}


async def find(**arguments: object) -> ToolOutcome:
    b = bench([FindMetrics()], caps=fake_capabilities(metrics=FakeMetrics(METRICS)))
    given = orjson.dumps({"product": "checkout", **arguments}).decode()
    return await b.run(given, "core__find_metrics", products=("checkout", "payments"))


async def query(metrics: FakeMetrics, **arguments: object) -> ToolOutcome:
    b = bench([QueryMetrics()], caps=fake_capabilities(metrics=metrics))
    given = orjson.dumps({"query": "p99", "time_range": "last 30m", **arguments}).decode()
    return await b.run(given, "core__query_metrics")


async def test_metrics_of_a_product_are_listed() -> None:
    outcome = await find()
    (found,) = orjson.loads(outcome.content)["found"]
    assert found == {
        "name": "queue_depth", "role": "other", "reading": "gauge", "labels": "service",
        "samples_every_s": 60.0,
    }  # fmt: skip
    assert outcome.summary == "1 metric of checkout: other"


async def test_star_means_the_products_of_the_channel() -> None:
    found = orjson.loads((await find(product="*")).content)["found"]
    assert {(one["name"], *one["products"]) for one in found} == {
        ("queue_depth", "checkout"), ("p99", "payments"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "number"),
    [({"words": "depth"}, 1), ({"words": "nothing"}, 0), ({"role": "latency"}, 0), ({"role": "other"}, 1)],
)  # fmt: skip
async def test_role_and_words_filter_metrics(arguments: dict[str, str], number: int) -> None:
    assert len(orjson.loads((await find(**arguments)).content)["found"]) == number


async def test_product_without_metrics_is_reported() -> None:
    body = orjson.loads((await find(product="cart")).content)
    assert body["without"] == ["cart"]
    assert "no label of any metric holds this name" in body["notes"][0]


async def test_query_result_has_the_shape_of_a_metric() -> None:
    outcome = await query(FakeMetrics(METRICS))
    body = orjson.loads(outcome.content)
    assert {one["stats"]["max"] for one in body["series"]} == {2.0}
    assert outcome.summary == "p99: 2 series, max 2"


async def test_instant_query_returns_one_value() -> None:
    body = orjson.loads((await query(FakeMetrics({("x", "p99"): FLAT}), instant=True)).content)
    assert [one["value"] for one in body["samples"]] == [2.0]


async def test_refusal_of_the_backend_is_a_readable_error() -> None:
    refused = FakeMetrics(failure=InvalidArguments("query: the backend refuses it: parse error"))
    body = orjson.loads((await query(refused)).content)
    assert (body["error"], "parse error" in body["message"]) == ("validation", True)


@pytest.mark.parametrize("text", ["", "  ", "x" * 5000])
async def test_invalid_query_is_refused(text: str) -> None:
    metrics = FakeMetrics(METRICS)
    assert orjson.loads((await query(metrics, query=text)).content)["error"] == "validation"
