"""The tools of a developer platform: its applications, resources, workflows and figures."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from tools.capabilities import CallContext, Capabilities
from tools.contract import LOOKUP, ToolInput, ToolOutput
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.errors import InvalidArguments
from tools.platform import PlatformResource, Workflow
from tools.products import CANNOT_BE_TOLD, ProductScope, within

MAX_ENTRIES = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_platform_tool = partial(read_only, timeouts=LOOKUP, requires_connection=True)
T = TypeVar("T")


def _name(text: str) -> str:
    if text and (_NAME.fullmatch(text) is None or ".." in text):
        raise ValueError("letters, digits, '.', '_' or '-', at most 128")
    return text


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


ApplicationName = Annotated[
    str, AfterValidator(_name), Field(description="Application name, e.g. 'checkout'")
]
WorkflowId = Annotated[str, BeforeValidator(_as_text), AfterValidator(_name)]
FilterWord = Annotated[str, AfterValidator(_name)]


class ResourceEntry(ToolOutput):
    name: str
    type: str | None = None
    app_name: str | None = None
    status: str | None = None
    properties: dict[str, JsonValue] | None = None


class WorkflowEntry(ToolOutput):
    id: str
    name: str
    app_name: str | None = None
    status: str | None = None
    duration: str | None = None
    started_at: str | None = None
    completed_at: str | None = None
    error: str | None = None


def _resource(one: PlatformResource) -> ResourceEntry:
    properties = dict(one.properties) or None
    return entry_of(ResourceEntry, one, app_name=one.application, properties=properties)


def _workflow(one: Workflow) -> WorkflowEntry:
    return entry_of(WorkflowEntry, one, app_name=one.application, error=one.message)


def _shown(found: Sequence[T]) -> tuple[Sequence[T], bool]:
    return found[:MAX_ENTRIES], len(found) > MAX_ENTRIES


def _filtered(number: int, filter_word: str, noun: str, application: str) -> str:
    words = counted(number, f"{filter_word} {noun}".strip())
    return f"{words} of {application}" if application else words


class ApplicationsInput(ToolInput):
    pass


class ApplicationEntry(ToolOutput):
    name: str
    environment: str | None = None
    status: str | None = None
    resource_count: int | None = None


class ApplicationsOutput(ToolOutput):
    applications: list[ApplicationEntry]
    total: int
    truncated: bool


class ListApplications:
    contract = _platform_tool(
        "list_applications",
        "Applications on the developer platform. Use to see what exists and its status.",
        (ApplicationsInput, ApplicationsOutput),
        "platform",
        ProductScope(narrows=True),
        "platform",
    )

    async def execute(
        self, arguments: ApplicationsInput, call: CallContext, caps: Capabilities
    ) -> ApplicationsOutput:
        del arguments
        everybodys = await bound(caps.platform, "platform").applications(call)
        found = [one for one in everybodys if within(call, one.name)]
        shown, more = _shown(found)
        entries = [entry_of(ApplicationEntry, one) for one in shown]
        return ApplicationsOutput(applications=entries, total=len(found), truncated=more)

    def summarise(self, output: ApplicationsOutput, arguments: ApplicationsInput) -> str:
        del arguments
        return counted(output.total, "application")


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
    contract = _platform_tool(
        "get_application",
        "One application of the developer platform: environment, status, the databases and"
        " other resources it uses. Use to see what a product depends on.",
        (ApplicationInput, ApplicationOutput),
        "platform",
        ProductScope(("app_name",)),
        "investigate",
        "platform",
    )

    async def execute(
        self, arguments: ApplicationInput, call: CallContext, caps: Capabilities
    ) -> ApplicationOutput:
        found = await bound(caps.platform, "platform").application(arguments.app_name, call)
        shown, more = _shown(found.resources)
        resources = [_resource(one) for one in shown]
        return entry_of(ApplicationOutput, found, resources=resources, truncated=more)

    def summarise(self, output: ApplicationOutput, arguments: ApplicationInput) -> str:
        resources = counted(len(output.resources), "resource")
        return f"{arguments.app_name}: {output.status or 'no status'}, {resources}"


class WorkflowsInput(ToolInput):
    app_name: ApplicationName = ""
    status: FilterWord = ""


class WorkflowsOutput(ToolOutput):
    workflows: list[WorkflowEntry]
    total: int
    truncated: bool


class ListWorkflows:
    contract = _platform_tool(
        "list_workflows",
        "Workflow runs of the developer platform, newest first; status e.g. 'failed'. Use to see"
        " what it changed lately, and what failed.",
        (WorkflowsInput, WorkflowsOutput),
        "platform",
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
        shown, more = _shown(found)
        entries = [_workflow(one) for one in shown]
        return WorkflowsOutput(workflows=entries, total=len(found), truncated=more)

    def summarise(self, output: WorkflowsOutput, arguments: WorkflowsInput) -> str:
        return _filtered(output.total, arguments.status, "workflow", arguments.app_name)


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
    contract = _platform_tool(
        "get_workflow",
        "One workflow run: its steps and why one failed.",
        (WorkflowInput, WorkflowOutput),
        "platform",
        ProductScope(narrows=True),
        "platform",
    )

    async def execute(
        self, arguments: WorkflowInput, call: CallContext, caps: Capabilities
    ) -> WorkflowOutput:
        found = await bound(caps.platform, "platform").workflow(arguments.workflow_id, call)
        if not within(call, found.application):
            raise InvalidArguments("workflow_id: of no application of this channel's products")
        shown, more = _shown(found.steps)
        steps = [entry_of(StepEntry, one, error=one.message) for one in shown]
        return WorkflowOutput(**_workflow(found).model_dump(), steps=steps, truncated=more)

    def summarise(self, output: WorkflowOutput, arguments: WorkflowInput) -> str:
        return f"workflow {arguments.workflow_id}: {output.status or 'no status'}"


class ResourcesInput(ToolInput):
    app_name: ApplicationName = ""
    type: FilterWord = ""


class ResourcesOutput(ToolOutput):
    resources: list[ResourceEntry]
    total: int
    truncated: bool


class ListResources:
    contract = _platform_tool(
        "list_resources",
        "Resources on the developer platform; type e.g. 'postgres', 'redis', 'volume'. Use to"
        " see who uses a database, and its status.",
        (ResourcesInput, ResourcesOutput),
        "platform",
        ProductScope(("app_name",), narrows=True),
        "platform",
    )

    async def execute(
        self, arguments: ResourcesInput, call: CallContext, caps: Capabilities
    ) -> ResourcesOutput:
        platform = bound(caps.platform, "platform")
        everybodys = await platform.resources(arguments.app_name, arguments.type, call)
        found = [one for one in everybodys if within(call, one.application)]
        shown, more = _shown(found)
        entries = [_resource(one) for one in shown]
        return ResourcesOutput(resources=entries, total=len(found), truncated=more)

    def summarise(self, output: ResourcesOutput, arguments: ResourcesInput) -> str:
        return _filtered(output.total, arguments.type, "resource", arguments.app_name)


class StatsInput(ToolInput):
    pass


class StatsOutput(ToolOutput):
    """None where the platform does not count."""

    total_applications: int | None = None
    running_workflows: int | None = None
    total_resources: int | None = None
    resource_breakdown: dict[str, int] | None = None
    environment_distribution: dict[str, int] | None = None


_FIGURES: Final = {
    "total_applications": "applications",
    "total_resources": "resources",
    "running_workflows": "running workflows",
}


class GetDashboardStats:
    contract = _platform_tool(
        "get_dashboard_stats",
        "The developer platform in numbers: applications, workflows, resources by type.",
        (StatsInput, StatsOutput),
        "platform",
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
        known = ((getattr(output, name), noun) for name, noun in _FIGURES.items())
        return ", ".join(f"{number} {noun}" for number, noun in known if number is not None) or (
            "no figures"
        )
