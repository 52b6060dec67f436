"""What arguments a plugin may declare, and the types they become. Objects and lists may nest."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    create_model,
    model_validator,
)

from tools.contract import ToolInput
from tools.output import clean_text

# Of one argument without declared properties, such as a query in JSON: people read it in a chip.
MAX_FREE_BYTES: Final = 16 * 1024
MAX_FREE_DEPTH: Final = 20
MAX_NESTING: Final = 4  # of declared objects and lists; more is no tool that a model calls well
MAX_PROPERTIES: Final = 20
MAX_ITEMS: Final = 200
_SCALARS: Final[Mapping[str, type]] = {
    "string": str, "integer": int, "number": float, "boolean": bool,
}  # fmt: skip

Refuse: TypeAlias = Callable[[str, tuple[str, ...]], Exception]


class Parameter(BaseModel):
    """An argument of the tool. One with a default, or `required: false`, may be left out.

    An `array` has `items`. An `object` has `properties`, or none: then it is any JSON object of at
    most 16 KiB, such as a query in a language that is written in JSON.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    type: Literal["string", "integer", "number", "boolean", "array", "object"]
    description: str = Field(default="", max_length=500)
    required: bool = True
    default: JsonValue = None
    example: JsonValue = None
    enum: tuple[str, ...] = Field(default=(), max_length=50)
    minimum: int | float | None = None
    maximum: int | float | None = None
    min_length: int = Field(default=0, ge=0, alias="minLength")
    max_length: int = Field(default=2000, ge=1, le=20_000, alias="maxLength")
    items: "Parameter | None" = None
    max_items: int = Field(default=20, ge=1, le=MAX_ITEMS, alias="maxItems")
    properties: dict[str, "Parameter"] = Field(default_factory=dict, max_length=MAX_PROPERTIES)

    @model_validator(mode="after")
    def _of_its_kind(self) -> "Parameter":
        if (self.items is not None) != (self.type == "array"):
            raise ValueError("items belong to an array, and every array has them")
        if self.properties and self.type != "object":
            raise ValueError("properties belong to an object")
        if _nesting(self) > MAX_NESTING:
            raise ValueError(f"nested deeper than {MAX_NESTING}")
        return self

    @property
    def is_scalar(self) -> bool:
        return self.type in _SCALARS


def annotation(parameter: Parameter, name: str, refuse: Refuse, path: tuple[str, ...] = ()) -> Any:
    """The pydantic type of one argument. Raises what `refuse` makes of a name that is reserved."""
    described = clean_text(parameter.description) or None
    kind, limits = _kind(parameter, name, refuse, path)
    return Annotated[kind, Field(description=described, **limits)]


def fields_of(
    parameters: Mapping[str, Parameter], refuse: Refuse, path: tuple[str, ...] = ()
) -> dict[str, Any]:
    """What `create_model` takes, by name."""
    fields: dict[str, Any] = {}
    for name, parameter in parameters.items():
        if hasattr(ToolInput, name) or name.startswith("model_") or not name[:1].isalpha():
            raise refuse("is a reserved name, choose another", (*path, name))
        kind = annotation(parameter, name, refuse, (*path, name))
        if parameter.default is not None:
            fields[name] = (kind, parameter.default)
        elif parameter.required:
            fields[name] = (kind, ...)
        else:
            fields[name] = (kind | None, None)
    return fields


def _kind(
    parameter: Parameter, name: str, refuse: Refuse, path: tuple[str, ...]
) -> tuple[Any, dict[str, Any]]:
    if parameter.enum:
        return Literal[parameter.enum], {}
    if parameter.type in ("integer", "number"):
        limits = {"ge": parameter.minimum, "le": parameter.maximum}
        return _SCALARS[parameter.type], limits
    if parameter.type == "string":
        limits = {"min_length": parameter.min_length or None, "max_length": parameter.max_length}
        return str, limits
    if parameter.items is not None:
        each = annotation(parameter.items, name, refuse, (*path, "items"))
        return list[each], {"max_length": parameter.max_items}  # type: ignore[valid-type]
    if parameter.properties:
        inner = fields_of(parameter.properties, refuse, (*path, "properties"))
        return create_model(f"{name.title()}Object", __base__=ToolInput, **inner), {}
    free: Any = Annotated[dict[str, JsonValue], AfterValidator(_bounded)]
    return (free if parameter.type == "object" else bool), {}


def _bounded(value: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if _depth(value) > MAX_FREE_DEPTH:
        raise ValueError(f"nested deeper than {MAX_FREE_DEPTH}")
    try:
        size = len(orjson.dumps(value))
    except TypeError:
        raise ValueError("holds what JSON cannot say, such as an integer over 64 bits") from None
    if size > MAX_FREE_BYTES:
        raise ValueError(f"larger than {MAX_FREE_BYTES} bytes")
    return value


def _depth(value: object) -> int:
    level, depth = [value], 0
    while depth <= MAX_FREE_DEPTH:
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(each.values())
            elif isinstance(each, list):
                inner.extend(each)
        if not any(isinstance(each, dict | list) for each in level):
            return depth
        level, depth = inner, depth + 1
    return depth


def _nesting(parameter: Parameter) -> int:
    inner = [*parameter.properties.values(), *([parameter.items] if parameter.items else [])]
    return 1 + max(map(_nesting, inner), default=0)
