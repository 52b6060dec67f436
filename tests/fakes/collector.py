"""A collector on loopback that decodes what it is sent by the protocol's own messages."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_service
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.fixtures_http import serving


@dataclass
class FakeCollector:
    """`statuses` are answered first, one a request; `silent`: none is answered at all."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    silent: bool = False
    headers: list[dict[str, str]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    metrics: dict[str, Metric] = field(default_factory=dict)
    resource: dict[str, str] = field(default_factory=dict)

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.silent:
            await asyncio.Event().wait()
        if self.statuses:
            headers = {"retry-after": "0", "location": self.url + "/elsewhere"}
            return web.Response(status=self.statuses.pop(0), headers=headers)
        if request.path.endswith("/v1/metrics"):
            return self._metrics(body)
        told = trace_service.ExportTraceServiceRequest.FromString(body)
        for found in told.resource_spans:
            self.resource = values(found.resource.attributes)
            self.spans += [span for scope in found.scope_spans for span in scope.spans]
        return web.Response(body=b"")

    def _metrics(self, body: bytes) -> web.Response:
        told = metrics_service.ExportMetricsServiceRequest.FromString(body)
        scopes = [scope for found in told.resource_metrics for scope in found.scope_metrics]
        self.metrics |= {metric.name: metric for scope in scopes for metric in scope.metrics}
        return web.Response(body=b"")


def values(attributes: object) -> dict[str, str]:
    """The attributes that are texts."""
    pairs: list[KeyValue] = list(attributes)  # type: ignore[call-overload]
    return {
        pair.key: pair.value.string_value for pair in pairs if pair.value.HasField("string_value")
    }


@asynccontextmanager
async def collecting() -> AsyncIterator[FakeCollector]:
    """One that listens."""
    collector = FakeCollector()
    async with serving(collector.handle) as url:
        collector.url = url
        yield collector
