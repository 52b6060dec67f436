"""What a tool needs of the outside, declared in the tool's own file and bound by its name."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)  # slots and generics do not go together
class Port(Generic[T]):
    """Represents an implementation of the protocol T. `name` is that of `[adapters.NAME]`."""

    name: str
