"""Names with dots, slashes, quotes and spaces stay whole in every generated query, or are skipped and reported."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from adapters.observe.cloudwatch_logs import CloudWatchLogs
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.datadog import Datadog
from adapters.observe.elasticsearch import Elasticsearch
from adapters.observe.instants import to_ns
from adapters.observe.log_source import LogSource, Wanted
from adapters.observe.loki import LokiLogs
from adapters.observe.tempo import TempoTraces
from adapters.observe.victorialogs import VictoriaLogs
from tests.fakes.aws import cloudwatch_logs
from tools.capabilities import Interval, TraceQuery

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
NAMES = (
    "k8s.pod.name", "app.kubernetes.io/name", 'say "hi"', "two words", "it's", "a\\b", "ü-é", "50%", "$product", "{brace}",
    "a|b", "(a)", "a//b", "-dash", "#hash", "a*", 'a" or "b', '\\"} or {x="', "🙂",
)  # fmt: skip


class Asked:
    """A server that keeps what it was asked, and answers with that body."""

    def __init__(self, answer: str = "{}") -> None:
        self.requests: list[httpx.Request] = []
        self._answer = answer

    def client(self) -> httpx.AsyncClient:
        def reply(request: httpx.Request) -> httpx.Response:
            self.requests.append(request)
            is_series = request.url.path.endswith("/series")
            return httpx.Response(200, text='{"data": []}' if is_series else self._answer)

        transport = httpx.MockTransport(reply)
        return httpx.AsyncClient(transport=transport, base_url="http://backend.test")

    @property
    def form(self) -> str:
        """The `query` of the newest form."""
        return dict(httpx.QueryParams(self.requests[-1].content.decode()))["query"]

    @property
    def body(self) -> str:
        return self.requests[-1].content.decode()


async def asked(make: Callable[[httpx.AsyncClient], LogSource], name: str, answer: str) -> Asked:
    server = Asked(answer)
    wanted = Wanted(name, (name,), to_ns(HOUR.start), to_ns(HOUR.end))
    await make(server.client()).newest(wanted, 10)
    return server


@pytest.mark.parametrize("name", NAMES)
async def test_logsql_quotes_fields_and_values(name: str) -> None:
    query = (await asked(VictoriaLogs, name, "")).form
    quoted = json.dumps(name, ensure_ascii=False)
    assert f"{quoted}:in({quoted})" in query
    assert f", {quoted}" in query.partition("| fields ")[2]


@pytest.mark.parametrize("name", NAMES)
async def test_an_elasticsearch_query_contains_the_name_unchanged(name: str) -> None:
    server = await asked(lambda client: Elasticsearch(client, "x"), name, '{"hits": {"hits": []}}')
    filters = json.loads(server.body)["query"]["bool"]["filter"]
    assert {"terms": {name: [name]}} in filters


@pytest.mark.parametrize("name", NAMES)
async def test_logs_insights_quotes_a_field_and_its_value(name: str) -> None:
    def source(client: httpx.AsyncClient) -> LogSource:
        return CloudWatchLogs(cloudwatch_logs(client), field=name, polls_s=(0.0,))

    answer = {"queryId": "1", "status": "Complete", "logGroups": [{"logGroupName": "/ecs/shop"}]}
    server = await asked(source, name, json.dumps(answer))
    started = next(one for one in server.requests if b"queryString" in one.content)
    query = json.loads(started.content)["queryString"]
    field = name if name == "k8s.pod.name" else f"`{name}`"
    assert f"{field} in [{json.dumps(name, ensure_ascii=False)}]" in query


@pytest.mark.parametrize("name", NAMES)
async def test_traceql_quotes_the_values_of_attributes(name: str) -> None:
    server = Asked()
    await TempoTraces(server.client()).search(TraceQuery(name, HOUR, operation=name))
    quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    wanted = f"{{ resource.service.name = {quoted} && name = {quoted} }}"
    assert server.requests[0].url.params["q"] == wanted


async def test_logql_skips_labels_that_it_cannot_name_and_reports_them() -> None:
    server = Asked(json.dumps({"data": ["app", *NAMES]}))
    found = await LokiLogs(server.client(), UnsealedCodec()).discover([], HOUR)
    assert any(f"cannot name {len(NAMES)} labels" in note for note in found.notes)
    assert {one.url.path for one in server.requests if "/label/" in one.url.path} == {
        "/loki/api/v1/label/app/values"
    }


async def test_datadog_skips_products_that_no_tag_can_name_and_reports_them() -> None:
    server = Asked('{"metrics": [], "series": []}')
    found = await Datadog(server.client()).catalogue(["shop/cart", "two words"], HOUR)
    assert found.notes == ["no tag of Datadog can name 1 products; not read: ['two words']"]
    assert server.requests[0].url.params["tag_filter"] == "service:shop/cart"
