"""core__get_operation_parameters: what one action takes, as the schema its proposal must fit."""

from typing import Annotated

from pydantic import Field, JsonValue

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import Product
from tools.core.bound import bound
from tools.errors import InvalidArguments
from tools.products import BY_PRODUCT


class ParametersInput(ToolInput):
    product: Product
    operation: Annotated[str, Field(min_length=1, max_length=64)]


class ParametersOutput(ToolOutput):
    """`params_schema` is JSON Schema."""

    operation: str
    description: str
    params_schema: dict[str, JsonValue]


class GetOperationParameters:
    contract = ToolContract(
        id="core__get_operation_parameters",
        description="The parameters of one declared action, as JSON Schema.",
        input=ParametersInput,
        output=ParametersOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(ParametersOutput.model_fields),
        timeouts=LOOKUP,
        capabilities=frozenset({"operations"}),
        products=BY_PRODUCT,
        toolsets=("recommend", "platform"),
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
        return ParametersOutput(
            operation=found.name,
            description=found.description,
            params_schema=dict(found.params_schema),
        )

    def summarise(self, output: ParametersOutput, arguments: ParametersInput) -> str:
        del arguments
        return f"parameters of {output.operation}"
