"""The logs contract on real stores of logs with fields, given by their addresses.

`KORTEX_TEST_VICTORIALOGS_URL`, `KORTEX_TEST_OPENSEARCH_URL` (Elasticsearch as well; a user and a
password may stand in it). The lines are pushed first, under names of their own, so any may be used.
"""

import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

import httpx
import pytest

from adapters.http.client import http_client
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.elasticsearch import Elasticsearch
from adapters.observe.field_logs import FieldLogs
from adapters.observe.instants import ns_text
from adapters.observe.log_source import LogSource
from adapters.observe.victorialogs import VictoriaLogs
from adapters.recorded.simulator.dataset import floored_to_minute
from tests.fixtures_logs_contract import LogsContract, contract_lines, contract_range
from tools.capabilities import LogLine, LogQuery, Logs

NOW = floored_to_minute(datetime.now(UTC))
RUN = f"run-{uuid.uuid4().hex}"  # holds the product, so that other lines there are no one's
PRODUCTS = ("inventory", "payments")
ARRIVAL_S = 20.0

pytestmark = pytest.mark.backends


def rows(message: str, time: str) -> Sequence[dict[str, str]]:
    return [row(line, product, message, time) for product in PRODUCTS for line in pushed(product)]


def pushed(product: str) -> Sequence[LogLine]:
    return contract_lines(NOW, product)


def row(line: LogLine, product: str, message: str, time: str) -> dict[str, str]:
    known = {
        time: ns_text(line.ts_ns), message: line.message, RUN: product, "level": line.level,
        "host.name": line.host, "trace_id": line.trace_id,
    }  # fmt: skip
    return {name: value for name, value in known.items() if value}


async def there(source: LogSource) -> Logs:
    logs = FieldLogs(source, UnsealedCodec(), RUN)
    last = LogQuery(PRODUCTS[-1], contract_range(NOW), limit=1)
    async with asyncio.timeout(ARRIVAL_S):
        while last.product not in await source.values(RUN, last.interval):  # noqa: ASYNC110
            await asyncio.sleep(0.5)
    return logs


async def sent(response: httpx.Response) -> None:
    response.raise_for_status()


@pytest.mark.skipif("KORTEX_TEST_VICTORIALOGS_URL" not in os.environ, reason="none is given")
class TestVictoriaLogs(LogsContract):
    @pytest.fixture
    def now(self) -> datetime:
        return NOW

    @pytest.fixture
    async def logs(self) -> AsyncIterator[Logs]:
        async with http_client(base_url=os.environ["KORTEX_TEST_VICTORIALOGS_URL"]) as client:
            source = VictoriaLogs(client)
            if not await source.values(RUN, contract_range(NOW)):  # equal lines would be kept apart
                lines = "".join(f"{json.dumps(one)}\n" for one in rows("_msg", "_time"))
                params = {"_stream_fields": RUN}
                await sent(await client.post("/insert/jsonline", params=params, content=lines))
            yield await there(source)


@pytest.mark.skipif("KORTEX_TEST_OPENSEARCH_URL" not in os.environ, reason="none is given")
class TestOpenSearch(LogsContract):
    @pytest.fixture
    def now(self) -> datetime:
        return NOW

    @pytest.fixture
    async def logs(self) -> AsyncIterator[Logs]:
        keyword = {"type": "keyword"}
        fields = dict.fromkeys((RUN, "level", "host.name", "trace_id"), keyword)
        time, text = {"type": "date_nanos"}, {"type": "text"}
        mapping = {"properties": {**fields, "@timestamp": time, "message": text}}
        url = httpx.URL(os.environ["KORTEX_TEST_OPENSEARCH_URL"])
        async with http_client(base_url=str(url.copy_with(username=None, password=None))) as client:
            client.auth = httpx.BasicAuth(url.username, url.password)
            if (await client.head(f"/{RUN}")).status_code == 404:
                await sent(await client.put(f"/{RUN}", json={"mappings": mapping}))
                lines = "".join(
                    f"{json.dumps({'create': {}})}\n{json.dumps(one)}\n"
                    for one in rows("message", "@timestamp")
                )
                headers = {"content-type": "application/x-ndjson"}
                bulk = f"/{RUN}/_bulk?refresh=true"
                await sent(await client.post(bulk, content=lines, headers=headers))
            yield await there(Elasticsearch(client, RUN, name="OpenSearch"))
