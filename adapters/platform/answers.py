"""What the platform answers, as values. Lists come bare, under their name, or keyed by name."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Final, TypeVar

import structlog
from pydantic import (
    AliasChoices,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
)

from tools.errors import UpstreamFailed
from tools.outside_json import Entries, OutsideModel, left_out, parse, shaped
from tools.platform import Application, PlatformResource, PlatformStats, Workflow, WorkflowStep

# The descriptive properties of a resource: other properties hold addresses with passwords.
_SHOWN_PROPERTIES: Final = frozenset(
    {
        "class", "engine", "host", "hostname", "max_connections", "namespace", "plan", "port", "region",
        "replicas", "size", "storage", "tier", "version",
    }
)  # fmt: skip
_BODY: Final = TypeAdapter(JsonValue)
_log = structlog.stdlib.get_logger(__name__)


def _text(value: object) -> object:
    return "" if value is None else str(value) if isinstance(value, int | float) else value


Text = Annotated[str, BeforeValidator(_text)]


class _Answer(OutsideModel):
    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class _Resource(_Answer):
    name: Text = Field("", validation_alias=AliasChoices("name", "resource_name"))
    type: Text = Field("", validation_alias=AliasChoices("type", "resource_type"))
    application: Text = Field("", validation_alias=AliasChoices("app_name", "application_name"))
    status: Text = Field("", validation_alias=AliasChoices("status", "state"))
    properties: dict[str, JsonValue] | None = None

    def value(self) -> PlatformResource:
        shown = {
            name: item
            for name, item in (self.properties or {}).items()
            if name.lower() in _SHOWN_PROPERTIES and isinstance(item, str | int | float)
        }
        return PlatformResource(self.name, self.type, self.application, self.status, shown)


class _Application(_Answer):
    name: Text = ""
    environment: Text = ""
    status: Text = ""
    created_at: Text = ""
    resource_count: int | None = None
    resources: JsonValue = None

    def value(self) -> Application:
        resources = None if self.resources is None else _each(_entries(self.resources), _resource)
        count = len(resources) if self.resource_count is None and resources else self.resource_count
        return Application(
            self.name, self.environment, self.status, self.created_at, count, resources or ()
        )


class _Step(_Answer):
    name: Text = Field("", validation_alias=AliasChoices("name", "step_name"))
    status: Text = ""
    message: Text = Field("", validation_alias=AliasChoices("error", "error_message"))


class _Workflow(_Answer):
    id: Text
    name: Text = Field("", validation_alias=AliasChoices("name", "workflow_name"))
    application: Text = Field("", validation_alias=AliasChoices("app_name", "application_name"))
    status: Text = ""
    started_at: Text = ""
    completed_at: Text = ""
    duration: Text = ""
    message: Text = Field("", validation_alias=AliasChoices("error", "error_message"))
    steps: Entries[_Step] = Field(default_factory=list)

    def value(self) -> Workflow:
        steps = [WorkflowStep(one.name, one.status, one.message) for one in self.steps]
        return Workflow(
            self.id, self.name, self.application, self.status, self.started_at,
            self.completed_at, self.duration, self.message, steps,
        )  # fmt: skip


class _Stats(_Answer):
    applications: int | None = Field(
        None, validation_alias=AliasChoices("total_applications", "applications")
    )
    workflows: int | None = Field(
        None, validation_alias=AliasChoices("running_workflows", "workflows")
    )
    resources: int | None = Field(
        None, validation_alias=AliasChoices("total_resources", "resources")
    )
    by_type: dict[str, int] | None = Field(None, validation_alias="resource_breakdown")
    by_environment: dict[str, int] | None = Field(None, validation_alias="environment_distribution")


ModelT = TypeVar("ModelT", bound=_Answer)
ValueT = TypeVar("ValueT")


def application_of(body: bytes, name: str) -> Application:
    """One application; one that does not say its name has the asked one. Raises UpstreamFailed."""
    return _application({"name": name, **_object(_json(body))})


def applications_of(body: bytes) -> Sequence[Application]:
    """Raises UpstreamFailed."""
    return _all(body, "applications", _application)


def workflow_of(body: bytes, workflow_id: str) -> Workflow:
    """Raises UpstreamFailed."""
    return _workflow({"id": workflow_id, **_object(_json(body))})


def workflows_of(body: bytes) -> Sequence[Workflow]:
    """Newest first. Raises UpstreamFailed."""
    found = _all(body, "workflows", _workflow)
    return sorted(found, key=lambda one: one.started_at, reverse=True)


def resources_of(body: bytes) -> Sequence[PlatformResource]:
    """Raises UpstreamFailed."""
    return _all(body, "resources", _resource)


def stats_of(body: bytes) -> PlatformStats:
    """Raises UpstreamFailed."""
    found = _read(_Stats, _object(_json(body)))
    return PlatformStats(
        found.applications,
        found.workflows,
        found.resources,
        found.by_type or {},
        found.by_environment or {},
    )


def _application(value: JsonValue) -> Application:
    return _read(_Application, value).value()


def _workflow(value: JsonValue) -> Workflow:
    return _read(_Workflow, value).value()


def _resource(value: JsonValue) -> PlatformResource:
    return _read(_Resource, value).value()


def _all(body: bytes, name: str, read: Callable[[JsonValue], ValueT]) -> list[ValueT]:
    value = _json(body)
    if isinstance(value, dict) and name in value:
        value = value[name]
    return _each(_entries(value), read)


def _each(entries: Sequence[JsonValue], read: Callable[[JsonValue], ValueT]) -> list[ValueT]:
    """The readable entries; the number of others is logged. Raises UpstreamFailed without any."""
    found: list[ValueT] = []
    for entry in entries:
        with suppress(UpstreamFailed):
            found.append(read(entry))
    unreadable = len(entries) - len(found)
    if unreadable and not found:
        raise UpstreamFailed("the platform answered something else than promised")
    if unreadable:
        left_out(unreadable)
        _log.warning("platform.unreadable_entries", count=unreadable)
    return found


def _entries(value: JsonValue) -> Sequence[JsonValue]:
    if value is None:
        return ()
    if isinstance(value, list):
        return value
    return [
        {"name": name, **one} if isinstance(one, dict) else one
        for name, one in _object(value).items()
    ]


def _object(value: JsonValue) -> dict[str, JsonValue]:
    if isinstance(value, dict):
        return value
    raise UpstreamFailed("the platform answered something else than promised")


def _json(body: bytes) -> JsonValue:
    try:
        return parse(_BODY, body)
    except ValidationError as error:
        raise UpstreamFailed("the platform answered something else than JSON") from error


def _read(model: type[ModelT], value: JsonValue) -> ModelT:
    try:
        return shaped(TypeAdapter(model), value)
    except ValidationError as error:
        raise UpstreamFailed("the platform answered something else than promised") from error
