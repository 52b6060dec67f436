"""Traces on Jaeger 1 and 2, and VictoriaTraces, through either of Jaeger's query APIs."""

from typing import Final, Literal

import httpx
from pydantic import BaseModel, Field, TypeAdapter

from adapters.observe.backend import Backend, read_body
from adapters.observe.jaeger_answer import JaegerTrace
from adapters.observe.otlp_answer import ResourceSpans, spans_of
from adapters.observe.trace_ids import spellings, trace_id_of
from tools.capabilities import Trace
from tools.errors import UpstreamFailed


class _Failure(BaseModel):
    code: int = 0
    msg: str = ""


class _V1(BaseModel):
    data: list[JaegerTrace] | None = None
    errors: list[_Failure] | None = None


class _Result(BaseModel):
    resources: list[ResourceSpans] = Field(default_factory=list, alias="resourceSpans")


class _V3(BaseModel):
    result: _Result = _Result()


class _V3Error(BaseModel):
    message: str = ""


class _V3Failure(BaseModel):
    error: _V3Error = _V3Error()


_V1_BODY: Final = TypeAdapter(_V1)
_V3_BODY: Final = TypeAdapter(_V3)
_V3_FAILURE: Final = TypeAdapter(_V3Failure)


class JaegerTraces:
    """One trace by id. `api` is `v1`, what Jaeger's own page uses, or `v3`, the stable one."""

    def __init__(self, client: httpx.AsyncClient, api: Literal["v1", "v3"] = "v1") -> None:
        self._backend = Backend("Jaeger", client)
        self._v3 = api == "v3"

    async def get(self, trace_id: str) -> Trace | None:
        """None when unknown. Raises InvalidArguments, UpstreamFailed, CapabilityUnavailable."""
        wanted = trace_id_of(trace_id)
        for spelling in spellings(wanted):
            trace = await (self._get_v3 if self._v3 else self._get_v1)(spelling, wanted)
            if trace is not None and trace.spans:
                return trace
        return None

    async def _get_v1(self, spelling: str, wanted: str) -> Trace | None:
        answer = await self._backend.get(f"/api/traces/{spelling}", {})
        if answer.status == 404 and (not answer.body or answer.body.lstrip().startswith(b"{")):
            return None
        body = await read_body(answer, _V1_BODY)
        if not answer.ok:
            words = "; ".join(one.msg for one in body.errors or ()) if body else answer.words()
            raise UpstreamFailed(words or "no explanation", answer.status)
        if body is None:
            raise UpstreamFailed("not a trace in Jaeger's JSON", answer.status)
        # `total` is 0 for traces on Jaeger and 1 for nothing on VictoriaTraces: only data counts.
        found = next((one for one in body.data or () if one.spans), None)
        return None if found is None else Trace(wanted, found.read(), found.notes())

    async def _get_v3(self, spelling: str, wanted: str) -> Trace | None:
        answer = await self._backend.get(f"/api/v3/traces/{spelling}", {})
        if answer.status == 404 and answer.body.lstrip().startswith(b"{"):
            return None
        if not answer.ok:
            failure = await read_body(answer, _V3_FAILURE)
            words = failure.error.message if failure else answer.words()
            raise UpstreamFailed(words or "no explanation", answer.status)
        body = await read_body(answer, _V3_BODY)
        if body is None:
            raise UpstreamFailed("not a trace in OTLP's JSON", answer.status)
        return Trace(wanted, spans_of(body.result.resources))
