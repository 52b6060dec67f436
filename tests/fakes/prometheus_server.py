"""A fake of Prometheus's query API over fixed samples: envelopes, limits, 5 min look-back."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

from aiohttp import web

_LOOK_BACK_S = 300.0
_SELECTOR = re.compile(r'([a-zA-Z_:][\w:]*)?\{((?:[^"}]|"(?:[^"\\]|\\.)*")*)\}')
_RATE = re.compile(r"rate\((.*)\[(\d+)s\]\)")
_COUNT = re.compile(r"max\(count_over_time\((.*)\[(\d+)s\]\)\)")
_MATCHER = re.compile(r'([A-Za-z_]\w*)(=~|=)("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class StoredSeries:
    """Samples in time order, as (seconds since the epoch, value)."""

    name: str
    labels: Mapping[str, str]
    samples: Sequence[tuple[float, float]]


class BadData(Exception):
    """A request that Prometheus answers with 400 bad_data."""


class PrometheusServer:
    """Answers query_range (POST form) and label values. `forms` are the queries it was asked."""

    def __init__(
        self,
        series: Sequence[StoredSeries],
        tenant: str = "",
        warnings: Sequence[str] = (),
        types: Mapping[str, str] | None = None,
    ) -> None:
        self.types = types or {}
        self.series = series
        self.tenant = tenant
        self.warnings = warnings
        self.forms: list[Mapping[str, str]] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/api/v1/query_range", self._guarded(self._query_range))
        app.router.add_post("/api/v1/query", self._guarded(self._query))
        app.router.add_get("/api/v1/metadata", self._guarded(self._metadata))
        app.router.add_get("/api/v1/label/{name}/values", self._guarded(self._label_values))
        return app

    def _guarded(
        self, answer: Callable[[web.Request], Awaitable[web.Response]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handler(request: web.Request) -> web.Response:
            if self.tenant and request.headers.get("X-Scope-OrgID") != self.tenant:
                return web.Response(status=401, text="no org id\n")
            try:
                return await answer(request)
            except BadData as error:
                body = {"status": "error", "errorType": "bad_data", "error": str(error)}
                return web.json_response(body, status=400)

        return handler

    async def _query_range(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append(form)
        start, end, step = (float(form[name]) for name in ("start", "end", "step"))
        if (end - start) / step > 11_000:
            raise BadData("exceeded maximum resolution of 11,000 points per timeseries.")
        instants = [start + step * number for number in range(int((end - start) / step) + 1)]
        rows = [row for row in map(_evaluator(form["query"], instants), self.series) if row]
        body = {
            "status": "success",
            "data": {"resultType": "matrix", "result": rows},
            **({"warnings": list(self.warnings)} if self.warnings else {}),
        }
        return web.json_response(body)

    async def _query(self, request: web.Request) -> web.Response:
        """A selector, or `max(count_over_time(selector[Ns]))`."""
        form = await request.post()
        counting = _COUNT.fullmatch(str(form["query"]))
        if counting is None:
            return self._instant(str(form["query"]), float(str(form["time"])))
        wanted, end_s = _selects(counting.group(1)), float(str(form["time"]))
        begin_s = end_s - float(counting.group(2))
        counts = [
            sum(begin_s <= at_s <= end_s for at_s, _value in one.samples)
            for one in self.series
            if wanted(one)
        ]
        rows = [{"metric": {}, "value": [end_s, str(max(counts))]}] if counts else []
        data = {"resultType": "vector", "result": rows}
        return web.json_response({"status": "success", "data": data})

    def _instant(self, query: str, at_s: float) -> web.Response:
        found = [row for row in map(_evaluator(query, [at_s]), self.series) if row]
        last = [
            {"metric": row["metric"], "value": next(iter(cast("list[object]", row["values"])))}
            for row in found
        ]
        return web.json_response(
            {"status": "success", "data": {"resultType": "vector", "result": last}}
        )

    async def _metadata(self, _request: web.Request) -> web.Response:
        about = {name: [{"type": kind, "unit": ""}] for name, kind in self.types.items()}
        return web.json_response({"status": "success", "data": about})

    async def _label_values(self, request: web.Request) -> web.Response:
        name, match = request.match_info["name"], request.query.get("match[]", "{}")
        start, end = float(request.query["start"]), float(request.query["end"])
        wanted = _selects(match)
        found = {
            one.name if name == "__name__" else one.labels.get(name, "")
            for one in self.series
            if wanted(one) and any(start <= at_s <= end for at_s, _value in one.samples)
        }
        return web.json_response({"status": "success", "data": sorted(found - {""})})


def _evaluator(
    query: str, instants: Sequence[float]
) -> Callable[[StoredSeries], Mapping[str, object] | None]:
    rate = _RATE.fullmatch(query)
    wanted = _selects(rate.group(1) if rate else query)

    def evaluate(series: StoredSeries) -> Mapping[str, object] | None:
        if not wanted(series):
            return None
        values = (
            [(at_s, _rate(series, at_s, float(rate.group(2)))) for at_s in instants]
            if rate
            else [(at_s, _last(series, at_s)) for at_s in instants]
        )
        kept = [[at_s, _text(value)] for at_s, value in values if value is not None]
        labels = dict(series.labels) if rate else {"__name__": series.name, **series.labels}
        return {"metric": labels, "values": kept} if kept else None

    return evaluate


def _selects(selector: str) -> Callable[[StoredSeries], bool]:
    found = _SELECTOR.fullmatch(selector)
    if found is None and selector != "{}":
        raise BadData(f"invalid parameter 'query': parse error: {selector}")
    name, inner = (found.group(1), found.group(2)) if found else (None, "")
    matchers = [
        (label, json.loads(value) if operator == "=~" else re.escape(json.loads(value)))
        for label, operator, value in _MATCHER.findall(inner)
    ]
    return lambda series: (
        name in {None, series.name}
        and all(
            re.fullmatch(value, {**series.labels, "__name__": series.name}.get(label, ""))
            for label, value in matchers
        )
    )


def _last(series: StoredSeries, at_s: float) -> float | None:
    recent = [value for t, value in series.samples if at_s - _LOOK_BACK_S < t <= at_s]
    return recent[-1] if recent else None


def _rate(series: StoredSeries, at_s: float, window_s: float) -> float | None:
    window = [(t, value) for t, value in series.samples if at_s - window_s <= t <= at_s]
    if len(window) < 2:
        return None
    grown = sum(max(0.0, after[1] - before[1]) for before, after in pairwise(window))
    return grown / (window[-1][0] - window[0][0])


def _text(value: float) -> str:
    return {"nan": "NaN", "inf": "+Inf", "-inf": "-Inf"}.get(str(value), str(value))
