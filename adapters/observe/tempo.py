"""Traces on Grafana Tempo 1 and 2 (behaviour observed on 2.10)."""

import asyncio
import math
import re
from collections.abc import Sequence
from typing import Final

import httpx
from pydantic import Field, TypeAdapter

from adapters.observe.backend import Answer, Backend, read_body
from adapters.observe.instants import check_order
from adapters.observe.line_filter import quoted
from adapters.observe.otlp_answer import ResourceSpans, spans_of
from adapters.observe.trace_ids import trace_hex, trace_id_of
from adapters.observe.trace_search import MOST_TRACES, checked, slowest
from tools.capabilities import (
    Interval,
    Trace,
    TraceQuery,
    TraceSample,
    TracesFound,
    TraceSummary,
)
from tools.errors import UpstreamFailed
from tools.outside_json import Entries, OutsideModel, Unread

# Spans reach the store some seconds after they end (Tempo's trace_idle_period is 5 s).
AGAIN_AFTER_S: Final = 2.0


class _Trace(OutsideModel):
    resources: Entries[ResourceSpans] = Field(default_factory=list, alias="resourceSpans")
    batches: Entries[ResourceSpans] = Field(default_factory=list)


class _V2(OutsideModel):
    trace: _Trace = _Trace()
    status: str = ""
    message: str = ""


class _Stats(OutsideModel):
    spans: int = Field(default=0, alias="spanCount")
    errors: int = Field(default=0, alias="errorCount")


class _Summary(OutsideModel):
    trace_id: str = Field(default="", alias="traceID")
    service: str = Field(default="", alias="rootServiceName")
    operation: str = Field(default="", alias="rootTraceName")
    start_ns: int = Field(default=0, ge=0, lt=2**63, alias="startTimeUnixNano")
    duration_ms: float = Field(default=0.0, alias="durationMs")
    stats: dict[str, _Stats] = Field(default_factory=dict, alias="serviceStats")  # since 2.4

    def read(self) -> TraceSummary:
        """Tempo leaves a duration under a millisecond out."""
        return TraceSummary(
            trace_hex(self.trace_id),
            self.start_ns // 1000,
            round(self.duration_ms * 1000),
            self.service,
            self.operation,
            tuple(sorted(self.stats)),
            sum(one.spans for one in self.stats.values()) if self.stats else None,
            sum(one.errors for one in self.stats.values()) if self.stats else None,
        )


class _Searched(OutsideModel):
    completed: int = Field(default=0, alias="completedJobs")
    total: int = Field(default=0, alias="totalJobs")


class _Found(OutsideModel):
    traces: Entries[_Summary] = Field(default_factory=list)
    metrics: _Searched = _Searched()


class _TagValues(OutsideModel):
    values: Entries[str] = Field(default_factory=list, alias="tagValues")


_FOUND: Final = TypeAdapter(_Found)
_TAG_VALUES: Final = TypeAdapter(_TagValues)
_SHOWN_SERVICES: Final = 20
_MOST_SAMPLED: Final = 2  # each is a request
_V1_BODY: Final = TypeAdapter(_Trace)
_V2_BODY: Final = TypeAdapter(_V2)


