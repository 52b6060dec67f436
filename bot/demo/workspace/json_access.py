"""Reading JSON in Slack's shapes: a missing or mistyped member reads as empty."""

from pydantic import JsonValue

JsonObject = dict[str, JsonValue]


def as_object(value: JsonValue) -> JsonObject:
    """The object, or an empty one."""
    return value if isinstance(value, dict) else {}


def object_at(source: JsonObject, key: str) -> JsonObject:
    """The object under a key, or an empty one."""
    return as_object(source.get(key))


def objects_at(source: JsonObject, key: str) -> list[JsonObject]:
    """The objects in the list under a key; other members are skipped."""
    value = source.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_at(source: JsonObject, key: str) -> str:
    """The string under a key, or an empty one."""
    value = source.get(key)
    return value if isinstance(value, str) else ""
