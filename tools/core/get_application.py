"""core__get_application: one application of the developer platform, with its resources."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.platform_entries import (
    ApplicationName,
    ResourceEntry,
    clean_or_none,
    platform_contract,
    resource_entry,
    shown_of,
)
from tools.output import clean_text
from tools.products import ProductScope


class ApplicationInput(ToolInput):
    app_name: ApplicationName


class ApplicationOutput(ToolOutput):
    """Its specification is left out: it holds configuration values."""

    name: str
    environment: str | None = None
    status: str | None = None
    created_at: str | None = None
    resources: list[ResourceEntry]
    truncated: bool


class GetApplication:
    contract = platform_contract(
        "get_application",
        "One application of the developer platform: environment, status, the databases and"
        " other resources it uses. Use to see what a product depends on.",
        (ApplicationInput, ApplicationOutput),
        ProductScope(("app_name",)),
        "investigate",
        "platform",
    )

    async def execute(
        self, arguments: ApplicationInput, call: CallContext, caps: Capabilities
    ) -> ApplicationOutput:
        found = await bound(caps.platform, "platform").application(arguments.app_name, call)
        shown, more = shown_of(found.resources)
        return ApplicationOutput(
            name=clean_text(found.name),
            environment=clean_or_none(found.environment),
            status=clean_or_none(found.status),
            created_at=clean_or_none(found.created_at),
            resources=[resource_entry(one) for one in shown],
            truncated=more,
        )

    def summarise(self, output: ApplicationOutput, arguments: ApplicationInput) -> str:
        number = len(output.resources)
        noun = "resource" if number == 1 else "resources"
        return f"{arguments.app_name}: {output.status or 'no status'}, {number or 'no'} {noun}"
