"""core__discover_operations: the actions that may be proposed for a product."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.arguments import Product
from tools.core.bound import bound
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
    contract = ToolContract(
        id="core__discover_operations",
        description=(
            "The actions that may be proposed for a product. Use before proposing: no other action"
            " exists."
        ),
        input=DiscoverInput,
        output=DiscoverOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(DiscoverOutput.model_fields),
        timeouts=LOOKUP,
        capabilities=frozenset({"operations"}),
        products=BY_PRODUCT,
        toolsets=("recommend", "platform"),
    )

    async def execute(
        self, arguments: DiscoverInput, call: CallContext, caps: Capabilities
    ) -> DiscoverOutput:
        del call
        offered = bound(caps.operations, "operations").offered(arguments.product)
        return DiscoverOutput(
            operations=[
                OperationEntry(
                    name=one.name,
                    description=one.description,
                    reversible=one.reversible,
                    blast_radius=one.blast_radius,
                    parameters=_names(one.params_schema.get("properties")),
                )
                for one in offered
            ]
        )

    def summarise(self, output: DiscoverOutput, arguments: DiscoverInput) -> str:
        number = len(output.operations)
        noun = "operation" if number == 1 else "operations"
        return f"{number or 'no'} {noun} for {arguments.product}"


def _names(properties: object) -> list[str]:
    return sorted(properties) if isinstance(properties, dict) else []
