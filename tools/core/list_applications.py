"""core__list_applications: what runs on the developer platform, as the asker may see it."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.platform_entries import clean_or_none, counted, platform_contract, shown_of
from tools.output import clean_text
from tools.products import ProductScope, within


class ApplicationsInput(ToolInput):
    pass


class ApplicationEntry(ToolOutput):
    name: str
    environment: str | None = None
    status: str | None = None
    resource_count: int | None = None


class ApplicationsOutput(ToolOutput):
    """In the platform's order."""

    applications: list[ApplicationEntry]
    total: int
    truncated: bool


class ListApplications:
    contract = platform_contract(
        "list_applications",
        "Applications on the developer platform. Use to see what exists and its status.",
        (ApplicationsInput, ApplicationsOutput),
        ProductScope(narrows=True),
        "platform",
    )

    async def execute(
        self, arguments: ApplicationsInput, call: CallContext, caps: Capabilities
    ) -> ApplicationsOutput:
        del arguments
        everybodys = await bound(caps.platform, "platform").applications(call)
        found = [one for one in everybodys if within(call, one.name)]
        shown, more = shown_of(found)
        return ApplicationsOutput(
            applications=[
                ApplicationEntry(
                    name=clean_text(one.name),
                    environment=clean_or_none(one.environment),
                    status=clean_or_none(one.status),
                    resource_count=one.resource_count,
                )
                for one in shown
            ],
            total=len(found),
            truncated=more,
        )

    def summarise(self, output: ApplicationsOutput, arguments: ApplicationsInput) -> str:
        del arguments
        return counted(output.total, "application")
