"""Every reader of an outside list keeps the valid entries, and the tool's result states the number
of the rest.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import orjson
import pytest

from adapters.kubernetes.api import KubernetesApi
from adapters.kubernetes.config import Access
from adapters.kubernetes.reader import KubernetesReader
from adapters.kubernetes.rollouts import KubernetesRollouts
from adapters.observe.prometheus import PrometheusMetrics
from tests.contract.test_odd_list_entries import FAMILIES, answering, bodies
from tests.fakes.capabilities import fake_capabilities
from tests.fakes.set_clock import SetClock
from tests.fakes.tools import bench
from tests.fixtures_http import serving
from tests.odd_json import ODD
from tools.capabilities import Interval
from tools.core.find_metrics import FindMetrics
from tools.core.get_recent_deploys import GetRecentDeploys
from tools.core.kubectl import KubectlEvents
from tools.core.metric_series import QueryMetrics
from tools.outside_json import counting_unread

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
# The modules that read lists of other systems, and the test of odd entries in each.
READERS: Mapping[str, str] = {
    "adapters/deploys/argocd.py": "test_odd_list_entries",
    "adapters/deploys/flux.py": "test_odd_list_entries",
    "adapters/deploys/github.py": "test_odd_list_entries",
    "adapters/deploys/gitlab.py": "test_odd_list_entries",
    "adapters/kubernetes/offer.py": "test_odd_list_entries",
    "adapters/kubernetes/reader.py": "test_odd_list_entries",
    "adapters/kubernetes/rollouts.py": "test_odd_list_entries",
    "adapters/platform/answers.py": "test_odd_list_entries",
    "adapters/observe/cloudwatch_logs.py": "test_odd_log_entries",
    "adapters/observe/cloudwatch_metrics.py": "test_odd_metric_entries",
    "adapters/observe/datadog.py": "test_odd_metric_entries",
    "adapters/observe/elasticsearch.py": "test_odd_log_entries",
    "adapters/observe/jaeger.py": "test_odd_trace_entries",
    "adapters/observe/jaeger_answer.py": "test_odd_trace_entries",
    "adapters/observe/loki_answer.py": "test_odd_log_entries",
    "adapters/observe/otlp_answer.py": "test_odd_trace_entries",
    "adapters/observe/prometheus_answer.py": "test_unread_entries",
    "adapters/observe/sentry_answer.py": "test_observe_errors",
    "adapters/observe/tempo.py": "test_odd_trace_entries",
    "adapters/observe/victorialogs.py": "test_odd_log_entries",
    "adapters/on_call/pagerduty.py": "test_on_call",
    "bot/alerts/alertmanager.py": "test_alert_wires",
    "bot/alerts/cloudevents.py": "test_alert_wires",
}
_READS_A_LIST = re.compile(r"\bEntries\[")


def test_every_module_that_reads_an_outside_list_has_a_test_of_odd_entries() -> None:
    found = {
        str(path.relative_to(ROOT))
        for layer in ("adapters", "bot")
        for path in (ROOT / layer).rglob("*.py")
        if _READS_A_LIST.search(path.read_text())
    }
    assert found == set(READERS)
    missing = [
        name for name in READERS.values() if not (ROOT / f"tests/contract/{name}.py").exists()
    ]
    assert missing == []


SERIES = '{"metric": {"service": "checkout", "k8s.pod.name": null}, "value": [1795269600, "1"]}'
RANGE = '{"metric": {"service": "checkout"}, "values": [[1795269000, "1"], [1795269060, "2"]]}'
# By the end of the path: the answer around its ENTRIES, and a sound entry.
PROMETHEUS: Mapping[str, tuple[str, str]] = {
    "/labels": ('{"data": [ENTRIES]}', '"service", "k8s.pod.name"'),
    "/values": ('{"data": [ENTRIES]}', '"checkout"'),
    "/metadata": ('{"data": {"queue_depth": [ENTRIES]}}', '{"type": "gauge", "unit": null}'),
    "/query": ('{"data": {"resultType": "vector", "result": [ENTRIES]}}', SERIES),
    "/query_range": ('{"data": {"resultType": "matrix", "result": [ENTRIES]}}', RANGE),
}
# A text is a sound label and a sound value of one.
NO_TEXT = [odd for odd in ODD if not odd.startswith('"')]


def prometheus(odd: str, of: str) -> PrometheusMetrics:
    """Its answers with the odd entry twice in the list at the end of that path."""

    def answer(request: httpx.Request) -> httpx.Response:
        end = next(end for end in PROMETHEUS if request.url.path.endswith(end))
        shape, sound = PROMETHEUS[end]
        entries = f"{odd}, {sound}, {odd}" if end == of else sound
        return httpx.Response(200, text=shape.replace("ENTRIES", entries))

    transport = httpx.MockTransport(answer)
    client = httpx.AsyncClient(transport=transport, base_url="http://prometheus.test")
    return PrometheusMetrics(client, SetClock(NOW))


@pytest.mark.parametrize("odd", NO_TEXT)
@pytest.mark.parametrize("of", ["/labels", "/values", "/query"])
async def test_a_discovery_states_how_many_entries_it_could_not_read(of: str, odd: str) -> None:
    run = bench([FindMetrics()], caps=fake_capabilities(metrics=prometheus(odd, of)))
    for words in ("", "asked of a discovery that is remembered"):
        arguments = orjson.dumps({"product": "*", "words": words}).decode()
        outcome = await run.run(arguments, "core__find_metrics", now=NOW, products=())
        told = orjson.loads(outcome.content)
        assert outcome.record.ok, outcome.content
        assert told["unread_entries"] >= 2


@pytest.mark.parametrize("odd", NO_TEXT)
async def test_a_query_states_how_many_series_it_could_not_read(odd: str) -> None:
    metrics = prometheus(odd, "/query_range")
    run = bench([QueryMetrics()], caps=fake_capabilities(metrics=metrics))
    arguments = '{"query": "queue_depth", "time_range": "last 1h"}'
    outcome = await run.run(arguments, "core__query_metrics", now=NOW)
    told = orjson.loads(outcome.content)
    assert outcome.record.ok, outcome.content
    assert told["unread_entries"] == 2
    assert "checkout" in outcome.content


@pytest.mark.parametrize("odd", [one for one in NO_TEXT if not one.startswith("{")])
async def test_a_type_that_could_not_be_read_is_counted(odd: str) -> None:
    with counting_unread() as unread:
        await prometheus(odd, "/metadata").discover([], HOUR)
    assert unread.count >= 1


@pytest.mark.parametrize("odd", ODD[:3])
async def test_events_and_rollouts_of_a_cluster_state_what_they_could_not_read(odd: str) -> None:
    for family, tool, name in (
        ("events", KubectlEvents(), "core__kubectl_events"),
        ("rollouts", GetRecentDeploys(), "core__get_recent_deploys"),
    ):
        _read, answers, sound, expected, _odd = FAMILIES[family]
        async with serving(answering(bodies(answers, [odd, sound, odd]))) as url:
            api = KubernetesApi(Access(url, None, lambda: "token", "shop"))
            caps = fake_capabilities(
                kubernetes=KubernetesReader(api), rollouts=KubernetesRollouts(api, (), ())
            )
            arguments = '{"product": "checkout", "time_range": "last 2h"}'
            asked = "{}" if family == "events" else arguments
            outcome = await bench([tool], caps=caps).run(asked, name, now=NOW)
            await api.aclose()
        told = orjson.loads(outcome.content)
        assert outcome.record.ok, outcome.content
        assert told["unread_entries"] >= 2
        assert expected[0] in outcome.content
