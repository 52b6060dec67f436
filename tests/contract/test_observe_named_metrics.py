"""Backends that are asked by name and labels keep the contracts of metrics and of signals."""

from collections.abc import AsyncIterator

import pytest
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.cloudwatch_metrics import CloudWatchMetrics
from adapters.observe.datadog import Datadog
from adapters.observe.named_metrics import NamedMetrics
from tests.fakes.aws import cloudwatch
from tests.fakes.cloudwatch_server import CloudWatchServer
from tests.fakes.datadog_server import DatadogServer
from tests.fakes.set_clock import SetClock
from tests.fixtures_metrics_contract import MetricsContract, contract_series
from tests.fixtures_signals_contract import SignalsContract
from tools.capabilities import Metrics

NOW = MetricsContract.NOW


class OnDatadog:
    @pytest.fixture
    async def metrics(self) -> AsyncIterator[Metrics]:
        app = DatadogServer(contract_series(NOW)).app()
        async with TestServer(app) as server, http_client(base_url=str(server.make_url("/"))) as c:
            yield NamedMetrics(Datadog(c), SetClock(NOW))


class OnCloudWatch:
    @pytest.fixture
    async def metrics(self) -> AsyncIterator[Metrics]:
        app = CloudWatchServer(contract_series(NOW)).app()
        async with TestServer(app) as server, http_client(base_url=str(server.make_url("/"))) as c:
            yield NamedMetrics(CloudWatchMetrics(cloudwatch(c)), SetClock(NOW))


class TestDatadog(OnDatadog, MetricsContract):
    pass


class TestCloudWatch(OnCloudWatch, MetricsContract):
    pass


class TestCloudWatchSignals(OnCloudWatch, SignalsContract):
    pass


class TestDatadogSignals(OnDatadog, SignalsContract):
    pass
