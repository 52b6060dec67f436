"""An accepted definition as a tool: its contract, and its call through the supervisor."""

from typing import Final, Protocol

from pydantic import BaseModel, JsonValue

from adapters.mcp.answer import Answer, McpOutput, output_of
from adapters.mcp.arguments import input_model
from adapters.mcp.definition import Definition, tool_id
from tools.capabilities import CallContext, Capabilities
from tools.catalog import CatalogInvalid, checked_contract
from tools.contract import PROPOSE_TOOL_ID, Effect, Timeouts, ToolContract
from tools.output import clean_text, lines_of
from tools.products import usual_scope
from tools.schema import SchemaNotPortable

CEILING_S: Final = 300.0  # what no configuration raises a call's timeout above
_OURS: Final = PROPOSE_TOOL_ID.split("__", 1)[1]


class Caller(Protocol):
    async def call(self, tool: str, arguments: dict[str, JsonValue]) -> Answer:
        """Raises ToolError."""
        ...


class NotATool(ValueError):
    pass


class McpTool:
    """Asks its server. Raises NotATool at construction."""

    def __init__(self, server: str, definition: Definition, caller: Caller, timeout_s: float):
        self.definition = definition
        self.contract = _contract(server, definition, timeout_s)
        self._caller = caller
        try:
            checked_contract(self.contract)
        except CatalogInvalid as error:
            raise NotATool(str(error)) from error

    async def execute(
        self, arguments: BaseModel, call: CallContext, caps: Capabilities
    ) -> McpOutput:
        del call, caps
        given = arguments.model_dump(mode="json", exclude_none=True, exclude_unset=True)
        return output_of(await self._caller.call(self.definition.name, given))

    def summarise(self, output: McpOutput, arguments: BaseModel) -> str:
        del arguments
        match output:
            case McpOutput(data=list() as found):
                return f"{len(found)} results"
            case McpOutput(data=dict() as found):
                return f"{len(found)} fields"
            case McpOutput(text=str() as text):
                return f"{len(lines_of(text))} lines"
            case _:
                return "an answer"


def _contract(server: str, definition: Definition, timeout_s: float) -> ToolContract:
    if definition.name.lower() == _OURS:
        raise NotATool("its name is that of the tool that proposes actions")
    description = clean_text(" ".join(definition.description.split()))
    if not description:
        raise NotATool("it has no description")
    try:
        arguments = input_model(definition.schema)
        return ToolContract(
            id=tool_id(server, definition.name),
            description=description,
            input=arguments,
            output=McpOutput,
            effect=Effect.READ_ONLY,
            redaction=frozenset(McpOutput.model_fields),
            timeouts=Timeouts(timeout_s, CEILING_S),
            capabilities=frozenset(),
            products=usual_scope(arguments.model_fields),
        )
    except SchemaNotPortable as error:
        raise NotATool(f"its schema: {error}") from error
