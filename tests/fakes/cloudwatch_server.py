"""A fake of CloudWatch's metrics: the list in pages, and statistics by period."""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiohttp import web

from tests.fakes.prometheus_server import StoredSeries

PAGE = 10
_STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "Average": lambda of: sum(of) / len(of), "Sum": sum, "Maximum": max, "Minimum": min,
    "p99": max,
}  # fmt: skip


class CloudWatchServer:
    """Holds samples of a namespace of people's own. `asked` are the bodies of GetMetricData."""

    def __init__(self, series: Sequence[StoredSeries], namespace: str = "Shop") -> None:
        self.series = series
        self.namespace = namespace
        self.asked: list[Any] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/", self._answer)
        return app

    def reply(self, _url: str, headers: Mapping[str, str], content: bytes) -> Any:
        """What an operation is answered."""
        body = json.loads(content)
        if headers["x-amz-target"] == "GraniteServiceVersion20100801.ListMetrics":
            return self._listed(body)
        assert headers["x-amz-target"] == "GraniteServiceVersion20100801.GetMetricData"
        self.asked.append(body)
        found = [self._data(query, body) for query in body["MetricDataQueries"]]
        return {"MetricDataResults": found, "Messages": []}

    async def _answer(self, request: web.Request) -> web.Response:
        body = self.reply("", request.headers, await request.read())
        return web.json_response(body, content_type="application/x-amz-json-1.0")

    def _listed(self, body: Any) -> Any:
        begin = int(body.get("NextToken", "0"))
        end = begin + PAGE
        shown = [
            {
                "Namespace": self.namespace,
                "MetricName": one.name,
                "Dimensions": _dimensions(one.labels),
            }
            for one in self.series[begin:end]
        ]
        return {
            "Metrics": shown,
            **({"NextToken": str(end)} if end < len(self.series) else {}),
        }

    def _data(self, query: Any, body: Any) -> Any:
        asked, period = query["MetricStat"]["Metric"], query["MetricStat"]["Period"]
        assert period % 60 == 0
        values: dict[float, list[float]] = defaultdict(list)
        for one in self.series:
            if (one.name, _dimensions(one.labels)) == (asked["MetricName"], asked["Dimensions"]):
                for at, value in one.samples:
                    if body["StartTime"] <= at < body["EndTime"]:
                        values[at // period * period].append(value)
        statistic = _STATISTICS[query["MetricStat"]["Stat"]]
        return {
            "Id": query["Id"],
            "Label": asked["MetricName"],
            "Timestamps": list(values),
            "Values": [statistic(of) for of in values.values()],
            "StatusCode": "Complete",
        }


def _dimensions(labels: Mapping[str, str]) -> Any:
    return [{"Name": name, "Value": value} for name, value in labels.items()]
