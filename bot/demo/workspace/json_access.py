"""Reading JSON in Slack's shapes: a missing or mistyped member reads as empty."""

from pydantic import JsonValue

JsonObject = dict[str, JsonValue]


def as_object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def object_at(source: JsonObject, key: str) -> JsonObject:
    return as_object(source.get(key))


def objects_at(source: JsonObject, key: str) -> list[JsonObject]:
    """The objects in the list under a key; other members are skipped."""
    value = source.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_at(source: JsonObject, key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""
