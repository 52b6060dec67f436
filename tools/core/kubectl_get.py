"""core__kubectl_get: objects of a kind as the table that kubectl shows."""

import re
from collections.abc import Sequence
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
LONG = 50  # more rows than this may not reach the model whole
_RATIO = re.compile(r"(\d+)/(\d+)")
_DONE = frozenset({"Completed", "Succeeded", "Complete"})
_WELL = frozenset({"Running", "Active", "Bound", "Ready", "Available", "Healthy"})


class GetInput(ToolInput):
    kind: KindName
    namespace: Annotated[str, Field(max_length=63, description="'*' for all namespaces")] = ""
    name: ObjectName = ""
    selector: Annotated[str, Field(max_length=500, description="Labels: app=checkout")] = ""


class GetOutput(ToolOutput):
    columns: list[str]
    rows: list[list[str]]
    truncated: bool
    notes: list[str] | None = None


class KubectlGet:
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
        columns = [clean_text(name) for name in found.columns]
        rows = [[clean_text(cell) for cell in row] for row in found.rows]
        rows, notes = _troubled_first(columns, rows)
        if found.more:
            notes.append("more objects exist: narrow by namespace or selector")
        if found.unread:
            notes.append(f"{found.unread} columns or objects could not be read")
        return GetOutput(columns=columns, rows=rows, truncated=found.more, notes=notes or None)

    def summarise(self, output: GetOutput, arguments: GetInput) -> str:
        number = len(output.rows)
        more = "+" if output.truncated else ""
        return f"{number or 'no'}{more} {clean_text(arguments.kind)}"


def _troubled_first(
    columns: Sequence[str], rows: Sequence[list[str]]
) -> tuple[list[list[str]], list[str]]:
    if len(rows) <= LONG:
        return list(rows), []
    ranked = sorted(rows, key=lambda row: not _is_troubled(columns, row))
    troubled = sum(_is_troubled(columns, row) for row in rows)
    return ranked, [f"{len(rows)} objects, {troubled} not ready or restarted; those come first"]


def _is_troubled(columns: Sequence[str], row: Sequence[str]) -> bool:
    cells = {name.lower(): cell for name, cell in zip(columns, row, strict=False)}
    ready = _RATIO.fullmatch(cells.get("ready", ""))
    restarts = cells.get("restarts", "0").split(maxsplit=1)[:1]
    status = cells.get("status", "")
    is_done = status in _DONE
    return (
        (ready is not None and ready[1] != ready[2] and not is_done)
        or (bool(status) and status not in _WELL and not is_done)
        or restarts not in ([], ["0"])
    )
