"""The tools that read a cluster as kubectl does: get, describe, events and logs."""

import re
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue

from tools.capabilities import CallContext, Capabilities
from tools.cluster_objects import ClusterEvent, ObjectQuery, PodLogQuery
from tools.contract import ToolInput, ToolOutput
from tools.core.arguments import StepText, step_seconds
from tools.core.built_in import bound, counted, entry_of, read_only
from tools.errors import ToolError
from tools.output import clean_text
from tools.products import CANNOT_BE_TOLD

ALL_NAMESPACES = "*"
LONG = 50  # more rows than this may not reach the model whole
MAX_EVENTS = 50
MAX_MESSAGE_CHARS = 500
MAX_LINES = 100
MAX_LINE_CHARS = 1000
BUDGET_CHARS = 48 * 1024
_RATIO = re.compile(r"(\d+)/(\d+)")
_DONE = frozenset({"Completed", "Succeeded", "Complete"})
_WELL = frozenset({"Running", "Active", "Bound", "Ready", "Available", "Healthy"})
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def _name(text: str) -> str:
    if text and (_NAME.fullmatch(text) is None or ".." in text):
        raise ValueError("lower-case letters, digits, '-' and '.', at most 253")
    return text


KindName = Annotated[
    str, Field(min_length=1, max_length=40, description="pods, deployments, services, nodes, ...")
]
ObjectName = Annotated[str, AfterValidator(_name), Field(max_length=253)]
Namespace = Annotated[
    str, AfterValidator(_name), Field(max_length=63, description="Empty: the usual one")
]


class GetInput(ToolInput):
    kind: KindName
    namespace: Annotated[str, Field(max_length=63, description="'*' for all namespaces")] = ""
    name: ObjectName = ""
    selector: Annotated[str, Field(max_length=500, description="Labels: app=checkout")] = ""


class GetOutput(ToolOutput):
    columns: list[str]
    rows: list[list[str]]
    truncated: bool
    notes: list[str] | None = None


class KubectlGet:
    contract = read_only(
        "kubectl_get",
        "Kubernetes objects of a kind, as kubectl get shows them. Use to see what runs, is"
        " not ready or restarts.",
        (GetInput, GetOutput),
        "kubernetes",
        CANNOT_BE_TOLD,
        "investigate",
    )

    async def execute(
        self, arguments: GetInput, call: CallContext, caps: Capabilities
    ) -> GetOutput:
        del call
        query = ObjectQuery(**dict(arguments))
        found = await bound(caps.kubernetes, "kubernetes").table(query)
        columns = [clean_text(name) for name in found.columns]
        rows = [[clean_text(cell) for cell in row] for row in found.rows]
        rows, notes = _troubled_first(columns, rows)
        if found.more:
            notes.append("more objects exist: narrow by namespace or selector")
        if found.unread:
            notes.append(f"{found.unread} columns or objects could not be read")
        return GetOutput(columns=columns, rows=rows, truncated=found.more, notes=notes or None)

    def summarise(self, output: GetOutput, arguments: GetInput) -> str:
        more = "+" if output.truncated else ""
        return f"{len(output.rows) or 'no'}{more} {clean_text(arguments.kind)}"


def _troubled_first(
    columns: Sequence[str], rows: Sequence[list[str]]
) -> tuple[list[list[str]], list[str]]:
    if len(rows) <= LONG:
        return list(rows), []
    ranked = sorted(rows, key=lambda row: not _is_troubled(columns, row))
    troubled = sum(_is_troubled(columns, row) for row in rows)
    return ranked, [f"{len(rows)} objects, {troubled} not ready or restarted; those come first"]


