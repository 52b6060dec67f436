"""A fake of Tempo: 2.10 with both APIs, or an older one with the first only."""

import json
import re
from collections.abc import Iterable

from aiohttp import web

from tests.fakes.trace_shapes import in_base64, otlp_json
from tools.capabilities import Span, Trace

_ID = re.compile(r"[0-9a-fA-F]{1,32}")


_CONDITION = re.compile(r'([a-z.]+) (=|>=) ("(?:[^"\\]|\\.)*"|\w+)')


def _holds(span: Span, name: str, _operator: str, value: str) -> bool:
    match name:
        case "resource.service.name":
            return bool(span.service == json.loads(value))
        case "name":
            return bool(span.operation == json.loads(value))
        case "duration":
            return span.duration_us >= int(value.removesuffix("us"))
        case _:
            return span.status == value


def _listed(trace: Trace) -> dict[str, object]:
    begun = min(span.start_us for span in trace.spans)
    ended = max(span.start_us + span.duration_us for span in trace.spans)
    root = min(trace.spans, key=lambda span: (bool(span.parent_id), span.start_us))
    services = {span.service for span in trace.spans}
    stats = {
        name: {
            "spanCount": sum(span.service == name for span in trace.spans),
            "errorCount": sum(s.service == name and s.status == "error" for s in trace.spans),
        }
        for name in services
    }
    return {
        "traceID": trace.trace_id.lstrip("0"),
        "rootServiceName": root.service,
        "rootTraceName": root.operation,
        "startTimeUnixNano": str(begun * 1000),
        "durationMs": (ended - begun) // 1000,
        "serviceStats": stats,
    }


class TempoServer:
    """Holds traces. `late` answers "unknown" that many times first; `partial` marks every trace."""

    def __init__(
        self,
        traces: Iterable[Trace],
        *,
        has_v2: bool = True,
        late: int = 0,
        partial: str = "",
        tenant: str = "",
    ) -> None:
        self.traces = {int(trace.trace_id, 16): trace for trace in traces}
        self.has_v2 = has_v2
        self.late = late
        self.partial = partial
        self.tenant = tenant
        self.paths: list[str] = []

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/api/traces/{id}", self._v1)
        app.router.add_get("/api/search", self._search)
        app.router.add_get("/api/search/tag/service.name/values", self._services)
        if self.has_v2:
            app.router.add_get("/api/v2/traces/{id}", self._v2)
        return app

    async def _search(self, request: web.Request) -> web.Response:
        """TraceQL of one spanset; seconds; at most 20 traces when no limit is named."""
        asked = _CONDITION.findall(request.query["q"])
        start_us = int(request.query["start"]) * 1_000_000
        end_us = int(request.query["end"]) * 1_000_000
        found = [
            trace
            for trace in self.traces.values()
            if any(
                start_us <= span.start_us < end_us and all(_holds(span, *one) for one in asked)
                for span in trace.spans
            )
        ]
        listed = [_listed(trace) for trace in found[: int(request.query.get("limit", "20"))]]
        return web.json_response(
            {"traces": listed, "metrics": {"completedJobs": 1, "totalJobs": 1}}
        )

    async def _services(self, _request: web.Request) -> web.Response:
        names = {span.service for trace in self.traces.values() for span in trace.spans}
        return web.json_response({"tagValues": sorted(names)})

    def _refusal(self, request: web.Request) -> web.Response | None:
        self.paths.append(request.path)
        if self.tenant and request.headers.get("X-Scope-OrgID") != self.tenant:
            return web.Response(status=401, text="no org id")
        if _ID.fullmatch(request.match_info["id"]) is None:
            return web.Response(status=400, text="trace IDs can only contain hex characters")
        return None

    def _found(self, request: web.Request) -> Trace | None:
        if self.late > 0:
            self.late -= 1
            return None
        return self.traces.get(int(request.match_info["id"], 16))

    async def _v2(self, request: web.Request) -> web.Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        trace = self._found(request)
        if trace is None:
            return web.json_response({"trace": {}, "metrics": {}})
        spans = otlp_json(trace, in_base64, enums_as_words=True)
        body: dict[str, object] = {"trace": {"resourceSpans": spans}, "metrics": {}}
        if self.partial:
            body |= {"status": "PARTIAL", "message": self.partial}
        return web.json_response(body)

    async def _v1(self, request: web.Request) -> web.Response:
        refusal = self._refusal(request)
        if refusal is not None:
            return refusal
        trace = self._found(request)
        if trace is None:
            return web.Response(status=404)
        return web.json_response({"batches": otlp_json(trace, in_base64, enums_as_words=True)})
