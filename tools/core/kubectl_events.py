"""core__kubectl_events: what Kubernetes did and noticed, newest first."""

from typing import Annotated

from pydantic import Field

from tools.capabilities import (
    CallContext,
    Capabilities,
)
from tools.cluster_objects import ClusterEvent, ObjectQuery
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.cluster_arguments import Namespace, ObjectName
from tools.output import clean_text
from tools.products import CANNOT_BE_TOLD
from tools.timerange import instant_text

MAX_EVENTS = 50
MAX_MESSAGE_CHARS = 500


class EventsInput(ToolInput):
    namespace: Namespace = ""
    kind: Annotated[str, Field(max_length=40, description="Only of this kind")] = ""
    name: ObjectName = ""


class EventEntry(ToolOutput):
    """One event; `count` when it happened more than once."""

    ts: str | None = None
    object: str
    type: str
    reason: str
    message: str
    count: int | None = None


class EventsOutput(ToolOutput):
    """Newest first. Kubernetes forgets events after an hour by default."""

    events: list[EventEntry]
    truncated: bool
    total_matches: int


class KubectlEvents:
    contract = ToolContract(
        id="core__kubectl_events",
        description=(
            "Kubernetes events of a namespace or one object, newest first: scheduling, probes,"
            " restarts, image pulls, evictions. They go back about an hour."
        ),
        input=EventsInput,
        output=EventsOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset(EventsOutput.model_fields),
        timeouts=QUERY,
        capabilities=frozenset({"kubernetes"}),
        products=CANNOT_BE_TOLD,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: EventsInput, call: CallContext, caps: Capabilities
    ) -> EventsOutput:
        del call
        query = ObjectQuery(arguments.kind, arguments.namespace, arguments.name)
        found = await bound(caps.kubernetes, "kubernetes").events(query)
        return EventsOutput(
            events=[event_entry(one) for one in found[:MAX_EVENTS]],
            truncated=len(found) > MAX_EVENTS,
            total_matches=len(found),
        )

    def summarise(self, output: EventsOutput, arguments: EventsInput) -> str:
        del arguments
        warnings = sum(one.type == "Warning" for one in output.events)
        number = output.total_matches
        return f"{number or 'no'} event{'' if number == 1 else 's'}, {warnings or 'no'} warnings"


def event_entry(one: ClusterEvent) -> EventEntry:
    return EventEntry(
        ts=instant_text(one.at) if one.at else None,
        object=clean_text(f"{one.kind}/{one.name}"),
        type=clean_text(one.type),
        reason=clean_text(one.reason),
        message=clean_text(one.message)[:MAX_MESSAGE_CHARS],
        count=one.count if one.count > 1 else None,
    )
