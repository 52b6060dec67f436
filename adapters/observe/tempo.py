"""Traces on Grafana Tempo 1 and 2 (behaviour observed on 2.10)."""

import asyncio
from typing import Final

import httpx
from pydantic import BaseModel, Field, TypeAdapter

from adapters.observe.backend import Answer, Backend, read_body
from adapters.observe.otlp_answer import ResourceSpans, spans_of
from adapters.observe.trace_ids import trace_id_of
from tools.capabilities import Trace
from tools.errors import UpstreamFailed

# Spans reach the store some seconds after they end (Tempo's trace_idle_period is 5 s).
AGAIN_AFTER_S: Final = 2.0


class _Trace(BaseModel):
    resources: list[ResourceSpans] = Field(default_factory=list, alias="resourceSpans")
    batches: list[ResourceSpans] = Field(default_factory=list)


class _V2(BaseModel):
    trace: _Trace = _Trace()
    status: str = ""
    message: str = ""


_V1_BODY: Final = TypeAdapter(_Trace)
_V2_BODY: Final = TypeAdapter(_V2)


class TempoTraces:
    """One trace by id. `org_id` is the tenant; `again_after_s` how long late spans are waited for."""

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


def _is_unknown(answer: Answer) -> bool:
    """404 without a word is a trace that is not there; with words it is a wrong address."""
    return answer.status == 404 and not answer.body.strip()


async def _of_v2(answer: Answer, wanted: str) -> Trace | None:
    _check(answer)
    body = await read_body(answer, _V2_BODY)
    if body is None:
        raise UpstreamFailed("not a trace in OTLP's JSON", answer.status)
    spans = spans_of((*body.trace.resources, *body.trace.batches))
    notes = (f"{body.status}: {body.message}",) if body.status == "PARTIAL" else ()
    return Trace(wanted, spans, notes) if spans else None


async def _of_v1(answer: Answer, wanted: str) -> Trace | None:
    _check(answer)
    body = await read_body(answer, _V1_BODY)
    if body is None:
        raise UpstreamFailed("not a trace in OTLP's JSON", answer.status)
    spans = spans_of((*body.batches, *body.resources))
    return Trace(wanted, spans) if spans else None


def _check(answer: Answer) -> None:
    """Tempo's errors are plain text."""
    if not answer.ok:
        raise UpstreamFailed(answer.words() or "no explanation", answer.status)
