"""A trace in the JSON of Jaeger's page and of OTLP, as each store spells it."""

import base64
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from tools.capabilities import Span, Trace


def jaeger_json(trace: Trace, *, tags_as_text: bool = False) -> dict[str, Any]:
    """One element of Jaeger's `data`; VictoriaTraces writes every tag as text."""
    processes = {f"p{n}": name for n, name in enumerate(sorted({s.service for s in trace.spans}))}
    ids = {name: key for key, name in processes.items()}
    return {
        "traceID": trace.trace_id,
        "spans": [_jaeger_span(span, trace, ids, tags_as_text) for span in trace.spans],
        "processes": {key: {"serviceName": name, "tags": []} for key, name in processes.items()},
        "warnings": None,
    }


def _jaeger_span(
    span: Span, trace: Trace, processes: Mapping[str, str], tags_as_text: bool
) -> dict[str, Any]:
    tags = [{"key": k, "type": "string", "value": v} for k, v in span.tags.items()]
    failed = span.status == "error"
    if tags_as_text:
        tags.append({"key": "error", "type": "string", "value": "true" if failed else "unset"})
    elif failed:
        tags.append({"key": "error", "type": "bool", "value": True})  # type: ignore[dict-item]
    if span.status != "unset":
        tags.append({"key": "otel.status_code", "type": "string", "value": span.status.upper()})
    if span.message:
        tags.append({"key": "otel.status_description", "type": "string", "value": span.message})
    parent = {"refType": "CHILD_OF", "traceID": trace.trace_id, "spanID": span.parent_id}
    return {
        "traceID": trace.trace_id,
        "spanID": span.span_id,
        "operationName": span.operation,
        "references": [parent] if span.parent_id else [],
        "startTime": span.start_us,
        "duration": span.duration_us,
        "tags": tags,
        "logs": [],
        "processID": processes[span.service],
        "warnings": None,
    }


def same(text: str) -> str:
    """Ids as they are: hex."""
    return text


def in_base64(text: str) -> str:
    """Ids as Tempo writes them."""
    return base64.b64encode(bytes.fromhex(text)).decode()


_WORDS = {"ok": "STATUS_CODE_OK", "error": "STATUS_CODE_ERROR"}
_NUMBERS = {"ok": 1, "error": 2}


def otlp_json(
    trace: Trace, spell: Callable[[str], str], *, enums_as_words: bool
) -> list[dict[str, Any]]:
    """`resourceSpans`, one per service; what has its default value is left out."""
    by_service: dict[str, list[Span]] = defaultdict(list)
    for span in trace.spans:
        by_service[span.service].append(span)
    return [
        {
            "resource": {"attributes": [_attribute("service.name", name)]},
            "scopeSpans": [
                {"scope": {}, "spans": [_otlp_span(s, trace, spell, enums_as_words) for s in spans]}
            ],
        }
        for name, spans in by_service.items()
    ]


def _otlp_span(
    span: Span, trace: Trace, spell: Callable[[str], str], enums_as_words: bool
) -> dict[str, Any]:
    codes: Mapping[str, str | int] = _WORDS if enums_as_words else _NUMBERS
    status: dict[str, str | int] = {}
    if span.status in codes:
        status["code"] = codes[span.status]
    if span.message:
        status["message"] = span.message
    parent = {"parentSpanId": spell(span.parent_id)} if span.parent_id else {}
    return {
        "traceId": spell(trace.trace_id),
        "spanId": spell(span.span_id),
        **parent,
        "name": span.operation,
        "kind": "SPAN_KIND_SERVER" if enums_as_words else 2,
        "startTimeUnixNano": str(span.start_us * 1000),
        "endTimeUnixNano": str((span.start_us + span.duration_us) * 1000),
        "attributes": [_attribute(name, value) for name, value in span.tags.items()],
        "status": status,
    }


def _attribute(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}
