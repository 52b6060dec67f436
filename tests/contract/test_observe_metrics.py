"""Recorded metrics and Prometheus keep the same contract."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.prometheus import PrometheusMetrics
from adapters.recorded.player.metrics import RecordedMetrics
from adapters.recorded.simulator.backends import SimulatedSeries
from tests.fakes.prometheus_server import PrometheusServer
from tests.fakes.set_clock import SetClock
from tests.fixtures_metrics_contract import MetricsContract, contract_dataset, contract_series
from tools.capabilities import Metrics


class TestRecordedMetrics(MetricsContract):
    @pytest.fixture
    def metrics(self, now: datetime) -> Metrics:
        return RecordedMetrics(SimulatedSeries(contract_dataset(now), SetClock(now)), SetClock(now))


class TestPrometheusStandIn(MetricsContract):
    @pytest.fixture
    async def metrics(
        self, now: datetime, aiohttp_server: Callable[[web.Application], Awaitable[TestServer]]
    ) -> AsyncIterator[Metrics]:
        server = await aiohttp_server(PrometheusServer(contract_series(now)).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield PrometheusMetrics(client, SetClock(now), "service")
