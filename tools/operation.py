"""An action as a model sees it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Operation:
    """One action that may be proposed. `params_schema` is JSON Schema."""

    name: str
    description: str
    reversible: bool
    blast_radius: str
    params_schema: Mapping[str, JsonValue]


class Operations(Protocol):
    """The operator's catalogue of actions. Nothing behind this interface executes one."""

    def offered(self, product: str) -> Sequence[Operation]:
        """What may be proposed for the product, in the order declared."""
        ...
