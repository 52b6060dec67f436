"""The traces contract on real stores, given by their addresses.

`KORTEX_TEST_OTLP_URL` is where spans are pushed (OTLP over HTTP, `http://127.0.0.1:4318`), and
`KORTEX_TEST_JAEGER_URL` or `KORTEX_TEST_TEMPO_URL` where the same store is asked for them.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from adapters.http.client import http_client
from adapters.observe.jaeger import JaegerTraces
from adapters.observe.tempo import TempoTraces
from adapters.recorded.simulator.dataset import floored_to_minute
from tests.fakes.trace_shapes import otlp_json, same
from tests.fixtures_traces_contract import TracesContract, contract_traces
from tools.capabilities import Trace, Traces

NOW = floored_to_minute(datetime.now(UTC))
ARRIVAL_S = 20.0

pytestmark = [
    pytest.mark.backends,
    pytest.mark.skipif(
        "KORTEX_TEST_OTLP_URL" not in os.environ, reason="KORTEX_TEST_OTLP_URL is not set"
    ),
]


async def pushed(traces: list[Trace]) -> None:
    async with http_client(base_url=os.environ["KORTEX_TEST_OTLP_URL"]) as client:
        for trace in traces:
            body = {"resourceSpans": otlp_json(trace, same, enums_as_words=False)}
            (await client.post("/v1/traces", json=body)).raise_for_status()


async def arrived(traces: Traces, trace: Trace) -> None:
    async with asyncio.timeout(ARRIVAL_S):
        while await traces.get(trace.trace_id) is None:  # noqa: ASYNC110 - a store cannot tell us
            await asyncio.sleep(0.5)


class RealTraces(TracesContract):
    @pytest.fixture
    def now(self) -> datetime:
        return NOW


@pytest.mark.skipif("KORTEX_TEST_JAEGER_URL" not in os.environ, reason="no Jaeger is given")
class TestJaeger(RealTraces):
    @pytest.fixture(params=["v1", "v3"])
    async def traces(self, request: pytest.FixtureRequest) -> AsyncIterator[Traces]:
        known = contract_traces(NOW)
        await pushed(known)
        async with http_client(base_url=os.environ["KORTEX_TEST_JAEGER_URL"]) as client:
            traces = JaegerTraces(client, request.param)
            await arrived(traces, known[-1])
            yield traces


@pytest.mark.skipif("KORTEX_TEST_TEMPO_URL" not in os.environ, reason="no Tempo is given")
class TestTempo(RealTraces):
    @pytest.fixture
    async def traces(self) -> AsyncIterator[Traces]:
        known = contract_traces(NOW)
        await pushed(known)
        async with http_client(base_url=os.environ["KORTEX_TEST_TEMPO_URL"]) as client:
            traces = TempoTraces(client)
            await arrived(traces, known[-1])
            yield traces