def _is_troubled(columns: Sequence[str], row: Sequence[str]) -> bool:
    cells = {name.lower(): cell for name, cell in zip(columns, row, strict=False)}
    ready = _RATIO.fullmatch(cells.get("ready", ""))
    restarts = cells.get("restarts", "0").split(maxsplit=1)[:1]
    status = cells.get("status", "")
    is_done = status in _DONE
    return (
        (ready is not None and ready[1] != ready[2] and not is_done)
        or (bool(status) and status not in _WELL and not is_done)
        or restarts not in ([], ["0"])
    )


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
    contract = read_only(
        "kubectl_events",
        "Kubernetes events of a namespace or one object, newest first: scheduling, probes,"
        " restarts, image pulls, evictions. They go back about an hour.",
        (EventsInput, EventsOutput),
        "kubernetes",
        CANNOT_BE_TOLD,
        "investigate",
    )

    async def execute(
        self, arguments: EventsInput, call: CallContext, caps: Capabilities
    ) -> EventsOutput:
        del call
        query = ObjectQuery(**dict(arguments))
        found = await bound(caps.kubernetes, "kubernetes").events(query)
        return EventsOutput(
            events=_entries(found), truncated=len(found) > MAX_EVENTS, total_matches=len(found)
        )

    def summarise(self, output: EventsOutput, arguments: EventsInput) -> str:
        del arguments
        warnings = sum(one.type == "Warning" for one in output.events)
        return f"{counted(output.total_matches, 'event')}, {warnings or 'no'} warnings"


def _entries(events: Sequence[ClusterEvent]) -> list[EventEntry]:
    return [
        entry_of(
            EventEntry,
            one,
            ts=one.at,
            object=f"{one.kind}/{one.name}",
            message=clean_text(one.message)[:MAX_MESSAGE_CHARS],
            count=one.count if one.count > 1 else None,
        )
        for one in events[:MAX_EVENTS]
    ]


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
    contract = read_only(
        "kubectl_describe",
        "One Kubernetes object in full, with its events. Use once its name is known, to see"
        " conditions, images, limits and why something is not ready.",
        (DescribeInput, DescribeOutput),
        "kubernetes",
        CANNOT_BE_TOLD,
        "investigate",
    )

    async def execute(
        self, arguments: DescribeInput, call: CallContext, caps: Capabilities
    ) -> DescribeOutput:
        """The object is worth showing without its events. Raises what Kubernetes raises."""
        del call
        cluster = bound(caps.kubernetes, "kubernetes")
        query = ObjectQuery(**dict(arguments))
        found = await cluster.describe(query)
        try:
            events, notes = await cluster.events(query), None
        except ToolError as error:
            events, notes = (), [f"events could not be read: {clean_text(error.message)[:200]}"]
        return DescribeOutput(object=found, events=_entries(events), notes=notes)

    def summarise(self, output: DescribeOutput, arguments: DescribeInput) -> str:
        events = counted(len(output.events), "event")
        return f"{clean_text(arguments.kind)} {arguments.name}, {events}"


class PodLogsInput(ToolInput):
    pod: ObjectName
    namespace: Namespace = ""
    container: Annotated[ObjectName, Field(description="Needed when there are several")] = ""
    previous: Annotated[
        bool, Field(description="Of the run before the last restart: it holds the crash")
    ] = False
    since: Annotated[StepText | None, Field(description="Only the last e.g. '30m'")] = None
    tail: Annotated[int, Field(ge=1, le=MAX_LINES)] = MAX_LINES


class PodLogsOutput(ToolOutput):
    lines: list[str]
    truncated: bool


class KubectlLogs:
    contract = read_only(
        "kubectl_logs",
        "Newest log lines of one container. Use previous=true for a pod that restarted; not"
        " for whole products or long ranges.",
        (PodLogsInput, PodLogsOutput),
        "kubernetes",
        CANNOT_BE_TOLD,
        "investigate",
    )

    async def execute(
        self, arguments: PodLogsInput, call: CallContext, caps: Capabilities
    ) -> PodLogsOutput:
        del call
        since_s = step_seconds(arguments.since)
        whole_s = None if since_s is None else round(since_s)
        query = PodLogQuery(**arguments.model_dump(exclude={"since"}), since_s=whole_s)
        found = await bound(caps.kubernetes, "kubernetes").logs(query)
        lines = _fitting([clean_text(line)[:MAX_LINE_CHARS] for line in found[-arguments.tail :]])
        return PodLogsOutput(lines=lines, truncated=len(found) >= arguments.tail)

    def summarise(self, output: PodLogsOutput, arguments: PodLogsInput) -> str:
        before = ", before its restart" if arguments.previous else ""
        return f"{counted(len(output.lines), 'line')} of {arguments.pod}{before}"


def _fitting(lines: list[str]) -> list[str]:
    """The newest lines that fit the result: the cap would keep the oldest."""
    used = 0
    for number, line in enumerate(reversed(lines)):
        used += len(line)
        if used > BUDGET_CHARS:
            return lines[len(lines) - number :]
    return lines
