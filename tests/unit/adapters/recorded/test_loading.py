"""A case is put into servers whole and marked, and said not to be there when it is not."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from adapters.http.client import http_client
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.loki import LokiLogs
from adapters.recorded.packs.recording import RecordedLine, RecordedSeries
from adapters.recorded.packs.server_import import NotLoaded, load_logs, load_metrics, product_label
from tests.fakes.loki_server import LokiServer
from tests.fixtures_http import serving
from tools.capabilities import Interval, LogQuery

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
NOW_S = NOW.timestamp()
SERIES = [
    RecordedSeries("up", {"job": "web"}, None, [(NOW_S - 60, 1.0), (NOW_S, 0.0)]),
    RecordedSeries("gone", {"job": "web"}, None, []),
]


class ImportServer:
    """Takes what VictoriaMetrics takes, and says that it holds `counted` samples."""

    def __init__(self, counted: int, status: int = 204) -> None:
        self.counted = counted
        self.status = status
        self.imported: list[dict[str, object]] = []

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/api/v1/import":
            self.imported += map(json.loads, (await request.text()).splitlines())
            return web.Response(status=self.status, text="no such path")
        result = [{"metric": {}, "value": [NOW_S, str(self.counted)]}]
        return web.json_response({"data": {"resultType": "vector", "result": result}})


async def loaded(server: ImportServer, patience_s: float = 15.0) -> None:
    async with serving(server.answer) as url, http_client(base_url=url) as client:
        await load_metrics(client, SERIES, "m1", patience_s)


async def test_samples_are_imported_with_the_mark() -> None:
    server = ImportServer(counted=2)

    await loaded(server)

    instants = [round(NOW_S - 60) * 1000, round(NOW_S) * 1000]
    metric = {"__name__": "up", "job": "web", "kortex_case": "m1"}
    assert server.imported == [{"metric": metric, "values": [1.0, 0.0], "timestamps": instants}]


async def test_server_that_lost_samples_gets_a_hint() -> None:
    with pytest.raises(NotLoaded, match="all of the 2 samples: is its retention long enough"):
        await loaded(ImportServer(counted=1), patience_s=0.01)


async def test_server_without_an_import_is_named() -> None:
    with pytest.raises(NotLoaded, match=r"VictoriaMetrics does not take the case: .* answered 404"):
        await loaded(ImportServer(counted=0, status=404))


async def test_unreachable_server_is_named() -> None:
    async with serving(ImportServer(0).answer) as url:
        pass
    async with http_client(base_url=url) as client:
        with pytest.raises(NotLoaded, match="VictoriaMetrics"):
            await load_metrics(client, SERIES, "m1")


def lines(count: int) -> Sequence[RecordedLine]:
    at = round((NOW_S - 60) * 10**9)
    labels = {"k8s.pod": "web-1", "svc": "web", "level": "error"}
    return [RecordedLine(at + n, labels, f"failed {n}", "a1" * (n % 2)) for n in range(count)]


async def test_lines_in_loki_are_read_back_by_their_product() -> None:
    server = LokiServer([])
    app = server.app()
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with http_client(base_url=f"http://127.0.0.1:{runner.addresses[0][1]}") as client:
        await load_logs(client, lines(3), "m1")
        await load_logs(client, lines(2), "m2")
        selector = f'{{{product_label(lines(3), ["web"])}="$product", kortex_case="m1"}}'
        logs = LokiLogs(client, UnsealedCodec(), selector)
        page = await logs.query(LogQuery("web", Interval(NOW - timedelta(minutes=5), NOW)))
    await runner.cleanup()

    assert [(line.message, line.level, line.trace_id) for line in page.lines] == [
        ("failed 2", "error", ""),
        ("failed 1", "error", "a1"),
        ("failed 0", "error", ""),
    ]
