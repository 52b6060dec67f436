"""core__kubectl_describe: one object with its recent events, without what may hold secrets."""

from pydantic import JsonValue

from tools.capabilities import (
    CallContext,
    Capabilities,
)
from tools.cluster_objects import ObjectQuery
from tools.contract import QUERY, Effect, ToolContract, ToolInput, ToolOutput
from tools.core.bound import bound
from tools.core.cluster_arguments import KindName, Namespace, ObjectName
from tools.core.kubectl_events import MAX_EVENTS, EventEntry, event_entry
from tools.errors import ToolError
from tools.output import clean_text
from tools.products import CANNOT_BE_TOLD


class DescribeInput(ToolInput):
    kind: KindName
    name: ObjectName
    namespace: Namespace = ""


class DescribeOutput(ToolOutput):
    """The object as the API returns it; `[hidden]` replaces values that may be secret."""

    object: dict[str, JsonValue]
    events: list[EventEntry]
    notes: list[str] | None = None


class KubectlDescribe:
    contract = ToolContract(
        id="core__kubectl_describe",
        description=(
            "One Kubernetes object in full, with its events. Use once its name is known, to see"
            " conditions, images, limits and why something is not ready."
        ),
        input=DescribeInput,
        output=DescribeOutput,
        effect=Effect.READ_ONLY,
        redaction=frozenset({"object", "events", "notes"}),
        timeouts=QUERY,
        capabilities=frozenset({"kubernetes"}),
        products=CANNOT_BE_TOLD,
        toolsets=("investigate",),
    )

    async def execute(
        self, arguments: DescribeInput, call: CallContext, caps: Capabilities
    ) -> DescribeOutput:
        """The object is worth showing without its events. Raises what Kubernetes raises."""
        del call
        cluster = bound(caps.kubernetes, "kubernetes")
        query = ObjectQuery(arguments.kind, arguments.namespace, arguments.name)
        found = await cluster.describe(query)
        try:
            events, notes = await cluster.events(query), None
        except ToolError as error:
            events, notes = (), [f"events could not be read: {clean_text(error.message)[:200]}"]
        return DescribeOutput(
            object=found, events=[event_entry(one) for one in events[:MAX_EVENTS]], notes=notes
        )

    def summarise(self, output: DescribeOutput, arguments: DescribeInput) -> str:
        number = len(output.events)
        noun = "event" if number == 1 else "events"
        return f"{clean_text(arguments.kind)} {arguments.name}, {number or 'no'} {noun}"
