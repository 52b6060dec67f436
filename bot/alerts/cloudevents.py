"""CloudEvents 1.0 over HTTP, structured, batched or binary: source and subject are one incident.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md An
event says that something is over by the last word of its type, or by `status` or `state` of its
data: `resolved`, `closed`, `ok` and the like. Any other event is firing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Final, Literal
from urllib.parse import unquote

import structlog
from pydantic import (
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
)

from bot.alerts.wire import Headers, Unreadable, has_token, since, unreadable
from bot.domain.alerts import Alert, AlertState
from tools.outside_json import (
    Entries,
    Lenient,
    OutsideModel,
    Text,
    as_text,
    parse,
    readable,
    shaped,
)

_log = structlog.stdlib.get_logger(__name__)

CLOUDEVENTS: Final = "cloudevents"
_ONE: Final = "application/cloudevents+json"
_BATCH: Final = "application/cloudevents-batch+json"
_OVER: Final = frozenset(
    {"resolved", "resolve", "closed", "close", "ok", "recovered", "inactive", "normal", "cleared"}
)
_TITLE: Final = ("summary", "title", "message", "description")
_LABELS: Final = ("service", "product", "severity", "status", "alertname", "name")


class _Event(OutsideModel):
    model_config = ConfigDict(extra="allow")

    specversion: Annotated[Literal["1.0"], BeforeValidator(as_text)]
    id: Text = Field(min_length=1, max_length=2048)
    source: Text = Field(min_length=1, max_length=2048)
    type: Text = Field(min_length=1, max_length=512)
    subject: Lenient[Annotated[Text, Field(max_length=2048)]] = ""
    time: Lenient[AwareDatetime | None] = None
    data: JsonValue = None


_EVENTS: Final = TypeAdapter(list[object])
_EVENT: Final = TypeAdapter(_Event)
_READ: Final = TypeAdapter(Entries[_Event])
_JSON: Final = TypeAdapter(JsonValue)


@dataclass(frozen=True, slots=True)
class CloudEventsWire:
    """Believed by a bearer token."""

    token: str

    @property
    def source(self) -> str:
        return CLOUDEVENTS

    def admits(self, headers: Headers, body: bytes) -> bool:  # noqa: ARG002 - as the port says
        return has_token(headers, self.token)

    def read(self, headers: Headers, body: bytes, received_at: datetime) -> Sequence[Alert]:
        """An alert an event. Raises Unreadable."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if kind == _BATCH:
                events = self._batch(body)
            elif kind == _ONE:
                events = [parse(_EVENT, body)]
            elif "ce-specversion" in headers:
                events = [shaped(_EVENT, _binary(headers, kind, body))]
            else:
                raise Unreadable(f"send {_ONE}, {_BATCH} or ce- headers")
        except ValidationError as error:
            raise unreadable(error) from None
        return [_alert(event, received_at) for event in events]

    def _batch(self, body: bytes) -> list[_Event]:
        entries = parse(_EVENTS, body)
        events, unreadable_count = readable(_READ, entries)
        if unreadable_count and not events:
            raise Unreadable(f"none of the {unreadable_count} events can be read")
        if unreadable_count:
            _log.warning("alerts.unreadable", source=self.source, count=unreadable_count)
        return events


def _binary(headers: Headers, kind: str, body: bytes) -> dict[str, JsonValue]:
    """The attributes are headers, percent-encoded; the body is the data, when it is JSON."""
    found: dict[str, JsonValue] = {
        name.removeprefix("ce-"): unquote(value, errors="replace")
        for name, value in headers.items()
        if name.startswith("ce-")
    }
    is_json = kind.endswith(("/json", "+json"))
    return {**found, "data": parse(_JSON, body) if is_json and body else None}


def _alert(event: _Event, received_at: datetime) -> Alert:
    data = event.data if isinstance(event.data, dict) else {}
    group = f"{event.source}\n{event.subject}"
    return Alert(
        source=CLOUDEVENTS,
        group=group,
        id=group,
        state=_state(event, data),
        title=next((t for t in (_text(data.get(name)) for name in _TITLE) if t), event.type),
        labels=_labels(event, data),
        changed_at=since(event.time, received_at),
    )


def _state(event: _Event, data: Mapping[str, JsonValue]) -> AlertState:
    words = [_text(data.get("status")), _text(data.get("state")), event.type.rpartition(".")[2]]
    said = next((word.lower() for word in words if word), "")
    return AlertState.RESOLVED if said in _OVER else AlertState.FIRING


def _labels(event: _Event, data: Mapping[str, JsonValue]) -> dict[str, str]:
    """The data's `labels`, its usual fields, the sender's own attributes, and whence it is."""
    given = data.get("labels")
    named = given if isinstance(given, dict) else {}
    usual = {name: data[name] for name in _LABELS if name in data}
    own = {"type": event.type, "source": event.source, "subject": event.subject}
    every: dict[str, object] = {**(event.model_extra or {}), **usual, **named, **own}
    return {name: text for name, value in every.items() if (text := as_text(value))}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""
