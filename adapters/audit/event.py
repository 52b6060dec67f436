"""A row of the audit log as a CloudEvent, the same for every sink."""

from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

EVENT_TYPE: Final = "koder.admin.action"


def event_id(row: Mapping[str, JsonValue]) -> str:
    """The same for the same row, however often it is sent."""
    return f"{row['seq']}-{str(row['mac'])[:16]}"


def cloud_event(row: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md"""
    return {
        "specversion": "1.0",
        "type": EVENT_TYPE,
        "source": "kortex",
        "id": event_id(row),
        "time": row["at"],
        "subject": row["kind"],
        "datacontenttype": "application/json",
        "data": dict(row),
    }
