"""The JSON Schema a model is shown, derived from the pydantic input model; and its errors in words.

Only what every provider accepts: a root object, `additionalProperties: false`, type, description,
enum, bounds, items. References are inlined, "or null" is folded away, anything else is refused.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, JsonValue, ValidationError

# The intersection of the providers' rules for names (OpenAI 64, Anthropic 64 in older versions).
NAME = re.compile(r"[a-z0-9_]{1,64}")
PROPERTY = re.compile(r"[A-Za-z0-9_-]{1,64}")
FORBIDDEN_PROPERTIES = frozenset({"connectionid"})
_SEPARATORS = re.compile(r"[_-]")
MAX_DEPTH = 8
MAX_PROBLEMS = 5

# In the order they are written, so that the same model is the same bytes.
_KEPT = (
    "type", "description", "enum", "default", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
)  # fmt: skip
# Lengths are enforced and not described: no model counts characters, and each schema would repeat
# them.
_DROPPED = frozenset(
    {"title", "examples", "format", "$defs", "pattern", "maxProperties", "minLength", "maxLength"}
)
_STRUCTURE = frozenset({"properties", "required", "items", "additionalProperties", "const"})


class SchemaNotPortable(ValueError):
    """An input model uses what some provider would refuse."""


@lru_cache(maxsize=512)  # each channel's catalog shows the same tools
def input_schema(model: type[BaseModel]) -> dict[str, JsonValue]:
    """The portable schema of `model`. Raises SchemaNotPortable."""
    if model.model_config.get("extra") != "forbid":
        raise SchemaNotPortable(f"{model.__name__}: unknown arguments must be forbidden")
    raw: dict[str, Any] = model.model_json_schema()
    schema = _portable(raw, raw.get("$defs", {}), "root", 0)
    schema.pop("description", None)  # the class's docstring; the tool has its own description
    if schema.get("type") != "object" or "properties" not in schema:
        raise SchemaNotPortable(f"{model.__name__}: the root must be an object with properties")
    return schema


def problems_in_words(error: ValidationError, fields: Mapping[str, object]) -> str:
    found = error.errors(include_input=False, include_url=False, include_context=False)
    words = [_problem(item["loc"], item["type"], item["msg"], fields) for item in found]
    shown = "; ".join(words[:MAX_PROBLEMS])
    more = len(words) - MAX_PROBLEMS
    return f"{shown}; and {more} more" if more > 0 else shown


def _problem(
    loc: tuple[int | str, ...], kind: str, message: str, fields: Mapping[str, object]
) -> str:
    path = ".".join(_step(step) for step in loc) or "arguments"
    if kind == "extra_forbidden":
        return f"{path}: not an argument (accepted: {', '.join(fields) or 'none'})"
    if kind == "missing":
        return f"{path}: required"
    return f"{path}: {message.removeprefix('Value error, ')}"


def _step(step: int | str) -> str:
    """A key the caller invented may hold anything; only a plain name is repeated."""
    if isinstance(step, int) or NAME.fullmatch(step.lower()):
        return str(step)
    return "?"


def _portable(
    raw: Mapping[str, Any], definitions: Mapping[str, Any], where: str, depth: int
) -> dict[str, JsonValue]:
    if depth > MAX_DEPTH:
        raise SchemaNotPortable(f"{where}: nested too deep or recursive")
    raw = _resolved(raw, definitions, where)
    unknown = set(raw) - set(_KEPT) - _DROPPED - _STRUCTURE
    if unknown:
        raise SchemaNotPortable(f"{where}: {', '.join(sorted(unknown))} is not portable")
    schema: dict[str, JsonValue] = {key: raw[key] for key in _KEPT if key in raw}
    if "const" in raw:
        schema["enum"] = [raw["const"]]
    if schema.get("default", ...) is None or schema.get("default", ...) in ("", {}, []):
        del schema["default"]
    if "items" in raw:
        schema["items"] = _portable(raw["items"], definitions, f"{where}[]", depth + 1)
    if "properties" in raw or where == "root":
        schema |= _object_parts(raw, definitions, where, depth)
    return schema


def _object_parts(
    raw: Mapping[str, Any], definitions: Mapping[str, Any], where: str, depth: int
) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {}
    for name, value in raw.get("properties", {}).items():
        if PROPERTY.fullmatch(name) is None:
            raise SchemaNotPortable(f"{where}: property {name!r} is not {PROPERTY.pattern}")
        if _SEPARATORS.sub("", name.lower()) in FORBIDDEN_PROPERTIES:
            raise SchemaNotPortable(f"{where}: connections come from the context, never arguments")
        properties[name] = _portable(value, definitions, name, depth + 1)
    required = raw.get("required", [])
    return {"properties": properties, "required": required, "additionalProperties": False}


def _resolved(
    raw: Mapping[str, Any], definitions: Mapping[str, Any], where: str
) -> Mapping[str, Any]:
    """Inline a reference and fold `X or null` into X; an absent argument is the null."""
    if "$ref" in raw:
        target = definitions.get(str(raw["$ref"]).removeprefix("#/$defs/"))
        if target is None:
            raise SchemaNotPortable(f"{where}: unknown reference")
        beside = {key: value for key, value in raw.items() if key != "$ref"}
        return _resolved({**target, **beside}, definitions, where)
    if "anyOf" in raw:
        kept = [branch for branch in raw["anyOf"] if branch != {"type": "null"}]
        if len(kept) != 1:
            raise SchemaNotPortable(f"{where}: a union of several types is not portable")
        beside = {key: value for key, value in raw.items() if key != "anyOf"}
        return _resolved({**kept[0], **beside}, definitions, where)
    return raw
