"""Reading spans in OTLP's JSON, in every spelling that Tempo and Jaeger give it.

Enums as words or numbers, ids as hex or base64, 64-bit numbers as text, defaults left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from pydantic import Field, JsonValue

from adapters.observe.trace_ids import span_hex, trace_hex
from tools.capabilities import Span
from tools.outside_json import Entries, OutsideModel

_STATUS: Final[Mapping[str, str]] = {
    "1": "ok",
    "2": "error",
    "STATUS_CODE_OK": "ok",
    "STATUS_CODE_ERROR": "error",
}
_EXCEPTION_MESSAGE: Final = "exception.message"
# Process attributes that show people where to look.
RESOURCE_TAGS: Final = frozenset(
    {"host.name", "service.version", "k8s.pod.name", "deployment.environment"}
)


class _Attribute(OutsideModel):
    key: str = ""
    value: dict[str, JsonValue] = Field(default_factory=dict)


class _Status(OutsideModel):
    code: int | str = 0
    message: str = ""


class _Event(OutsideModel):
    attributes: Entries[_Attribute] = Field(default_factory=list)


class _Span(OutsideModel):
    trace_id: str = Field(default="", alias="traceId")
    span_id: str = Field(default="", alias="spanId")
    parent_id: str = Field(default="", alias="parentSpanId")
    name: str = ""
    start_ns: int = Field(default=0, ge=0, lt=2**63, alias="startTimeUnixNano")
    end_ns: int = Field(default=0, ge=0, lt=2**63, alias="endTimeUnixNano")
    attributes: Entries[_Attribute] = Field(default_factory=list)
    events: Entries[_Event] = Field(default_factory=list)
    status: _Status = _Status()


class _Scope(OutsideModel):
    spans: Entries[_Span] = Field(default_factory=list)


class _Resource(OutsideModel):
    attributes: Entries[_Attribute] = Field(default_factory=list)


class ResourceSpans(OutsideModel):
    """The spans of one process. Versions before 0.15 say instrumentationLibrarySpans."""

    resource: _Resource = _Resource()
    scopes: Entries[_Scope] = Field(default_factory=list, alias="scopeSpans")
    old_scopes: Entries[_Scope] = Field(default_factory=list, alias="instrumentationLibrarySpans")


def spans_of(resources: Iterable[ResourceSpans]) -> Sequence[Span]:
    """The spans, in no particular order, duplicates among them."""
    return tuple(span for resource in resources for span in _of_resource(resource))


def traces_of(resources: Iterable[ResourceSpans]) -> Mapping[str, Sequence[Span]]:
    found: dict[str, list[Span]] = {}
    for resource in resources:
        for trace_id, span in _with_trace(resource):
            found.setdefault(trace_hex(trace_id), []).append(span)
    return found


def _of_resource(resource: ResourceSpans) -> Iterator[Span]:
    return (span for _trace_id, span in _with_trace(resource))


def _with_trace(resource: ResourceSpans) -> Iterator[tuple[str, Span]]:
    about = _texts(resource.resource.attributes)
    service = about.get("service.name", "")
    kept = {name: value for name, value in about.items() if name in RESOURCE_TAGS}
    for scope in (*resource.scopes, *resource.old_scopes):
        for span in scope.spans:
            yield span.trace_id, _span(span, service, kept)


def _span(span: _Span, service: str, kept: Mapping[str, str]) -> Span:
    start_us, end_us = span.start_ns // 1000, span.end_ns // 1000
    return Span(
        span_hex(span.span_id),
        _parent(span.parent_id),
        service,
        span.name,
        start_us,
        max(0, end_us - start_us),
        status=_STATUS.get(str(span.status.code), "unset"),
        message=span.status.message or _exception(span.events),
        tags={**kept, **_texts(span.attributes)},
    )


def _parent(text: str) -> str:
    """Empty for a root; some exporters write eight zero bytes instead."""
    found = span_hex(text)
    return found if found.strip("0") else ""


def _exception(events: Iterable[_Event]) -> str:
    said = (_texts(event.attributes).get(_EXCEPTION_MESSAGE, "") for event in events)
    return next((text for text in said if text), "")


def _texts(attributes: Iterable[_Attribute]) -> dict[str, str]:
    return {one.key: _text(one.value) for one in attributes}


def _text(value: Mapping[str, JsonValue]) -> str:
    """`{"intValue": "5"}` as `5`. The value has one member; an empty one is an empty text."""
    inner = next(iter(value.values()), "")
    if isinstance(inner, str):
        return inner
    return json.dumps(inner, separators=(",", ":"))
