"""Loki, Prometheus and Tempo behind one Grafana: one token, by a data source's uid or its name."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web

from adapters.observe.prometheus import PrometheusMetrics
from bot.app.backend_kinds import open_logs, open_metrics, open_traces
from bot.settings.reading import ConfigurationError, parse
from tests.fakes.set_clock import SetClock
from tests.fixtures_http import serving
from tools.capabilities import Interval, Traces
from tools.errors import UpstreamFailed

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
# https://grafana.com/docs/grafana/latest/developers/http_api/data_source/#get-a-single-data-source-by-name
DOCUMENTED: dict[str, Any] = {
    "id": 1,
    "uid": "kLtEtcRGk",
    "orgId": 1,
    "name": "test_datasource",
    "type": "graphite",
    "access": "proxy",
    "url": "http://mydatasource.com",
    "basicAuth": False,
    "isDefault": False,
    "jsonData": {"graphiteType": "default", "graphiteVersion": "1.1"},
    "readOnly": False,
}
VECTOR = {"status": "success", "data": {"resultType": "vector", "result": []}}
Opened = Callable[[str], Any]


class Grafana:
    """Remembers what it was asked, and knows one data source."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.known: Any = DOCUMENTED

    async def handle(self, request: web.Request) -> web.Response:
        self.asked.append((request.path, request.headers.get("Authorization", "")))
        if request.path.endswith("/api/datasources/name/test_datasource"):
            return web.json_response(self.known)
        if "/api/datasources/name/" in request.path:
            return web.json_response({"message": "Data source not found"}, status=404)
        return web.json_response(VECTOR)


@pytest.fixture
async def grafana() -> AsyncIterator[tuple[Grafana, str]]:
    grafana_server = Grafana()
    async with serving(grafana_server.handle) as url:
        yield grafana_server, url


def table(kind: str, name: str, url: str, key: str) -> str:
    return f'[observe.{name}]\nkind = "{kind}"\nurl = "{url}"\ntoken = "glsa_one"\n{key}\n'


async def metrics_through(url: str, key: str, stack: AsyncExitStack) -> PrometheusMetrics:
    settings = parse(table("prometheus", "metrics", url, key), "kortex.toml", {}).observe
    found = open_metrics(settings.metrics, (), SetClock(NOW), "observe.metrics", stack)
    assert isinstance(found, PrometheusMetrics)
    return found


@pytest.mark.parametrize(
    ("key", "lookups"),
    [('data_source_uid = "kLtEtcRGk"', 0), ('data_source = "test_datasource"', 1)],
)
async def test_every_request_uses_the_data_sources_path_and_token(
    grafana: tuple[Grafana, str], key: str, lookups: int
) -> None:
    grafana_server, url = grafana
    async with AsyncExitStack() as stack:
        metrics = await metrics_through(f"{url}/grafana", key, stack)
        await metrics.promql("up", HOUR, None, instant=True)
        await metrics.promql("up", HOUR, None, instant=True)
    proxied = ("/grafana/api/datasources/proxy/uid/kLtEtcRGk/api/v1/query", "Bearer glsa_one")
    looked_up = ("/grafana/api/datasources/name/test_datasource", "Bearer glsa_one")
    assert grafana_server.asked == [looked_up] * lookups + [proxied] * 2


async def test_logs_and_traces_use_the_data_sources_path(grafana: tuple[Grafana, str]) -> None:
    grafana_server, url = grafana
    async with AsyncExitStack() as stack:
        text = table("loki", "logs", url, 'data_source_uid = "l"')
        text += table("tempo", "traces", url, 'data_source_uid = "t"')
        settings = parse(text, "kortex.toml", {}).observe
        logs = open_logs(settings.logs, (), "observe.logs", stack)
        traces: Traces | None = open_traces(settings.traces, "observe.traces", stack)
        assert logs is not None
        assert traces is not None
        await logs.discover(["checkout"], HOUR)
        await traces.get("f" * 32)
    assert {path.partition("/uid/")[2][:2] for path, _token in grafana_server.asked} == {"l/", "t/"}


@pytest.mark.parametrize(
    "known", [{}, [], {"uid": 2**127}, {"uid": "../../admin"}, {"uid": ""}, "\ud800"]
)
async def test_an_invalid_uid_is_never_requested(
    grafana: tuple[Grafana, str], known: object
) -> None:
    grafana_server, url = grafana
    grafana_server.known = known
    async with AsyncExitStack() as stack:
        metrics = await metrics_through(url, 'data_source = "test_datasource"', stack)
        with pytest.raises(UpstreamFailed, match="Grafana"):
            await metrics.promql("up", HOUR, None, instant=True)
    assert len(grafana_server.asked) == 1


async def test_unknown_data_source_is_reported(grafana: tuple[Grafana, str]) -> None:
    _, url = grafana
    async with AsyncExitStack() as stack:
        metrics = await metrics_through(url, 'data_source = "a/../b"', stack)
        with pytest.raises(UpstreamFailed, match=r"no data source called 'a/\.\./b'"):
            await metrics.promql("up", HOUR, None, instant=True)


@pytest.mark.parametrize(
    "keys", ['data_source = "a"\ndata_source_uid = "b"', 'data_source_uid = "a/b"']
)
def test_invalid_data_source_is_refused(keys: str) -> None:
    with pytest.raises(ConfigurationError, match="data_source"):
        parse(table("loki", "logs", "http://grafana", keys), "kortex.toml", {})
