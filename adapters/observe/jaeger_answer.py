"""Reading Jaeger's own JSON (the API its page uses): spans that refer to processes and parents.

Times are microseconds. VictoriaTraces answers in the same shape with every tag as text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pydantic import Field, JsonValue, TypeAdapter

from adapters.observe.otlp_answer import RESOURCE_TAGS
from adapters.observe.trace_ids import span_hex, trace_hex
from tools.capabilities import Span
from tools.outside_json import Entries, OutsideModel, readable, unread_note

_STATUS_CODE: Final = "otel.status_code"
_STATUS_WORDS: Final = "otel.status_description"
# Said by a span's status and message already.
_CONSUMED: Final = frozenset({"error", _STATUS_CODE, _STATUS_WORDS})
_STATUS: Final[Mapping[str, str]] = {"ERROR": "error", "OK": "ok"}
_LOG_WORDS: Final = ("exception.message", "error.message", "message", "error.object", "event")


class _Tag(OutsideModel):
    key: str = ""
    value: JsonValue = None


class _Reference(OutsideModel):
    kind: str = Field(default="CHILD_OF", alias="refType")
    trace_id: str = Field(default="", alias="traceID")
    span_id: str = Field(default="", alias="spanID")


class _Log(OutsideModel):
    fields: Entries[_Tag] = Field(default_factory=list)


class _Span(OutsideModel):
    trace_id: str = Field(default="", alias="traceID")
    span_id: str = Field(default="", alias="spanID")
    parent_id: str = Field(default="", alias="parentSpanID")
    operation: str = Field(default="", alias="operationName")
    references: Entries[_Reference] = Field(default_factory=list)
    start_us: int = Field(default=0, ge=0, lt=2**63 // 1000, alias="startTime")
    duration_us: int = Field(default=0, alias="duration")
    tags: Entries[_Tag] = Field(default_factory=list)
    logs: Entries[_Log] = Field(default_factory=list)
    process_id: str = Field(default="", alias="processID")
    warnings: Entries[str] = Field(default_factory=list)


class _Process(OutsideModel):
    service: str = Field(default="", alias="serviceName")
    tags: Entries[_Tag] = Field(default_factory=list)


class JaegerTrace(OutsideModel):
    """One trace of the answer's `data`."""

    trace_id: str = Field(default="", alias="traceID")
    spans: list[object] = Field(default_factory=list)
    processes: dict[str, object] = Field(default_factory=dict)
    warnings: Entries[str] = Field(default_factory=list)

    def read(self) -> tuple[Sequence[Span], Sequence[str]]:
        spans, unreadable = readable(_SPANS, self.spans)
        processes = {
            name: process
            for name, entry in self.processes.items()
            for process in readable(_PROCESSES, [entry])[0]
        }
        said = [*(self.warnings or ()), *(w for span in spans for w in span.warnings or ())]
        said.append(unread_note(unreadable, f"of {len(self.spans)} spans"))
        return (
            tuple(_span(span, processes.get(span.process_id, _UNKNOWN)) for span in spans),
            tuple(note for note in dict.fromkeys(said) if note),
        )


_SPANS: Final = TypeAdapter(Entries[_Span])
_PROCESSES: Final = TypeAdapter(Entries[_Process])
_UNKNOWN: Final = _Process()


def _span(span: _Span, process: _Process) -> Span:
    tags = _texts(span.tags)
    about = {name: text for name, text in _texts(process.tags).items() if name in RESOURCE_TAGS}
    return Span(
        span_hex(span.span_id),
        _parent(span),
        process.service,
        span.operation,
        span.start_us,
        max(0, span.duration_us),
        status=_status(tags),
        message=tags.get(_STATUS_WORDS, "") or _logged(span.logs, tags),
        tags={**about, **{n: text for n, text in tags.items() if n not in _CONSUMED}},
    )


def _parent(span: _Span) -> str:
    """The first CHILD_OF within the trace, else what it follows from, else the plain field."""
    here = trace_hex(span.trace_id)
    inside = [one for one in span.references if trace_hex(one.trace_id) == here]
    ordered = sorted(inside, key=lambda one: one.kind != "CHILD_OF")
    return span_hex(next((one.span_id for one in ordered), span.parent_id))


def _status(tags: Mapping[str, str]) -> str:
    """`error` is a boolean, or a text that may say "false" or "unset"."""
    if tags.get("error", "").lower() == "true":
        return "error"
    return _STATUS.get(tags.get(_STATUS_CODE, "").upper(), "unset")


def _logged(logs: Iterable[_Log], tags: Mapping[str, str]) -> str:
    if _status(tags) != "error":
        return ""
    for log in logs:
        fields = _texts(log.fields)
        if fields.get("event", "error") in {"error", "exception"}:
            return next((fields[name] for name in _LOG_WORDS if fields.get(name)), "")
    return ""


def _texts(tags: Iterable[_Tag]) -> dict[str, str]:
    return {tag.key: _text(tag.value) for tag in tags}


def _text(value: JsonValue) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
