"""An action as a model is told of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Operation:
    """One action that may be proposed. `params_schema` is JSON Schema."""

    name: str
    description: str
    reversible: bool
    blast_radius: str
    params_schema: Mapping[str, JsonValue]
