"""One odd entry of Datadog's or CloudWatch's lists loses no metric, and is logged."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from structlog.testing import capture_logs

from adapters.observe.cloudwatch_metrics import CloudWatchMetrics
from adapters.observe.datadog import Datadog
from adapters.observe.metric_source import MetricSource, SeriesSelection
from tests.fakes.aws import cloudwatch
from tests.odd_json import ODD
from tools.capabilities import Interval
from tools.errors import UpstreamFailed
from tools.outside_json import counting_unread

NOW = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
HOUR = Interval(NOW - timedelta(hours=1), NOW)
AT = NOW.timestamp()
METRIC = (
    '{"Namespace": "AWS/Lambda", "MetricName": "Duration", '
    '"Dimensions": [null, {"Name": "FunctionName", "Value": "checkout"}]}'
)
POINTS = f'{{"Id": "q0", "Timestamps": [{AT}], "Values": [5], "StatusCode": null}}'
SERIES = (
    f'{{"pointlist": [[{AT * 1000}, 5], null, [7]], "scope": "service:checkout", "tag_set": null, '
    '"unit": [null, null], "interval": null, "query_index": null}'
)
# By the end of the path or of the AWS target: the answer with its ENTRIES, and a sound entry.
DATADOG = {
    "/api/v1/metrics": ('{"metrics": [ENTRIES]}', '"trace.http.request.duration"'),
    "/api/v1/query": ('{"status": "ok", "error": null, "series": [ENTRIES]}', SERIES),
}
CLOUDWATCH = {
    "ListMetrics": ('{"Metrics": [ENTRIES], "NextToken": null}', METRIC),
    "GetMetricData": ('{"MetricDataResults": [ENTRIES], "NextToken": null}', POINTS),
}
Make = Callable[[httpx.AsyncClient], MetricSource]
SOURCES: dict[str, tuple[Make, dict[str, tuple[str, str]], SeriesSelection]] = {
    "datadog": (
        Datadog, DATADOG, SeriesSelection("trace.http.request.duration", "avg", "service", ("checkout",)),
    ),
    "cloudwatch": (
        lambda client: CloudWatchMetrics(cloudwatch(client)), CLOUDWATCH,
        SeriesSelection("Duration", "avg", "FunctionName", ("checkout",)),
    ),
}  # fmt: skip


def opened(kind: str, around: Sequence[str], whole: bool = True) -> MetricSource:
    make, answers, _asked = SOURCES[kind]

    def reply(request: httpx.Request) -> httpx.Response:
        name = f"{request.url.path} {request.headers.get('x-amz-target', '')}"
        shape, sound = next(answer for end, answer in answers.items() if end in name)
        entries = [around[0], sound, around[-1]] if whole else list(around)
        return httpx.Response(200, text=shape.replace("ENTRIES", ", ".join(entries)))

    transport = httpx.MockTransport(reply)
    return make(httpx.AsyncClient(transport=transport, base_url="http://backend.test"))


# A text is a sound name of a metric to Datadog, which then has no series of it.
CASES = [
    *((kind, odd) for kind in SOURCES for odd in ODD if kind != "datadog" or '"' not in odd[:1]),
    *(("cloudwatch", f'{{"Id": "q0", "Timestamps": [{at}], "Values": [5]}}') for at in ("-1e300", "1e300")),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "odd"), CASES)
async def test_valid_metric_is_found_and_read(kind: str, odd: str) -> None:
    odd = "[]" if kind == "datadog" and odd.startswith("{") else odd
    source = opened(kind, [odd])
    with capture_logs() as logged, counting_unread() as unread:
        catalogue = await source.catalogue(["checkout"], HOUR)
        rows = await source.read([SOURCES[kind][2]], HOUR, 60.0)
    assert [known.metric for known in catalogue.known] == [SOURCES[kind][2].metric]
    assert [value for row in rows.rows for _at, value in row.points] == [5.0]
    assert sum(one["count"] for one in logged if "unreadable" in one["event"]) >= 4
    assert unread.count >= 4


@pytest.mark.parametrize("kind", SOURCES)
async def test_a_list_without_any_readable_entry_is_an_error(kind: str) -> None:
    with pytest.raises(UpstreamFailed):
        await opened(kind, ["null", "7"], whole=False).catalogue([], HOUR)
