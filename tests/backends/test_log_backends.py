"""The logs contract on a real Loki, given by its address: `KORTEX_TEST_LOKI_URL`.

The lines are pushed first, under a label of their own, so any Loki may be used.
"""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import httpx
import pytest

from adapters.http.client import http_client
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.loki import LokiLogs
from adapters.recorded.simulator.dataset import floored_to_minute
from tests.fixtures_logs_contract import LogsContract, contract_lines, contract_range
from tools.capabilities import LogLine, LogQuery, Logs

NOW = floored_to_minute(datetime.now(UTC))
RUN = uuid.uuid4().hex
PRODUCTS = ("inventory", "payments")
ARRIVAL_S = 20.0

pytestmark = [
    pytest.mark.backends,
    pytest.mark.skipif("KORTEX_TEST_LOKI_URL" not in os.environ, reason="no Loki is given"),
]


async def push(client: httpx.AsyncClient, product: str, lines: list[LogLine]) -> None:
    """Level and trace id as structured metadata, as OpenTelemetry's collector sends them."""
    streams = [
        {
            "stream": {"service_name": product, "host": host, "run": RUN},
            "values": [
                [str(line.ts_ns), line.message, {"detected_level": line.level} | trace_of(line)]
                for line in lines
                if line.host == host
            ],
        }
        for host in sorted({line.host for line in lines})
    ]
    (await client.post("/loki/api/v1/push", json={"streams": streams})).raise_for_status()


def trace_of(line: LogLine) -> dict[str, str]:
    return {"trace_id": line.trace_id} if line.trace_id else {}


class TestLoki(LogsContract):
    @pytest.fixture
    def now(self) -> datetime:
        return NOW

    @pytest.fixture
    async def logs(self) -> AsyncIterator[Logs]:
        async with http_client(base_url=os.environ["KORTEX_TEST_LOKI_URL"]) as client:
            for product in PRODUCTS:
                await push(client, product, contract_lines(NOW, product))
            selector = f'{{service_name="$product", run="{RUN}"}}'
            logs = LokiLogs(client, UnsealedCodec(), selector)
            last = LogQuery(PRODUCTS[-1], contract_range(NOW), limit=1)
            async with asyncio.timeout(ARRIVAL_S):
                while not (await logs.query(last)).lines:  # noqa: ASYNC110 - Loki cannot tell us
                    await asyncio.sleep(0.5)
            yield logs
