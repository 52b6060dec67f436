"""A developer platform's data on applications, their resources and their workflows.

Values only; the platform's port is `tools.capabilities.Platform`. Texts are verbatim, empty if
absent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class PlatformResource:
    """A database, cache, volume or route of an application. `properties` holds no secret."""

    name: str
    type: str = ""
    application: str = ""
    status: str = ""
    properties: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Application:
    """One application; `resources` only where one was asked for by name."""

    name: str
    environment: str = ""
    status: str = ""
    created_at: str = ""
    resource_count: int | None = None
    resources: Sequence[PlatformResource] = ()


@dataclass(frozen=True, slots=True)
class WorkflowStep:
    """One step of a workflow; `message` says why it failed."""

    name: str
    status: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Workflow:
    """One run that changed something; `steps` only where one was asked for by id."""

    id: str
    name: str
    application: str = ""
    status: str = ""
    started_at: str = ""
    completed_at: str = ""
    duration: str = ""
    message: str = ""
    steps: Sequence[WorkflowStep] = ()


@dataclass(frozen=True, slots=True)
class PlatformStats:
    """The platform in numbers; None where it does not count."""

    applications: int | None = None
    running_workflows: int | None = None
    resources: int | None = None
    resources_by_type: Mapping[str, int] = field(default_factory=dict)
    applications_by_environment: Mapping[str, int] = field(default_factory=dict)
