"""core__list_workflows: what the developer platform ran lately: deployments, migrations, clean-ups."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.platform_entries import (
    ApplicationName,
    FilterWord,
    WorkflowEntry,
    counted,
    platform_contract,
    shown_of,
    workflow_entry,
)
from tools.products import ProductScope, within


class WorkflowsInput(ToolInput):
    app_name: ApplicationName = ""
    status: FilterWord = ""


class WorkflowsOutput(ToolOutput):
    workflows: list[WorkflowEntry]
    total: int
    truncated: bool


class ListWorkflows:
    contract = platform_contract(
        "list_workflows",
        "Workflow runs of the developer platform, newest first; status e.g. 'failed'. Use to see"
        " what it changed lately, and what failed.",
        (WorkflowsInput, WorkflowsOutput),
        ProductScope(("app_name",), narrows=True),
        "investigate",
        "platform",
    )

    async def execute(
        self, arguments: WorkflowsInput, call: CallContext, caps: Capabilities
    ) -> WorkflowsOutput:
        platform = bound(caps.platform, "platform")
        everybodys = await platform.workflows(arguments.app_name, arguments.status, call)
        found = [one for one in everybodys if within(call, one.application)]
        shown, more = shown_of(found)
        return WorkflowsOutput(
            workflows=[workflow_entry(one) for one in shown], total=len(found), truncated=more
        )

    def summarise(self, output: WorkflowsOutput, arguments: WorkflowsInput) -> str:
        status = f"{arguments.status} " if arguments.status else ""
        words = counted(output.total, f"{status}workflow")
        return f"{words} of {arguments.app_name}" if arguments.app_name else words
