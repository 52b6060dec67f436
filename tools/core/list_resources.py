"""core__list_resources: databases, caches, volumes and routes of the developer platform."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.platform_entries import (
    ApplicationName,
    FilterWord,
    ResourceEntry,
    counted,
    platform_contract,
    resource_entry,
    shown_of,
)
from tools.products import ProductScope, within


class ResourcesInput(ToolInput):
    app_name: ApplicationName = ""
    type: FilterWord = ""


class ResourcesOutput(ToolOutput):
    """In the platform's order."""

    resources: list[ResourceEntry]
    total: int
    truncated: bool


class ListResources:
    contract = platform_contract(
        "list_resources",
        "Resources on the developer platform; type e.g. 'postgres', 'redis', 'volume'. Use to"
        " see who uses a database, and its status.",
        (ResourcesInput, ResourcesOutput),
        ProductScope(("app_name",), narrows=True),
        "platform",
    )

    async def execute(
        self, arguments: ResourcesInput, call: CallContext, caps: Capabilities
    ) -> ResourcesOutput:
        platform = bound(caps.platform, "platform")
        everybodys = await platform.resources(arguments.app_name, arguments.type, call)
        found = [one for one in everybodys if within(call, one.application)]
        shown, more = shown_of(found)
        return ResourcesOutput(
            resources=[resource_entry(one) for one in shown], total=len(found), truncated=more
        )

    def summarise(self, output: ResourcesOutput, arguments: ResourcesInput) -> str:
        kind = f"{arguments.type} " if arguments.type else ""
        words = counted(output.total, f"{kind}resource")
        return f"{words} of {arguments.app_name}" if arguments.app_name else words
