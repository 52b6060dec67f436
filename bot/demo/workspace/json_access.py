"""Reading JSON in Slack's shapes: a missing or mistyped member reads as empty."""

from importlib import resources
from typing import Final

import orjson
from pydantic import JsonValue

JsonObject = dict[str, JsonValue]

# The members of Slack's objects that are the same in each, by the kind of object.
CONSTANTS: Final[dict[str, JsonObject]] = orjson.loads(
    resources.files(__package__).joinpath("constants.json").read_bytes()
)


def as_object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def object_at(source: JsonObject, key: str) -> JsonObject:
    return as_object(source.get(key))


def objects_at(source: JsonObject, key: str) -> list[JsonObject]:
    """The objects in the list under a key; other members are skipped."""
    value = source.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def texts_at(source: JsonObject, key: str) -> list[str]:
    value = source.get(key)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text_at(source: JsonObject, key: str) -> str:
    value = source.get(key)
    return value if isinstance(value, str) else ""
