"""A fake of Datadog's v1 metrics API: the active list, and timeseries by tags and rollup."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import web
from yarl import URL

from tests.fakes.prometheus_server import StoredSeries

_QUERY = re.compile(
    r"(avg|max|min|sum):([\w.]+)\{(.*?)\} by \{(.*?)\}(\.as_count\(\))?(?:\.rollup\((\w+), (\d+)\))?"
)
_SEEN_EVERY_S = 20


class DatadogServer:
    """Holds samples. `queries` are those it was asked."""

    def __init__(self, series: Sequence[StoredSeries]) -> None:
        self.series = series
        self.queries: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/v1/{what}", self._answer)
        return app

    def reply(self, url: str, _headers: Mapping[str, str], _content: bytes) -> Any:
        """What an address is answered, errors as status 200 among it."""
        asked = URL(url)
        return self._active(asked) if asked.path.endswith("/metrics") else self._query(asked)

    async def _answer(self, request: web.Request) -> web.Response:
        return web.json_response(self.reply(str(request.url), request.headers, b""))

    def _active(self, asked: URL) -> Any:
        wanted = [tag.partition(":") for tag in asked.query.get("tag_filter", "").split(" OR ")]
        names = {
            one.name
            for one in self.series
            if any(not name or one.labels.get(name) == value for name, _colon, value in wanted)
        }
        return {"from": asked.query["from"], "metrics": sorted(names)}

    def _query(self, asked: URL) -> Any:
        text = asked.query["query"]
        self.queries.append(text)
        window = int(asked.query["from"]), int(asked.query["to"])
        series: list[Any] = []
        for number, query in enumerate(re.split(r",(?=(?:avg|max|min|sum):)", text)):
            parsed = _QUERY.fullmatch(query)
            if parsed is None:
                return {"status": "error", "error": f"Error parsing query: {query}"}
            series += self._found(parsed, window, number)
        return {"status": "ok", "res_type": "time_series", "series": series}

    def _found(self, parsed: re.Match[str], window: tuple[int, int], number: int) -> list[Any]:
        _space, metric, scope, by, _count, method, every = parsed.groups()
        step = int(every or _SEEN_EVERY_S)
        groups: dict[tuple[str, ...], dict[int, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for one in self.series:
            if one.name == metric and _in_scope(scope, one.labels):
                tags = tuple(f"{name}:{one.labels.get(name, 'N/A')}" for name in by.split(","))
                for at, value in one.samples:
                    if window[0] <= at <= window[1]:
                        groups[tags][int(at // step * step)].append(value)
        return [
            {
                "metric": metric,
                "tag_set": list(tags),
                "scope": ",".join(tags),
                "interval": step if every else 60,
                "query_index": number,
                "unit": None,
                "pointlist": [
                    [at * 1000.0, sum(of) if method == "sum" else sum(of) / len(of)]
                    for at, of in sorted(points.items())
                ],
            }
            for tags, points in groups.items()
            if points
        ]


def _in_scope(scope: str, labels: Mapping[str, str]) -> bool:
    for part in scope.split(" AND "):
        among = re.fullmatch(r"(\w+) IN \((.*)\)", part)
        if among is not None:
            if labels.get(among[1]) not in among[2].split(","):
                return False
        elif part != "*":
            name, _colon, value = part.partition(":")
            if labels.get(name) != value:
                return False
    return True
