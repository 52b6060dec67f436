"""Triage over series that a test makes up, read by the real sweep: figures by the minute of two products.

As on a service with a counter of requests, one of failures, a histogram's sum and count, and a pool.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import orjson

from adapters.observe.cursor import UnsealedCodec
from adapters.recorded.packs.archive import CaseFiles
from adapters.recorded.packs.recording import read_recording
from adapters.recorded.player.backends import backends_of
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.set_clock import SetClock
from tests.fakes.tools import bench
from tests.fixtures_triage import Answer, world
from tools.core.sweep_metrics import SweepMetrics

PER_MINUTE = 2400.0  # requests
Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Minute:
    """What a product does in a minute: mean seconds, share that fails, connections in use."""

    latency: float = 0.12
    fails: float = 0.002
    pool: float = 6.0


def product(
    name: str,
    now: datetime,
    at: Callable[[datetime], Minute | None],
    hours: float = 6.0,
) -> Rows:
    """Its series up to now, a sample a minute; at None there are no samples."""
    named = {"service": name}
    samples = list(_samples(now, at, hours))

    def series(metric: str, values: Mapping[float, float], **labels: str) -> Mapping[str, object]:
        return {"name": metric, "labels": {**named, **labels}, "points": list(values.items())}

    total = {when: count for when, count, *_ in samples}
    failed = {when: bad for when, _, bad, _, _ in samples}
    return [
        series("http_request_duration_seconds_sum", {s[0]: s[3] for s in samples}),
        series("http_request_duration_seconds_count", total),
        series("http_requests_total", {w: total[w] - failed[w] for w in total}, status="200"),
        series("http_requests_total", failed, status="500"),
        series("db_pool_connections_active", {s[0]: s[4] for s in samples}),
    ]


def _samples(
    now: datetime, at: Callable[[datetime], Minute | None], hours: float
) -> Iterator[tuple[float, float, float, float, float]]:
    """When, and since the beginning: requests, failures, seconds; and the pool."""
    count = bad = seconds = 0.0
    for number in range(round(hours * 60), -1, -1):
        when = now - timedelta(minutes=number)
        does = at(when)
        share = 1 + 0.01 * (number % 5)  # never quite the same
        count += PER_MINUTE * share
        if does is None:
            continue
        bad += PER_MINUTE * does.fails * share
        seconds += PER_MINUTE * does.latency * share
        yield when.timestamp(), count, bad, seconds, does.pool


def measured(
    now: datetime,
    series: Rows,
    products: Sequence[str],
    deploys: Rows = (),
) -> Answer:
    """What tools answer where there are metrics and deploys alone."""
    case = {"id": "c", "set": "s", "asked": "?", "now": now.isoformat(), "products": products}
    files = {
        "case.json": orjson.dumps(case),
        "metrics.ndjson": b"\n".join(map(orjson.dumps, series)),
    }
    codec, clock = UnsealedCodec(), SetClock(now)
    found = backends_of(read_recording(CaseFiles("c", files)), clock, codec)
    caps = fake_capabilities(metrics=found.metrics)
    others = world(deploys=deploys)

    async def swept(arguments: Mapping[str, Any]) -> object:
        outcome = await bench([SweepMetrics()], caps=caps).run(
            orjson.dumps(dict(arguments)).decode(),
            SweepMetrics.contract.id,
            now=now,
            products=tuple(products),
        )
        return orjson.loads(outcome.content)

    def answer(tool: str, arguments: Mapping[str, Any]) -> object:
        if tool == SweepMetrics.contract.id:
            return swept(arguments)
        return others(tool, arguments)

    return answer
