"""A server's JSON Schema as an input model, or the reason why it cannot be one. Pure.

Only what `tools.schema` can show to every provider; a keyword that merely narrows is left to the
server, which checks its arguments itself. References are followed inside the schema only.
"""

import math
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, create_model

from tools.contract import ToolInput
from tools.output import clean_text
from tools.schema import MAX_DEPTH, PROPERTY, SchemaNotPortable

MAX_PROPERTIES: Final = 64
MAX_CHOICES: Final = 200
MAX_NODES: Final = 300  # references can multiply what a small schema says
_PLAIN: Final = {"string": str, "integer": int, "number": float, "boolean": bool}
_SHOWN: Final = {"type", "description", "enum", "const", "default", "properties", "required",
                 "items", "$ref", "$defs", "definitions", "anyOf", "oneOf"}  # fmt: skip
_BOUNDS: Final = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt",
                  "exclusiveMaximum": "lt"}  # fmt: skip
_LENGTHS: Final = {"minLength": "min_length", "maxLength": "max_length",
                   "minItems": "min_length", "maxItems": "max_length"}  # fmt: skip
_LEFT_TO_THE_SERVER: Final = {
    "$schema", "$id", "$comment", "title", "examples", "example", "deprecated", "format", "pattern",
    "additionalProperties", "propertyNames", "uniqueItems", "multipleOf", "minProperties",
    "maxProperties", "contentEncoding", "contentMediaType", "readOnly", "writeOnly", "nullable",
}  # fmt: skip
_KNOWN: Final = _SHOWN | _BOUNDS.keys() | _LENGTHS.keys() | _LEFT_TO_THE_SERVER


class McpInput(ToolInput):
    model_config = ConfigDict(serialize_by_alias=True, protected_namespaces=())


def input_model(schema: Mapping[str, JsonValue]) -> type[BaseModel]:
    """The model of a tool's arguments. Raises SchemaNotPortable."""
    return _Reader(schema).model(schema, "arguments", 0)


class _Reader:
    def __init__(self, root: Mapping[str, JsonValue]) -> None:
        self._root = root
        self._nodes = 0

    def model(self, schema: Mapping[str, Any], where: str, depth: int) -> type[BaseModel]:
        schema = self._plain(schema, where, depth)
        if schema.get("type", "object") != "object":
            raise SchemaNotPortable(f"{where}: must be an object")
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, dict) or len(properties) > MAX_PROPERTIES:
            raise SchemaNotPortable(f"{where}: more than {MAX_PROPERTIES} properties")
        if not isinstance(required, list) or not set(required) <= properties.keys():
            raise SchemaNotPortable(f"{where}: requires what it does not declare")
        fields: dict[str, Any] = {}
        for number, (name, each) in enumerate(properties.items()):
            if PROPERTY.fullmatch(name) is None:
                raise SchemaNotPortable(f"{where}: a property's name is not {PROPERTY.pattern}")
            field = _field_name(name, number)
            fields[field] = self._field(each, name, depth + 1, required=name in required)
        return create_model(where, __base__=McpInput, **fields)

    def _field(self, schema: object, name: str, depth: int, *, required: bool) -> Any:
        plain = self._plain(schema, name, depth)
        described = plain.get("description")
        extra: dict[str, Any] = {"alias": name}
        if isinstance(described, str) and described:
            extra["description"] = clean_text(described)
        default = plain.get("default")
        if isinstance(default, str | int | float | bool) and _is_sound(default):
            extra["json_schema_extra"] = {"default": default}
        kind = self._kind(plain, name, depth)
        limits = _limits(plain, name)
        if required:
            return (kind, Field(**limits, **extra))
        return (kind | None, Field(default=None, **limits, **extra))

    def _kind(self, schema: Mapping[str, Any], where: str, depth: int) -> Any:
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if choices is not None:
            return _choice(choices, where)
        match schema.get("type", "object" if "properties" in schema else None):
            case "object" if "properties" in schema:
                return self.model(schema, where, depth)
            case "object":
                return dict[str, JsonValue]
            case "array" if "items" in schema:
                items = self._plain(schema["items"], f"{where}[]", depth + 1)
                return list[self._kind(items, f"{where}[]", depth + 1)]  # type: ignore[misc]
            case "array":
                return list[JsonValue]
            case str() as name if name in _PLAIN:
                return _PLAIN[name]
            case None:
                return JsonValue
            case _:
                raise SchemaNotPortable(f"{where}: its type is not one that all models know")

    def _plain(self, schema: object, where: str, depth: int) -> Mapping[str, Any]:
        self._nodes += 1
        if depth > MAX_DEPTH or self._nodes > MAX_NODES:
            raise SchemaNotPortable(f"{where}: nested too deep, recursive or too large")
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            raise SchemaNotPortable(f"{where}: is not a schema")
        unknown = [key for key in schema if key not in _KNOWN and not key.startswith("x-")]
        if unknown:
            raise SchemaNotPortable(f"{where}: {clean_text(min(unknown))[:40]} is not portable")
        if "$ref" in schema:
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self._plain({**self._target(schema["$ref"], where), **beside}, where, depth + 1)
        for union in ("anyOf", "oneOf"):
            if union in schema:
                beside = {key: value for key, value in schema.items() if key != union}
                branch = _only_branch(schema[union], where)
                return self._plain({**branch, **beside}, where, depth + 1)
        if isinstance(schema.get("type"), list):
            kinds = [kind for kind in schema["type"] if kind != "null"]
            if len(kinds) != 1:
                raise SchemaNotPortable(f"{where}: a union of several types is not portable")
            return {**schema, "type": kinds[0]}
        return schema

    def _target(self, reference: object, where: str) -> Mapping[str, Any]:
        found: Any = self._root
        steps = reference.split("/") if isinstance(reference, str) else []
        if len(steps) != 3 or steps[0] != "#" or steps[1] not in ("$defs", "definitions"):
            raise SchemaNotPortable(f"{where}: refers to something outside")
        for step in steps[1:]:
            found = found.get(step) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise SchemaNotPortable(f"{where}: unknown reference")
        return found


def _only_branch(branches: object, where: str) -> Mapping[str, Any]:
    listed = branches if isinstance(branches, list) else []
    kept = [branch for branch in listed if branch != {"type": "null"}]
    if len(kept) != 1 or not isinstance(kept[0], dict):
        raise SchemaNotPortable(f"{where}: a union of several types is not portable")
    return kept[0]


def _choice(choices: object, where: str) -> Any:
    listed = choices if isinstance(choices, list) else []
    kept = [choice for choice in listed if choice is not None]
    if not 0 < len(kept) <= MAX_CHOICES or any(not isinstance(c, str | int) for c in kept):
        raise SchemaNotPortable(f"{where}: its choices are not texts or whole numbers")
    return Literal[tuple(kept)]


def _limits(schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Bounds that fit the type; one that does not is a mistake of the server's."""
    if "enum" in schema or "const" in schema:
        return {}
    known: Mapping[str, str] = {}
    if schema.get("type") in ("integer", "number"):
        known = _BOUNDS
    elif schema.get("type") in ("string", "array"):
        known = _LENGTHS
    limits = {known[key]: schema[key] for key in known if key in schema}
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in limits.values()):
        raise SchemaNotPortable(f"{where}: a bound is not a number")
    if not all(map(_is_sound, limits.values())):
        raise SchemaNotPortable(f"{where}: a bound is out of all bounds")
    return limits


def _is_sound(value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _field_name(name: str, number: int) -> str:
    usable = name.isidentifier() and not name.startswith(("_", "model_"))
    return name if usable and not hasattr(McpInput, name) else f"argument_{number}"
