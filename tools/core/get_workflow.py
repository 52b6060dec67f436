"""core__get_workflow: one run of the developer platform, step by step."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.platform_entries import (
    WorkflowEntry,
    WorkflowId,
    clean_or_none,
    platform_contract,
    shown_of,
    workflow_entry,
)
from tools.errors import InvalidArguments
from tools.output import clean_text
from tools.products import ProductScope, within


class WorkflowInput(ToolInput):
    workflow_id: WorkflowId


class StepEntry(ToolOutput):
    name: str
    status: str | None = None
    error: str | None = None


class WorkflowOutput(WorkflowEntry):
    steps: list[StepEntry]
    truncated: bool


class GetWorkflow:
    contract = platform_contract(
        "get_workflow",
        "One workflow run: its steps and why one failed.",
        (WorkflowInput, WorkflowOutput),
        ProductScope(narrows=True),
        "platform",
    )

    async def execute(
        self, arguments: WorkflowInput, call: CallContext, caps: Capabilities
    ) -> WorkflowOutput:
        found = await bound(caps.platform, "platform").workflow(arguments.workflow_id, call)
        if not within(call, found.application):
            raise InvalidArguments("workflow_id: of no application of this channel's products")
        shown, more = shown_of(found.steps)
        return WorkflowOutput(
            **workflow_entry(found).model_dump(),
            steps=[
                StepEntry(
                    name=clean_text(one.name),
                    status=clean_or_none(one.status),
                    error=clean_or_none(one.message),
                )
                for one in shown
            ],
            truncated=more,
        )

    def summarise(self, output: WorkflowOutput, arguments: WorkflowInput) -> str:
        return f"workflow {arguments.workflow_id}: {output.status or 'no status'}"
