"""What a tool declares about itself, and the port a tool implements.

The JSON Schema a model sees is derived from the input model (`tools.schema`), never written twice.
How a tool is run lives in `tools.runner`, and nowhere else.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, model_validator

from tools.capabilities import CallContext, Capabilities
from tools.port import Port
from tools.products import ProductScope

PROPOSE_TOOL_ID = "core__propose_action"  # the only tool that may be more than read_only


class ToolInput(BaseModel):
    """Base of input models: unknown arguments are refused, a null is an argument not given."""

    # Built when it is first needed: of the tools of a start few are called.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, sent: object) -> object:
        """Models write null for an optional argument; the schema they see has no null in it."""
        if isinstance(sent, dict):
            return {key: value for key, value in sent.items() if value is not None}
        return sent


class ToolOutput(BaseModel):
    """Base of output models: checked again when the tool returns, not finite is refused."""

    model_config = ConfigDict(
        defer_build=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        revalidate_instances="always",
        ser_json_inf_nan="constants",  # a NaN must be seen and refused, not become null unnoticed
    )


class Effect(StrEnum):
    READ_ONLY = "read_only"
    STATE_CHANGE = "state_change"
    EXTERNAL_SIDE_EFFECT = "external_side_effect"


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: when a call is cut by default, and what configuration may raise that to."""

    default_s: float
    ceiling_s: float


# The classes of RFC 005 section 6.1: wide queries, computed comparisons, small look-ups. Users see
# a notice after 30 s of a query (`tools.runner.SLOW_AFTER_S`), so its ceiling is later.
QUERY = Timeouts(300.0, 300.0)
COMPUTED = Timeouts(10.0, 60.0)
LOOKUP = Timeouts(5.0, 30.0)


@dataclass(frozen=True, slots=True)
class ToolContract:
    """A tool's declaration.

    `id` is namespaced (`core__get_logs`). `redaction` is the allowlist of output fields, as dotted
    paths with `[]` for list elements (`lines[].message`); a field not listed is dropped. An empty
    allowlist is refused when the tool is registered. `capabilities` are field names of
    `tools.capabilities.Capabilities`. `opaque` names top-level output fields minted by our own code
    (a signed cursor, a proposal id) that the text redactor must not touch; only built-in tools may
    have them. `live`: never answered from the cache. `products` says which products' data a call
    reads, and the channel's products limit it. `toolsets` are the built-in ones with this tool;
    `ports` are further needs, declared in the tool's own file. `of_files`: only offered when the
    question has files.
    """

    id: str
    description: str
    input: type[BaseModel]
    output: type[BaseModel]
    effect: Effect
    redaction: frozenset[str]
    timeouts: Timeouts
    capabilities: frozenset[str]
    products: ProductScope
    requires_connection: bool = False
    opaque: frozenset[str] = frozenset()
    live: bool = False
    toolsets: tuple[str, ...] = ()
    ports: frozenset[Port[Any]] = frozenset()
    of_files: bool = False

    @property
    def short_name(self) -> str:
        """What people see: the id without its namespace."""
        return self.id.split("__", 1)[1]


I_contra = TypeVar("I_contra", bound=BaseModel, contravariant=True)
OutT = TypeVar("OutT", bound=BaseModel)


class Tool(Protocol[I_contra, OutT]):
    """One tool. Only the runner calls it, with arguments it has validated."""

    @property
    def contract(self) -> ToolContract: ...

    async def execute(self, arguments: I_contra, call: CallContext, caps: Capabilities) -> OutT:
        """Raises ToolError for a failure the model should hear about."""
        ...

    def summarise(self, output: OutT, arguments: I_contra) -> str:
        """The few words people see beside the evidence number: "42 error lines, last 30m"."""
        ...


# A catalog holds tools of every shape; the runner validates both ends of each against its contract.
AnyTool = Tool[Any, Any]
