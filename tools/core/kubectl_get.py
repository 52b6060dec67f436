"""core__kubectl_get: objects of a kind as the table that kubectl shows."""

from typing import Annotated

from pydantic import Field

from tools.capabilities import (
    CallContext,
    Capabilities,
)
from tools.cluster_objects import ObjectQuery
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.cluster_arguments import KindName, ObjectName
from tools.output import clean_text
from tools.products import CANNOT_BE_TOLD

ALL_NAMESPACES = "*"


class GetInput(ToolInput):
    """Which objects."""

    kind: KindName
    namespace: Annotated[str, Field(max_length=63, description="'*' for all namespaces")] = ""
    name: ObjectName = ""
    selector: Annotated[str, Field(max_length=500, description="Labels: app=checkout")] = ""


class GetOutput(ToolOutput):
    """One line per object."""

    columns: list[str]
    rows: list[list[str]]
    truncated: bool
    notes: list[str] | None = None


class KubectlGet:
    """Lists objects of the cluster."""

    contract = ToolContract(
        id="core__kubectl_get",
        description=(
            "Kubernetes objects of a kind, as kubectl get shows them. Use to see what runs, is"
            " not ready or restarts."
        ),
        input=GetInput,
        output=GetOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(GetOutput.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"kubernetes"}),
        products=CANNOT_BE_TOLD,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: GetInput, call: CallContext, caps: Capabilities
    ) -> GetOutput:
        """Raises what Kubernetes raises."""
        del call
        cluster = bound(caps.kubernetes, "kubernetes")
        everywhere = arguments.namespace == ALL_NAMESPACES
        found = await cluster.table(
            ObjectQuery(
                kind=arguments.kind,
                namespace=ALL_NAMESPACES if everywhere else arguments.namespace,
                name=arguments.name,
                selector=arguments.selector,
            )
        )
        return GetOutput(
            columns=[clean_text(name) for name in found.columns],
            rows=[[clean_text(cell) for cell in row] for row in found.rows],
            truncated=found.more,
            notes=["more objects exist: narrow by namespace or selector"] if found.more else None,
        )

    def summarise(self, output: GetOutput, arguments: GetInput) -> str:
        """`3 pods`."""
        number = len(output.rows)
        more = "+" if output.truncated else ""
        return f"{number or 'no'}{more} {clean_text(arguments.kind)}"
