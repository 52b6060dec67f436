"""One odd entry of a log backend's answer loses no other line, and the result says how many are lost."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

import httpx
import pytest

from adapters.observe.cloudwatch_logs import CloudWatchLogs
from adapters.observe.cursor import UnsealedCodec
from adapters.observe.elasticsearch import Elasticsearch
from adapters.observe.field_logs import FieldLogs
from adapters.observe.instants import ns_text, to_ns
from adapters.observe.loki import LokiLogs
from adapters.observe.victorialogs import VictoriaLogs
from tests.fakes.aws import cloudwatch_logs
from tests.odd_json import ODD
from tools.capabilities import Interval, LogQuery, Logs
from tools.errors import UpstreamFailed
from tools.outside_json import counting_unread

NOW = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
AT_NS = to_ns(NOW) - 60 * 10**9
AT = ns_text(AT_NS)
QUERY = LogQuery("checkout", HOUR)
CAPS = '{"fields": {"service.name": {"keyword": {"type": "keyword"}}, "odd": null}}'

# Per backend: an answer around its entries, a sound entry, and entries that are odd in one field.
Wire = tuple[str, str, str, list[str]]
LOKI: Wire = (
    '{"data": {"resultType": "streams", "result": [ENTRIES]}}', ",",
    '{"stream": {"app": "checkout", "k8s.pod.name": null}, "values": [["AT", "refused", null]]}',
    [
        '{"stream": 7, "values": [["AT", "x"]]}',
        '{"stream": {"app": "checkout"}, "values": null}',
        '{"stream": {"app": "checkout"}, "values": [["AT", null]]}',
        '{"stream": {"app": "checkout"}, "values": [["AT0000", "x"]]}',
        '{"stream": {"app": "checkout"}, "values": [[null, "x"], ["x", "y"]]}',
    ],
)  # fmt: skip
ELASTICSEARCH: Wire = (
    '{"hits": {"hits": [ENTRIES]}}', ",",
    '{"sort": [AT], "fields": {"message": ["refused"], "service.name": ["checkout"], "k8s.pod.name": null}}',
    ['{"sort": null, "fields": {}}', '{"sort": [18446744073709551616000], "fields": {}}',
     '{"sort": ["yesterday"], "fields": null}', '{"sort": [null]}'],
)  # fmt: skip
VICTORIALOGS: Wire = (
    "ENTRIES\n", "\n",
    '{"_time": "DAY", "_msg": "refused", "app": "checkout", "k8s.pod.name": null}',
    ['{"_time": null, "_msg": "x"}', '{"_time": "yesterday"}', '{"_time": 18446744073709551616}',
     "no JSON at all"],
)  # fmt: skip
CLOUDWATCH: Wire = (
    '{"status": "Complete", "results": [ENTRIES]}', ",",
    '[{"field": "@timestamp", "value": "DAY"}, {"field": "@message", "value": "refused"}, '
    '{"field": "k8s.pod.name", "value": null}, {"field": "@log", "value": "1:/ecs/checkout"}]',
    ['[{"field": "@timestamp", "value": null}]', '[{"field": null, "value": "x"}]', "[null]",
     '[{"field": "@timestamp", "value": "18446744073709551616"}]'],
)  # fmt: skip
WIRES = {
    "loki": LOKI,
    "elasticsearch": ELASTICSEARCH,
    "victorialogs": VICTORIALOGS,
    "cloudwatch": CLOUDWATCH,
}
GROUPED = (
    '{"hits": {"hits": null}, "aggregations": {"products": {"buckets": [null, 7, '
    '{"key": "checkout", "doc_count": 3}, {"key": null, "doc_count": 1}]}}}'
)
OTHERS: Mapping[str, str] = {
    "/field_names": '{"values": [null, 7, {"value": "app"}, {"value": null}]}',
    "/field_values": '{"values": [{}, {"value": "checkout"}, {"value": "\\ud800"}]}',
    "/_field_caps": CAPS,
    "/loki/api/v1/labels": '{"data": ["app", null, 7, "k8s.pod.name", "\\ud800"]}',
    "/loki/api/v1/series": '{"data": [null, 7, {"app": "checkout", "odd": null}, {"app": {}}]}',
}
NAMED = {
    "Logs_20140328.DescribeLogGroups": '{"logGroups": [null, {"logGroupName": "/ecs/checkout"}, {}], '
    '"nextToken": null}',
    "Logs_20140328.StartQuery": '{"queryId": "1"}',
}
MAKE: Mapping[str, Callable[[httpx.AsyncClient], Logs]] = {
    "loki": lambda client: LokiLogs(client, UnsealedCodec()),
    "elasticsearch": lambda client: FieldLogs(Elasticsearch(client, "x"), UnsealedCodec()),
    "victorialogs": lambda client: FieldLogs(VictoriaLogs(client), UnsealedCodec()),
    "cloudwatch": lambda client: FieldLogs(
        CloudWatchLogs(cloudwatch_logs(client), polls_s=(0.0,)), UnsealedCodec(), "@log"
    ),
}


def opened(kind: str, entries: list[str]) -> Logs:
    shape, between, _sound, _odd = WIRES[kind]

    def answer(request: httpx.Request) -> httpx.Response:
        said = NAMED.get(request.headers.get("x-amz-target", ""))
        grouped = GROUPED if b'"size": 0' in request.content else said
        listed = next((body for path, body in OTHERS.items() if path in request.url.path), grouped)
        return httpx.Response(200, text=listed or _filled(shape, between.join(entries)))

    transport = httpx.MockTransport(answer)
    return MAKE[kind](httpx.AsyncClient(transport=transport, base_url="http://backend.test"))


def _filled(shape: str, entries: str) -> str:
    return shape.replace("ENTRIES", entries).replace("AT", str(AT_NS)).replace("DAY", AT)


CASES = [(kind, odd) for kind, wire in WIRES.items() for odd in (*ODD, *wire[3])]


@pytest.mark.parametrize(("kind", "odd"), CASES)
async def test_valid_line_is_shown_and_the_odd_one_counted(kind: str, odd: str) -> None:
    sound = WIRES[kind][2]
    with counting_unread() as unread:
        page = await opened(kind, [odd, odd, sound]).query(QUERY)
    assert [line.message for line in page.lines if line.message] == ["refused"]
    assert page.notes == ("2 log lines could not be read",)
    assert unread.count >= 2
    assert page.next_cursor == ""


@pytest.mark.parametrize("kind", WIRES)
async def test_answer_without_any_readable_entry_is_an_error(kind: str) -> None:
    with pytest.raises(UpstreamFailed):
        await opened(kind, ["null", "7", json.dumps({"a.b": 1})]).query(QUERY)
