"""What a tool declares about itself, and the port a tool implements.

The JSON Schema a model sees is derived from the input model (`tools.schema`), never written twice.
How a tool is run lives in `tools.runner`, and nowhere else.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from pydantic import BaseModel

from tools.capabilities import CallContext, Capabilities


class Effect(StrEnum):
    """What running a tool may change."""

    READ_ONLY = "read_only"
    STATE_CHANGE = "state_change"
    EXTERNAL_SIDE_EFFECT = "external_side_effect"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: when a call is cut by default, and what configuration may raise that to."""

    default_s: float
    ceiling_s: float


# The classes of RFC 005 section 6.1: wide queries, computed comparisons, small look-ups.
QUERY = Timeouts(30.0, 300.0)
COMPUTED = Timeouts(10.0, 60.0)
LOOKUP = Timeouts(5.0, 30.0)


@dataclass(frozen=True, slots=True)
class ToolContract:
    """A tool's declaration.

    `id` is namespaced (`core__get_logs`). `redaction` is the allowlist of output fields, as dotted
    paths with `[]` for list elements (`lines[].message`); a field not listed is dropped. An empty
    allowlist is refused when the tool is registered. `capabilities` are field names of
    `tools.capabilities.Capabilities`.
    """

    id: str
    description: str
    input: type[BaseModel]
    output: type[BaseModel]
    effect: Effect
    redaction: frozenset[str]
    timeouts: Timeouts
    capabilities: frozenset[str]
    requires_connection: bool = False

    @property
    def short_name(self) -> str:
        """What people see: the id without its namespace."""
        return self.id.split("__", 1)[1]


I_contra = TypeVar("I_contra", bound=BaseModel, contravariant=True)
O_co = TypeVar("O_co", bound=BaseModel, covariant=True)


class Tool(Protocol[I_contra, O_co]):
    """One tool. Only the runner calls `execute`, with arguments it has validated."""

    @property
    def contract(self) -> ToolContract:
        """What the tool declares."""
        ...

    async def execute(self, arguments: I_contra, call: CallContext, caps: Capabilities) -> O_co:
        """Raises ToolError for a failure the model should hear about."""
        ...
