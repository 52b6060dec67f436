"""A stand-in for Tempo: 2.10 with both APIs, or an older one with the first only."""

import re
from collections.abc import Iterable

from aiohttp import web

from tests.fakes.trace_shapes import in_base64, otlp_json
from tools.capabilities import Trace

_ID = re.compile(r"[0-9a-fA-F]{1,32}")


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
        if self.has_v2:
            app.router.add_get("/api/v2/traces/{id}", self._v2)
        return app

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
