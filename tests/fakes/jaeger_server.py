"""A fake of Jaeger 2.20's two query APIs, or for VictoriaTraces, which copies the first."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime

from aiohttp import web

from tests.fakes.trace_shapes import jaeger_json, otlp_json, same
from tools.capabilities import Trace

_ID = re.compile(r"[0-9a-fA-F]{1,32}")


class JaegerServer:
    """Holds traces. Jaeger reads ids as numbers; with `victoria`, ids are matched as text.

    `short_ids` keeps 64-bit ids in 16 digits, as VictoriaTraces was given them.
    """

    def __init__(self, traces: Iterable[Trace], *, victoria: bool = False) -> None:
        self.traces = {int(trace.trace_id, 16): trace for trace in traces}
        self.victoria = victoria
        self.paths: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/traces", self._search_v1)
        app.router.add_get("/api/v3/traces", self._search_v3)
        app.router.add_get("/api/services", self._services)
        app.router.add_get("/api/v3/services", self._services_v3)
        app.router.add_get("/api/traces/{id}", self._v1)
        app.router.add_get("/api/v3/traces/{id}", self._v3)
        return app

    def _found(self, text: str) -> Trace | None:
        if not self.victoria:
            return self.traces.get(int(text, 16))
        stored = {_as_pushed(trace.trace_id): trace for trace in self.traces.values()}
        return stored.get(text)

    def _matching(self, query: Mapping[str, str]) -> list[Trace]:
        """As storage does: all conditions of one span of the service, the newest first."""
        longest = query.get("minDuration", "0ms").removesuffix("ms")
        failed = '"error":"true"' in query.get("tags", "")
        found = [
            trace
            for trace in self.traces.values()
            if any(
                span.service == query["service"]
                and int(query["start"]) <= span.start_us <= int(query["end"])
                and query.get("operation", span.operation) == span.operation
                and span.duration_us >= float(longest) * 1000
                and (span.status == "error" or not failed)
                for span in trace.spans
            )
        ]
        found.sort(key=lambda trace: -min(span.start_us for span in trace.spans))
        return found[: int(query.get("limit", "100"))]

    async def _search_v1(self, request: web.Request) -> web.Response:
        if not request.query.get("service"):
            return _v1_failure(400, "parameter 'service' is required")
        found = self._matching(request.query)
        data = [jaeger_json(trace, tags_as_text=self.victoria) for trace in found]
        return web.json_response(
            {"data": data, "errors": None, "limit": 0, "offset": 0, "total": 0}
        )

    async def _search_v3(self, request: web.Request) -> web.Response:
        asked = {name.removeprefix("query."): value for name, value in request.query.items()}
        begin, end = (
            datetime.fromisoformat(asked[name]) for name in ("start_time_min", "start_time_max")
        )
        query = {
            "service": asked["service_name"],
            "start": str(int(begin.timestamp() * 1e6)),
            "end": str(int(end.timestamp() * 1e6)),
            "limit": asked.get("num_traces", "100"),
            "minDuration": asked.get("duration_min", "0ms"),
            "tags": asked.get("attributes", ""),
        }
        if "operation_name" in asked:
            query["operation"] = asked["operation_name"]
        found = self._matching(query)
        if not found:
            body = {"error": {"httpCode": 404, "message": "No traces found"}}
            return web.Response(status=404, text=web.json_response(body).text)
        spans = [one for trace in found for one in otlp_json(trace, same, enums_as_words=False)]
        return web.json_response({"result": {"resourceSpans": spans}})

    def _names(self) -> list[str]:
        return sorted({span.service for trace in self.traces.values() for span in trace.spans})

    async def _services(self, _request: web.Request) -> web.Response:
        return web.json_response({"data": self._names(), "total": 0, "errors": None})

    async def _services_v3(self, _request: web.Request) -> web.Response:
        return web.json_response({"services": self._names()})

    async def _v1(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        text = request.match_info["id"]
        if self.victoria:
            trace = self._found(text)
            data = [jaeger_json(trace, tags_as_text=True)] if trace else []
            return web.json_response(
                {"data": data, "errors": None, "limit": 0, "offset": 0, "total": 1}
            )
        if _ID.fullmatch(text) is None:
            return _v1_failure(400, "cannot parse trace id")
        trace = self._found(text)
        if trace is None:
            return _v1_failure(404, "trace not found")
        return web.json_response(
            {"data": [jaeger_json(trace)], "total": 0, "limit": 0, "offset": 0, "errors": None}
        )

    async def _v3(self, request: web.Request) -> web.Response:
        self.paths.append(request.path)
        text = request.match_info["id"]
        trace = self._found(text) if _ID.fullmatch(text) else None
        if trace is None:
            code, message = (404, "No traces found") if _ID.fullmatch(text) else (400, "bad id")
            body = {"error": {"httpCode": code, "message": message}}
            # Always sent as text.
            return web.Response(
                status=code, text=web.json_response(body).text, content_type="text/plain"
            )
        return web.json_response(
            {"result": {"resourceSpans": otlp_json(trace, same, enums_as_words=False)}}
        )


def _as_pushed(trace_id: str) -> str:
    """A tracer with 64-bit ids sent 16 digits, and text keeps them so."""
    return trace_id[16:] if trace_id.startswith("0" * 16) else trace_id


def _v1_failure(status: int, words: str) -> web.Response:
    body = {
        "data": None,
        "total": 0,
        "limit": 0,
        "offset": 0,
        "errors": [{"code": status, "msg": words}],
    }
    return web.Response(status=status, text=web.json_response(body).text, content_type="text/plain")
