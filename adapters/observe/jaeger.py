"""Traces on Jaeger 1 and 2, and VictoriaTraces, through either of Jaeger's query APIs."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Literal

import httpx
from pydantic import Field, TypeAdapter

from adapters.observe.backend import Backend, read_body
from adapters.observe.instants import check_order, to_ns
from adapters.observe.jaeger_answer import JaegerTrace
from adapters.observe.otlp_answer import ResourceSpans, spans_of, traces_of
from adapters.observe.remembered import Remembered
from adapters.observe.trace_ids import spellings, trace_hex, trace_id_of
from adapters.observe.trace_search import MOST_TRACES, checked, fits, slowest, summary_of
from tools.capabilities import Interval, Trace, TraceQuery, TraceSample, TracesFound
from tools.errors import UpstreamFailed
from tools.outside_json import Entries, OutsideModel, Unread, left_out


class _Failure(OutsideModel):
    code: int = 0
    msg: str = ""


class _V1(OutsideModel):
    data: Entries[JaegerTrace] = Field(default_factory=list)
    errors: Entries[_Failure] = Field(default_factory=list)


class _Services(OutsideModel):
    data: Entries[str] = Field(default_factory=list)
    services: Entries[str] = Field(default_factory=list)


class _Result(OutsideModel):
    resources: Entries[ResourceSpans] = Field(default_factory=list, alias="resourceSpans")


class _V3(OutsideModel):
    result: _Result = _Result()


class _V3Error(OutsideModel):
    message: str = ""


class _V3Failure(OutsideModel):
    error: _V3Error = _V3Error()


_V1_BODY: Final = TypeAdapter(_V1)
_V3_BODY: Final = TypeAdapter(_V3)
_SERVICES: Final = TypeAdapter(_Services)
_SHOWN_SERVICES: Final = 20
_MOST_NOTES: Final = 5
_ENTRIES: Final = "traces or spans of Jaeger"
_SERVICES_LAST: Final = timedelta(minutes=5)
_MOST_SAMPLED: Final = 3  # services asked for one sample
_V3_FAILURE: Final = TypeAdapter(_V3Failure)


class JaegerTraces:
    """Traces by id and by search. `api` is `v1`, what Jaeger's own page uses, or `v3`, the stable one."""

    def __init__(self, client: httpx.AsyncClient, api: Literal["v1", "v3"] = "v1") -> None:
        self._backend = Backend("Jaeger", client)
        self._v3 = api == "v3"
        self._known: Remembered[Sequence[str]] = Remembered(_SERVICES_LAST)

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown. Raises InvalidArguments, UpstreamFailed, CapabilityUnavailable."""
        wanted = trace_id_of(trace_id)
        for spelling in spellings(wanted):
            trace = await (self._get_v3 if self._v3 else self._get_v1)(spelling, wanted)
            if trace is not None and trace.spans:
                return trace
        return None

    async def search(self, query: TraceQuery) -> TracesFound:
        """The slowest of those found first; an unknown service is said."""
        checked(query)
        unread = Unread()
        traces = await (self._search_v3 if self._v3 else self._search_v1)(query, unread)
        found = [summary_of(trace) for trace in traces if trace.spans and fits(trace, query)]
        notes = [] if found else await self._absence(query.product)
        notes += [*_notes_of(traces), *unread.notes(_ENTRIES)]
        if len(traces) >= MOST_TRACES:
            notes.append(
                f"Jaeger gave {MOST_TRACES} traces, its limit here; there may be slower ones"
            )
        return TracesFound(slowest(found, query.limit), notes)

    async def sample(self, products: Sequence[str], interval: Interval, limit: int) -> TraceSample:
        """Of the first few of these that it knows; Jaeger is asked service by service."""
        check_order(interval)
        known = set(await self._known.get("", self._services))
        asked = [product for product in products if product in known][:_MOST_SAMPLED]
        search = self._search_v3 if self._v3 else self._search_v1
        unread = Unread()
        answers = await asyncio.gather(
            *(search(TraceQuery(product, interval, limit=limit), unread) for product in asked)
        )
        found = {one.trace_id: one for answer in answers for one in answer if one.spans}
        newest = sorted(found.values(), key=lambda t: -min(span.start_us for span in t.spans))
        notes = [] if asked else ["none of these products is a service that Jaeger knows"]
        notes += [*_notes_of(newest), *unread.notes(_ENTRIES)]
        more = any(len(answer) >= min(limit, MOST_TRACES) for answer in answers)
        return TraceSample(newest[:limit], (), notes, 1 + len(asked), more)

    async def _services(self) -> Sequence[str]:
        answer = await self._backend.get("/api/v3/services" if self._v3 else "/api/services", {})
        if not answer.ok:
            return ()
        body = await read_body(answer, _SERVICES)
        return sorted((body.data or body.services) if body else ())

    async def _search_v1(self, query: TraceQuery, unread: Unread) -> Sequence[Trace]:
        params = {
            "service": query.product,
            "start": str(to_ns(query.interval.start) // 1000),
            "end": str(to_ns(query.interval.end) // 1000),
            "limit": str(MOST_TRACES),
        }
        if query.operation:
            params["operation"] = query.operation
        if query.min_duration_ms:
            params["minDuration"] = f"{query.min_duration_ms:g}ms"
        if query.errors:
            params["tags"] = '{"error":"true"}'
        answer = await self._backend.get("/api/traces", params)
        if answer.status == 404 and answer.body.lstrip().startswith(b"{"):
            return ()
        body = await read_body(answer, _V1_BODY, unread)
        if not answer.ok:
            words = "; ".join(one.msg for one in body.errors) if body else answer.words()
            raise UpstreamFailed(words or "no explanation", answer.status)
        if body is None:
            raise UpstreamFailed("not traces in Jaeger's JSON", answer.status)
        if body.errors and not body.data:
            raise UpstreamFailed("; ".join(one.msg for one in body.errors), answer.status)
        unread.count += len(body.errors)
        left_out(len(body.errors))
        return [Trace(trace_hex(one.trace_id), *one.read()) for one in body.data if one.spans]

    async def _search_v3(self, query: TraceQuery, unread: Unread) -> Sequence[Trace]:
        # Both spellings: the one with underscores is what versions before 2.20 read.
        asked = {
            ("service_name", "serviceName"): query.product,
            ("start_time_min", "startTimeMin"): query.interval.start.isoformat(),
            ("start_time_max", "startTimeMax"): query.interval.end.isoformat(),
            ("num_traces", "searchDepth"): str(MOST_TRACES),
            ("operation_name", "operationName"): query.operation,
            ("duration_min", "durationMin"): f"{query.min_duration_ms:g}ms"
            if query.min_duration_ms
            else "",
            ("attributes", "attributes"): '{"error":"true"}' if query.errors else "",
        }
        params = {
            f"query.{name}": value for names, value in asked.items() for name in names if value
        }
        answer = await self._backend.get("/api/v3/traces", params)
        if answer.status == 404 and answer.body.lstrip().startswith(b"{"):
            return ()
        if not answer.ok:
            failure = await read_body(answer, _V3_FAILURE)
            words = failure.error.message if failure else answer.words()
            raise UpstreamFailed(words or "no explanation", answer.status)
        body = await read_body(answer, _V3_BODY, unread)
        if body is None:
            raise UpstreamFailed("not traces in OTLP's JSON", answer.status)
        return [Trace(one, spans) for one, spans in traces_of(body.result.resources).items()]

    async def _absence(self, product: str) -> list[str]:
        services = await self._services()
        if not services or product in services:
            return []
        shown = ", ".join(services[:_SHOWN_SERVICES])
        return [f"Jaeger knows no service {product!r}; it has {len(services)}: {shown}"]

    async def _get_v1(self, spelling: str, wanted: str) -> Trace | None:
        answer = await self._backend.get(f"/api/traces/{spelling}", {})
        if answer.status == 404 and (not answer.body or answer.body.lstrip().startswith(b"{")):
            return None
        body = await read_body(answer, _V1_BODY)
        if not answer.ok:
            words = "; ".join(one.msg for one in body.errors) if body else answer.words()
            raise UpstreamFailed(words or "no explanation", answer.status)
        if body is None:
            raise UpstreamFailed("not a trace in Jaeger's JSON", answer.status)
        # `total` is 0 for traces on Jaeger and 1 for nothing on VictoriaTraces: only data counts.
        found = next((one for one in body.data if one.spans), None)
        return None if found is None else Trace(wanted, *found.read())

    async def _get_v3(self, spelling: str, wanted: str) -> Trace | None:
        answer = await self._backend.get(f"/api/v3/traces/{spelling}", {})
        if answer.status == 404 and answer.body.lstrip().startswith(b"{"):
            return None
        if not answer.ok:
            failure = await read_body(answer, _V3_FAILURE)
            words = failure.error.message if failure else answer.words()
            raise UpstreamFailed(words or "no explanation", answer.status)
        unread = Unread()
        body = await read_body(answer, _V3_BODY, unread)
        if body is None:
            raise UpstreamFailed("not a trace in OTLP's JSON", answer.status)
        return Trace(wanted, spans_of(body.result.resources), unread.notes(_ENTRIES))


def _notes_of(traces: Sequence[Trace]) -> Sequence[str]:
    return list(dict.fromkeys(note for trace in traces for note in trace.notes))[:_MOST_NOTES]
