"""Recorded traces, Jaeger, VictoriaTraces and Tempo keep the same contract."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from adapters.http.client import http_client
from adapters.observe.jaeger import JaegerTraces
from adapters.observe.tempo import TempoTraces
from adapters.recorded.player.traces import RecordedTraces
from adapters.recorded.simulator.backends import SimulatedTraces
from adapters.recorded.simulator.dataset import Dataset
from adapters.recorded.simulator.scenario import INCIDENTS
from tests.fakes.jaeger_server import JaegerServer
from tests.fakes.set_clock import SetClock
from tests.fakes.tempo_server import TempoServer
from tests.fixtures_traces_contract import TracesContract, contract_traces
from tools.capabilities import Traces

Serve = Callable[[web.Application], Awaitable[TestServer]]


@pytest.fixture
def now() -> datetime:
    return datetime(2026, 11, 21, 14, 3, tzinfo=UTC)


class TestRecordedTraces(TracesContract):
    @pytest.fixture
    def traces(self, now: datetime) -> Traces:
        data = Dataset(INCIDENTS["bad-deploy"](now), now, 11)
        return RecordedTraces(SimulatedTraces(data), SetClock(now))


class TestJaegerV1(TracesContract):
    @pytest.fixture
    async def traces(self, now: datetime, aiohttp_server: Serve) -> AsyncIterator[Traces]:
        server = await aiohttp_server(JaegerServer(contract_traces(now)).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield JaegerTraces(client)


class TestJaegerV3(TracesContract):
    @pytest.fixture
    async def traces(self, now: datetime, aiohttp_server: Serve) -> AsyncIterator[Traces]:
        server = await aiohttp_server(JaegerServer(contract_traces(now)).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield JaegerTraces(client, "v3")


class TestVictoriaTraces(TracesContract):
    @pytest.fixture
    async def traces(self, now: datetime, aiohttp_server: Serve) -> AsyncIterator[Traces]:
        server = await aiohttp_server(JaegerServer(contract_traces(now), victoria=True).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield JaegerTraces(client)


class TestTempo(TracesContract):
    @pytest.fixture
    async def traces(self, now: datetime, aiohttp_server: Serve) -> AsyncIterator[Traces]:
        server = await aiohttp_server(TempoServer(contract_traces(now)).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield TempoTraces(client, again_after_s=0)


class TestOlderTempo(TracesContract):
    @pytest.fixture
    async def traces(self, now: datetime, aiohttp_server: Serve) -> AsyncIterator[Traces]:
        server = await aiohttp_server(TempoServer(contract_traces(now), has_v2=False).app())
        async with http_client(base_url=str(server.make_url("/"))) as client:
            yield TempoTraces(client, again_after_s=0)
