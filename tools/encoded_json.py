"""Arguments that a model sent as JSON text where its schema expects an object or a list.

Several vendors' models encode nested arguments once more (`"params": "{\\"host\\": \\"web-1\\"}"`).
"""

from collections.abc import Mapping
from typing import Final

import orjson
from pydantic import JsonValue

from tools.output import NotStrictJson, clean_value

_TYPES: Final[Mapping[str, type]] = {"object": dict, "array": list}
_MAX_DEPTH: Final = 8


def decoded(value: JsonValue, schema: JsonValue, depth: int = _MAX_DEPTH) -> JsonValue:
    """A copy with texts decoded where the schema accepts an object or a list, but not text.

    Any other text stays, so that validation refuses it.
    """
    if not isinstance(schema, dict) or not depth:
        return value
    if isinstance(value, str):
        value = _loaded(value, schema.get("type"))
    properties, items = schema.get("properties"), schema.get("items")
    if isinstance(value, dict) and isinstance(properties, dict):
        return {key: decoded(each, properties.get(key), depth - 1) for key, each in value.items()}
    if isinstance(value, list):
        return [decoded(each, items, depth - 1) for each in value]
    return value


def _loaded(text: str, declared: JsonValue) -> JsonValue:
    kinds = declared if isinstance(declared, list) else [declared]
    wanted = tuple(_TYPES[kind] for kind in kinds if isinstance(kind, str) and kind in _TYPES)
    if not wanted or "string" in kinds:
        return text
    try:
        found = clean_value(orjson.loads(text))
    except (orjson.JSONDecodeError, NotStrictJson):
        return text
    return found if isinstance(found, wanted) else text
