"""Parameters of an action: against the operator's JSON Schema, and none that selects everything."""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

import orjson
from pydantic import JsonValue

from tools.encoded_json import decoded
from tools.json_schema import JsonSchema, SchemaInvalid

_PLAIN: Final = {"string", "integer", "number", "boolean"}


class ParamsSchema:
    """A compiled schema of an action.

    A schema that does not speak of additional properties admits none: what the operator did not
    declare does not reach the control plane.
    """

    __slots__ = ("_compiled", "_schema")

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        """Raises SchemaInvalid."""
        self._schema: dict[str, JsonValue] = {"type": "object", **schema}
        if self._schema["type"] != "object":
            raise SchemaInvalid('type must be "object"')
        if not {"additionalProperties", "unevaluatedProperties", "$ref"} & self._schema.keys():
            self._schema["additionalProperties"] = False
        self._compiled = JsonSchema(self._schema)

    def problems(self, params: Mapping[str, JsonValue]) -> list[str]:
        """What does not fit, without anything of the values; empty when all fits."""
        return self._compiled.problems(dict(params))

    def decoded(self, params: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """The parameters, with JSON text decoded where the schema takes an object or a list."""
        found = decoded(dict(params), self._schema)
        return found if isinstance(found, dict) else params

    @property
    def required(self) -> frozenset[str]:
        required = self._schema.get("required")
        return frozenset(map(str, required)) if isinstance(required, list) else frozenset()

    def scalars(self) -> Mapping[str, str] | None:
        """The type of every parameter, in order, when each is one plain value; else None."""
        properties = self._schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            return None
        types = {
            name: schema.get("type") if isinstance(schema, dict) else None
            for name, schema in properties.items()
        }
        plain = {name: kind for name, kind in types.items() if isinstance(kind, str)}
        return plain if len(plain) == len(types) and set(plain.values()) <= _PLAIN else None

    def in_words(self) -> str:
        """The parameters as text for the person who fills them in."""
        properties = self._schema.get("properties")
        if not isinstance(properties, dict) or not properties:
            return "no parameters" if len(self._schema) == 2 else _json(self._schema)
        required = self._schema.get("required")
        needed = required if isinstance(required, list) else []
        return ", ".join(
            f"{name}: {_kind(schema)}{'' if name in needed else ', optional'}"
            for name, schema in properties.items()
        )


def _kind(schema: JsonValue) -> str:
    """`string`, or the whole schema when it says more than a type."""
    if not isinstance(schema, dict):
        return _json(schema)
    if isinstance(schema.get("enum"), list):
        return "one of " + _json(schema["enum"])
    if schema.keys() <= {"type", "description"} and isinstance(schema.get("type"), str):
        return (
            f"{schema['type']} ({schema['description']})"
            if schema.get("description")
            else str(schema["type"])
        )
    return _json(schema)


def _json(value: JsonValue) -> str:
    return orjson.dumps(value).decode()


_WILDCARD = re.compile(r"[*\x00-\x1f\x7f\u2028\u2029]")


def too_wide(params: Mapping[str, JsonValue], free_text: Collection[str] = ()) -> str | None:
    """The first parameter without a specific value, in words; None if all have one.

    An empty selector, or `*`, means everything to most systems.
    """
    for name, value in params.items():
        if name in free_text:
            continue
        for path, each in _leaves(name, value):
            if each is None or each in ("", [], {}) or (isinstance(each, str) and not each.strip()):
                return f"{path} is empty, which many systems read as all; leave it out"
            if isinstance(each, str) and _WILDCARD.search(each):
                return f"{path} holds a wildcard or a control character; give the exact name"
    return None


def _leaves(path: str, value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    match value:
        case dict() if value:
            for key, each in value.items():
                yield f"a key of {path}", key
                yield from _leaves(f"{path}.{key}", each)
        case list() if value:
            for each in value:
                yield from _leaves(path, each)
        case _:
            yield path, value
