"""Deploys and the time; and what every built-in tool does when its backend fails."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson
import pytest

from tests.fakes.capabilities import (
    NOW,
    FakeDeploys,
    FakeLogs,
    FakeMetrics,
    FakeTraces,
    call_context,
    fake_capabilities,
)
from tests.fakes.tools import Bench, bench
from tools.capabilities import Deploy
from tools.core.all import core_tools
from tools.core.get_recent_deploys import NO_SOURCE, DeploysInput, GetRecentDeploys
from tools.cursor import CursorSigner
from tools.errors import UpstreamFailed

TOOLS = core_tools(CursorSigner(b"0123456789abcdef"))


def deploying(*deploys: Deploy) -> Bench:
    return bench(TOOLS, caps=fake_capabilities(deploys=FakeDeploys(deploys)))


def deploy(minutes_ago: int, product: str = "checkout", **more: Any) -> Deploy:
    return Deploy(product, f"v{minutes_ago}", NOW - timedelta(minutes=minutes_ago), **more)


async def ask(b: Bench, product: str = "checkout", time_range: str = "last 6h") -> Any:
    given = {"product": product, "time_range": time_range}
    return await b.run(orjson.dumps(given).decode(), "core__get_recent_deploys")


async def test_a_deploy_has_the_documented_shape() -> None:
    b = deploying(deploy(4, actor="ci", commit="abc", duration_s=12.0, status="rolled_back"))
    outcome = await ask(b)
    assert orjson.loads(outcome.content) == {
        "range": "2026-04-07T08:35:00Z/2026-04-07T14:35:00Z",
        "deploys": [
            {
                "ts": "2026-04-07T14:31:00Z",
                "product": "checkout",
                "version": "v4",
                "actor": "ci",
                "duration_s": 12.0,
                "status": "rolled_back",
                "commit": "abc",
                "rolled_back": True,
            }
        ],
        "truncated": False,
        "total_matches": 1,
    }
    assert outcome.summary == "1 deploy, last 6h"


async def test_a_star_means_every_product_newest_first() -> None:
    b = deploying(deploy(30), deploy(10, "payments"), deploy(20))
    outcome = await ask(b, "*")
    versions = [one["version"] for one in orjson.loads(outcome.content)["deploys"]]
    assert versions == ["v10", "v20", "v30"]
    assert outcome.summary == "3 deploys, last 6h"


async def test_no_deploys_is_an_answer() -> None:
    outcome = await ask(deploying(deploy(600)))
    assert outcome.summary == "no deploys, last 6h"


async def test_more_than_a_hundred_deploys_are_cut_and_counted() -> None:
    body = orjson.loads((await ask(deploying(*(deploy(n) for n in range(1, 151))))).content)
    assert (len(body["deploys"]), body["truncated"], body["total_matches"]) == (100, True, 150)


async def test_the_time_comes_from_the_clock() -> None:
    outcome = await bench(TOOLS).run("", "core__get_current_time")
    assert orjson.loads(outcome.content) == {"now": "2026-04-07T14:35:00Z", "timezone": "UTC"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("core__get_logs", {"product": "checkout", "time_range": "30m"}),
        ("core__get_metrics", {"product": "checkout", "metric_name": "m", "time_range": "30m"}),
        ("core__compare_to_baseline", {"product": "c", "metric_name": "m", "time_range": "30m"}),
        ("core__get_traces", {"request_id": "abc"}),
        ("core__get_recent_deploys", {"product": "checkout", "time_range": "30m"}),
    ],
)
async def test_a_backend_that_fails_is_quoted_redacted(
    name: str, arguments: dict[str, object]
) -> None:
    down = UpstreamFailed("no healthy hosts, token SECRET-1", 503)
    caps = fake_capabilities(
        logs=FakeLogs(failure=down),
        metrics=FakeMetrics(failure=down),
        traces=FakeTraces(failure=down),
        deploys=FakeDeploys(failure=down),
    )
    outcome = await bench(TOOLS, caps=caps).run(orjson.dumps(arguments).decode(), name)
    assert orjson.loads(outcome.content) == {
        "error": "upstream",
        "message": "upstream: 503 no healthy hosts, token [redacted]",
    }


@pytest.mark.parametrize(
    ("deploys", "rollouts", "says"),
    [
        ((), None, True),
        ((Deploy("cart", "v1", NOW - timedelta(days=40)),), None, False),
        ((), FakeDeploys(), False),
    ],
    ids=["nothing connected", "an old deploy of another product", "a cluster"],
)
async def test_a_missing_deploy_source_is_reported(
    deploys: Sequence[Deploy], rollouts: FakeDeploys | None, says: bool
) -> None:
    caps = fake_capabilities(deploys=FakeDeploys(deploys), rollouts=rollouts)
    arguments = DeploysInput.model_validate({"product": "checkout", "time_range": "last 6h"})
    found = await GetRecentDeploys().execute(arguments, call_context(now=NOW), caps)
    assert (NO_SOURCE in (found.notes or ())) is says
    assert GetRecentDeploys().summarise(found, arguments) == (
        "no deploy source is connected" if says else "no deploys, last 6h"
    )
