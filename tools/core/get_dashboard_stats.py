"""core__get_dashboard_stats: the developer platform in numbers."""

from tools.capabilities import CallContext, Capabilities
from tools.contract import ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.platform_entries import platform_contract
from tools.products import CANNOT_BE_TOLD


class StatsInput(ToolInput):
    pass


class StatsOutput(ToolOutput):
    """None where the platform does not count."""

    total_applications: int | None = None
    running_workflows: int | None = None
    total_resources: int | None = None
    resource_breakdown: dict[str, int] | None = None
    environment_distribution: dict[str, int] | None = None


class GetDashboardStats:
    contract = platform_contract(
        "get_dashboard_stats",
        "The developer platform in numbers: applications, workflows, resources by type.",
        (StatsInput, StatsOutput),
        CANNOT_BE_TOLD,
        "platform",
    )

    async def execute(
        self, arguments: StatsInput, call: CallContext, caps: Capabilities
    ) -> StatsOutput:
        del arguments
        found = await bound(caps.platform, "platform").stats(call)
        return StatsOutput(
            total_applications=found.applications,
            running_workflows=found.running_workflows,
            total_resources=found.resources,
            resource_breakdown=dict(found.resources_by_type) or None,
            environment_distribution=dict(found.applications_by_environment) or None,
        )

    def summarise(self, output: StatsOutput, arguments: StatsInput) -> str:
        del arguments
        told = [
            f"{number} {noun}"
            for number, noun in (
                (output.total_applications, "applications"),
                (output.total_resources, "resources"),
                (output.running_workflows, "running workflows"),
            )
            if number is not None
        ]
        return ", ".join(told) or "no figures"