class TempoTraces:
    """Traces by id and by search. `org_id` is the tenant; `again_after_s` how long late spans are waited for."""

    def __init__(
        self, client: httpx.AsyncClient, org_id: str = "", again_after_s: float = AGAIN_AFTER_S
    ) -> None:
        self._backend = Backend("Tempo", client, org_id)
        self._again_after_s = again_after_s
        self._has_v2 = True  # until an older Tempo says otherwise

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown, also a moment later.

        Raises InvalidArguments, UpstreamFailed, CapabilityUnavailable.
        """
        wanted = trace_id_of(trace_id)
        found = await self._look(wanted)
        if found is None:
            await asyncio.sleep(self._again_after_s)
            found = await self._look(wanted)
        return found

    async def search(self, query: TraceQuery) -> TracesFound:
        """TraceQL: the slowest of those found first; an unknown service is said."""
        checked(query)
        params = {
            "q": _traceql(query),
            "start": str(int(query.interval.start.timestamp())),
            "end": str(math.ceil(query.interval.end.timestamp())),
            "limit": str(MOST_TRACES),
        }
        answer = await self._backend.get("/api/search", params, _JSON)
        _check(answer)
        unread = Unread()
        body = await read_body(answer, _FOUND, unread)
        if body is None:
            raise UpstreamFailed("not a list of traces", answer.status)
        found = [one.read() for one in body.traces]
        notes = [] if found else await self._absence(query.product)
        notes += unread.notes("traces")
        if len(found) >= MOST_TRACES:
            notes.append(
                f"Tempo gave {MOST_TRACES} traces, its limit here; there may be slower ones"
            )
        if body.metrics.completed < body.metrics.total:
            notes.append("Tempo did not search all of its blocks: there may be more")
        return TracesFound(slowest(found, query.limit), notes)

    async def sample(self, products: Sequence[str], interval: Interval, limit: int) -> TraceSample:
        """Found by one search for any of these, then read one by one: a few, Tempo gives no more."""
        check_order(interval)
        names = "|".join(re.escape(product) for product in products)
        params = {
            "q": f"{{resource.service.name=~{quoted(names)}}}",
            "start": str(int(interval.start.timestamp())),
            "end": str(math.ceil(interval.end.timestamp())),
            "limit": str(min(limit, _MOST_SAMPLED)),
        }
        answer = await self._backend.get("/api/search", params, _JSON)
        _check(answer)
        body = await read_body(answer, _FOUND)
        ids = [one.read().trace_id for one in body.traces] if body else []
        read = await asyncio.gather(*(self._look(trace_id_of(one)) for one in ids[:_MOST_SAMPLED]))
        traces = [one for one in read if one is not None and one.spans]
        newest = sorted(traces, key=lambda t: -min(span.start_us for span in t.spans))
        return TraceSample(newest, (), (), 1 + len(read), more=len(ids) >= _MOST_SAMPLED)

    async def _absence(self, product: str) -> list[str]:
        answer = await self._backend.get("/api/search/tag/service.name/values", {}, _JSON)
        if not answer.ok:
            return []
        body = await read_body(answer, _TAG_VALUES)
        services = sorted(body.values) if body else []
        if not services or product in services:
            return []
        shown = ", ".join(services[:_SHOWN_SERVICES])
        return [f"Tempo knows no service {product!r}; it has {len(services)}: {shown}"]

    async def _look(self, wanted: str) -> Trace | None:
        if self._has_v2:
            answer = await self._backend.get(f"/api/v2/traces/{wanted}", {}, _JSON)
            # An unknown trace is 200 with nothing in it here; 404 is an API that is not there.
            if answer.status != 404:
                return await _of_v2(answer, wanted)
        answer = await self._backend.get(f"/api/traces/{wanted}", {}, _JSON)
        found = None if _is_unknown(answer) else await _of_v1(answer, wanted)
        self._has_v2 = self._has_v2 and found is None
        return found


_JSON: Final = {"Accept": "application/json"}


def _traceql(query: TraceQuery) -> str:
    """https://grafana.com/docs/tempo/latest/traceql/: all conditions of one span."""
    asked = [f"resource.service.name = {quoted(query.product)}"]
    if query.operation:
        asked.append(f"name = {quoted(query.operation)}")
    if query.min_duration_ms:
        asked.append(f"duration >= {round(query.min_duration_ms * 1000)}us")
    if query.errors:
        asked.append("status = error")
    return "{ " + " && ".join(asked) + " }"


def _is_unknown(answer: Answer) -> bool:
    """404 without a word is a trace that is not there; with words it is a wrong address."""
    return answer.status == 404 and not answer.body.strip()


async def _of_v2(answer: Answer, wanted: str) -> Trace | None:
    _check(answer)
    unread = Unread()
    body = await read_body(answer, _V2_BODY, unread)
    if body is None:
        raise UpstreamFailed("not a trace in OTLP's JSON", answer.status)
    spans = spans_of((*body.trace.resources, *body.trace.batches))
    partial = (f"{body.status}: {body.message}",) if body.status == "PARTIAL" else ()
    return Trace(wanted, spans, (*partial, *unread.notes("spans"))) if spans else None


async def _of_v1(answer: Answer, wanted: str) -> Trace | None:
    _check(answer)
    unread = Unread()
    body = await read_body(answer, _V1_BODY, unread)
    if body is None:
        raise UpstreamFailed("not a trace in OTLP's JSON", answer.status)
    spans = spans_of((*body.batches, *body.resources))
    return Trace(wanted, spans, unread.notes("spans")) if spans else None


def _check(answer: Answer) -> None:
    """Tempo's errors are plain text."""
    if not answer.ok:
        raise UpstreamFailed(answer.words() or "no explanation", answer.status)
