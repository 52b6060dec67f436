"""The tools of the action catalogue: which actions may be proposed, and what one takes."""

from typing import Annotated

from pydantic import Field, JsonValue

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, ToolInput, ToolOutput
from tools.core.arguments import Product
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.errors import InvalidArguments
from tools.products import BY_PRODUCT


class DiscoverInput(ToolInput):
    product: Product


class OperationEntry(ToolOutput):
    name: str
    description: str
    reversible: bool
    blast_radius: str
    parameters: list[str]


class DiscoverOutput(ToolOutput):
    """In the order the operator declared them."""

    operations: list[OperationEntry]


class DiscoverOperations:
    contract = read_only(
        "discover_operations",
        "The actions that may be proposed for a product. Use before proposing: no other action"
        " exists.",
        (DiscoverInput, DiscoverOutput),
        "operations",
        BY_PRODUCT,
        "recommend",
        "platform",
        timeouts=LOOKUP,
    )

    async def execute(
        self, arguments: DiscoverInput, call: CallContext, caps: Capabilities
    ) -> DiscoverOutput:
        del call
        offered = bound(caps.operations, "operations").offered(arguments.product)
        return DiscoverOutput(
            operations=[
                entry_of(
                    OperationEntry, one, parameters=_names(one.params_schema.get("properties"))
                )
                for one in offered
            ]
        )

    def summarise(self, output: DiscoverOutput, arguments: DiscoverInput) -> str:
        return f"{counted(len(output.operations), 'operation')} for {arguments.product}"


def _names(properties: object) -> list[str]:
    return sorted(properties) if isinstance(properties, dict) else []


class ParametersInput(ToolInput):
    product: Product
    operation: Annotated[str, Field(min_length=1, max_length=64)]


class ParametersOutput(ToolOutput):
    operation: str
    description: str
    params_schema: dict[str, JsonValue]


class GetOperationParameters:
    contract = read_only(
        "get_operation_parameters",
        "The parameters of one declared action, as JSON Schema.",
        (ParametersInput, ParametersOutput),
        "operations",
        BY_PRODUCT,
        "recommend",
        "platform",
        timeouts=LOOKUP,
    )

    async def execute(
        self, arguments: ParametersInput, call: CallContext, caps: Capabilities
    ) -> ParametersOutput:
        """Raises InvalidArguments listing what exists."""
        del call
        offered = bound(caps.operations, "operations").offered(arguments.product)
        found = next((one for one in offered if one.name == arguments.operation), None)
        if found is None:
            names = ", ".join(one.name for one in offered) or "none"
            raise InvalidArguments(f"operation: for {arguments.product} there are: {names}")
        return entry_of(ParametersOutput, found, operation=found.name)

    def summarise(self, output: ParametersOutput, arguments: ParametersInput) -> str:
        del arguments
        return f"parameters of {output.operation}"
