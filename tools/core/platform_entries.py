"""What the platform tools share: how a resource, a workflow and a filter look to a model."""

import re
from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue

from tools.contract import LOOKUP, Effect, ToolContract, ToolInput, ToolOutput
from tools.output import clean_text
from tools.platform import PlatformResource, Workflow
from tools.products import ProductScope

MAX_ENTRIES = 100
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
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


def platform_contract(
    name: str,
    description: str,
    shapes: tuple[type[ToolInput], type[ToolOutput]],
    products: ProductScope,
    *toolsets: str,
) -> ToolContract:
    """What every platform tool declares; `shapes` are its input and output, shown whole."""
    given, answered = shapes
    return ToolContract(
        id=f"core__{name}",
        description=description,
        input=given,
        output=answered,
        effect=Effect.READ_ONLY,
        redaction=frozenset(answered.model_fields),
        timeouts=LOOKUP,
        capabilities=frozenset({"platform"}),
        products=products,
        toolsets=toolsets,
        requires_connection=True,
    )


def clean_or_none(text: str) -> str | None:
    """The text without control characters; None where the platform said nothing."""
    return clean_text(text) or None


def resource_entry(one: PlatformResource) -> ResourceEntry:
    return ResourceEntry(
        name=clean_text(one.name),
        type=clean_or_none(one.type),
        app_name=clean_or_none(one.application),
        status=clean_or_none(one.status),
        properties=dict(one.properties) or None,
    )


def workflow_entry(one: Workflow) -> WorkflowEntry:
    return WorkflowEntry(
        id=clean_text(one.id),
        name=clean_text(one.name),
        app_name=clean_or_none(one.application),
        status=clean_or_none(one.status),
        duration=clean_or_none(one.duration),
        started_at=clean_or_none(one.started_at),
        completed_at=clean_or_none(one.completed_at),
        error=clean_or_none(one.message),
    )


def shown_of(found: Sequence[T]) -> tuple[Sequence[T], bool]:
    """The first ones, and whether there are more."""
    return found[:MAX_ENTRIES], len(found) > MAX_ENTRIES


def counted(number: int, noun: str) -> str:
    """`no workflows`, `1 workflow`, `3 workflows`."""
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
