"""One scrape and one probe speak for all workers of a service."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
from aiohttp import ClientSession, web
from prometheus_client.parser import text_string_to_metric_families

from bot.telemetry.metrics import Metrics
from bot.web.health import Check, Note, healthz, readyz
from bot.web.listener import serving
from bot.web.reserved import reserved
from bot.web.server import metrics_endpoint
from bot.web.siblings import LOOPBACK, SiblingCalls, Siblings


def app_of(metrics: Metrics, check: Check) -> web.Application:
    """What a worker says for itself."""
    app = web.Application()
    app.router.add_get("/metrics", metrics_endpoint(metrics.registry))
    app.router.add_get("/readyz", readyz({"database": check}))
    app.router.add_get("/healthz", healthz)
    return app


async def well() -> None:
    """Nothing to say."""


async def ill() -> str:
    """Something."""
    return "cannot be reached"


@asynccontextmanager
async def asking(*others: Check | None) -> AsyncIterator[SiblingCalls]:
    """Worker 0, with others of which those that are None do not listen."""
    async with AsyncExitStack() as stack:
        ports = [stack.enter_context(reserved(LOOPBACK, 0)) for _ in range(1 + len(others))]
        for number, check in enumerate(others, start=1):
            if check is not None:
                metrics = Metrics()
                metrics.turn_ended(f"of {number}")
                app = app_of(metrics, check)
                await stack.enter_async_context(
                    serving(app, LOOPBACK, ports[number], is_shared=True)
                )
        calls = SiblingCalls(Siblings(0, 0, ports))
        stack.push_async_callback(calls.close)
        yield calls


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ([well], None),
        ([well, None], Note("2 of 3 workers answer")),
        ([well, ill], "worker 2: database: cannot be reached"),
        ([None, ill], "worker 2: database: cannot be reached"),
    ],
)
async def test_a_worker_that_is_ill_is_told_and_one_that_is_away_noted(
    others: list[Check | None], told: str | Note | None
) -> None:
    async with asking(*others) as calls:
        assert await calls.readiness() == told


async def test_a_scrape_has_the_samples_of_all_by_worker() -> None:
    own = Metrics()
    own.turn_ended("of 0")
    async with asking(well, None, well) as calls, ClientSession() as session:
        app = web.Application()
        app.router.add_get("/metrics", calls.metrics(own.registry))
        async with serving(app, LOOPBACK, 0) as port:
            text = await (await session.get(f"http://{LOOPBACK}:{port}/metrics")).text()

    families = {family.name: family for family in text_string_to_metric_families(text)}
    turns = {
        (each.labels["worker"], each.labels["end"]): each.value
        for each in families["kortex_turns"].samples
        if each.name == "kortex_turns_total"
    }
    assert turns == {("0", "of 0"): 1, ("1", "of 1"): 1, ("3", "of 3"): 1}
    assert text.count("# TYPE kortex_turns_total ") == 1
    assert families["kortex_tool_seconds"].type == "histogram"
