"""The cluster of a recorded incident: its objects as the API returned them, shown as kubectl shows them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from pydantic import JsonValue

from adapters.kubernetes.hiding import shown, shown_text
from adapters.kubernetes.kinds import EVERYWHERE, Kind, checked_name, checked_selector, kind_of
from adapters.kubernetes.reader import read_event
from adapters.recorded.packs.recording import RecordedLine
from tools.analysis.cluster.fields import mapping_at, name_of, namespace_of, rows_at, text_at
from tools.capabilities import Clock
from tools.cluster_objects import ClusterEvent, ObjectList, ObjectQuery, ObjectTable, PodLogQuery
from tools.errors import InvalidArguments

Object = Mapping[str, JsonValue]

_MAX_ROWS: Final = 100
_MAX_OBJECTS: Final = 1_000
_LOG_S: Final = 15 * 60


class ClusterSource(Protocol):
    """The cluster of an incident: its objects and events as the API returns them."""

    def objects(self) -> Sequence[Object]: ...

    def events(self) -> Sequence[Object]:
        """All events that are still kept."""
        ...

    def lines(self, pod: str, since_s: int) -> Sequence[RecordedLine]:
        """What a pod wrote, oldest first; a pack may give lines from before `since_s`."""
        ...


@dataclass(frozen=True, slots=True)
class PackCluster:
    state: Sequence[Object]
    kept_events: Sequence[Object]
    kept_lines: Sequence[RecordedLine]

    def objects(self) -> Sequence[Object]:
        return self.state

    def events(self) -> Sequence[Object]:
        return self.kept_events

    def lines(self, pod: str, since_s: int) -> Sequence[RecordedLine]:  # noqa: ARG002 - the port's
        return [
            one for one in self.kept_lines if one.labels.get("pod", one.labels.get("host")) == pod
        ]


class RecordedKubernetes:
    """An empty namespace is the one that most objects are in."""

    def __init__(self, source: ClusterSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        spaces = [namespace_of(one) for one in source.objects() if namespace_of(one)]
        self._usual = max(set(spaces), key=spaces.count, default="default")

    async def table(self, query: ObjectQuery) -> ObjectTable:
        kind = kind_of(query.kind)
        found = self._found(kind, query)
        if query.name and not found:
            raise InvalidArguments(f'{kind.plural} "{query.name}" not found')
        columns, cells = _COLUMNS.get(kind.name, (("Name",), lambda one, _now: (name_of(one),)))
        now = self._clock.now()
        rows = [[shown_text(cell) for cell in cells(one, now)] for one in found[:_MAX_ROWS]]
        if query.namespace == EVERYWHERE and kind.namespaced:
            rows = [[namespace_of(one), *row] for one, row in zip(found, rows, strict=False)]
            return ObjectTable(["Namespace", *columns], rows, more=len(found) > _MAX_ROWS)
        return ObjectTable(columns, rows, more=len(found) > _MAX_ROWS)

    async def objects(self, query: ObjectQuery) -> ObjectList:
        found = self._found(kind_of(query.kind), query)
        return ObjectList([shown(one) for one in found[:_MAX_OBJECTS]], len(found) > _MAX_OBJECTS)

    async def describe(self, query: ObjectQuery) -> dict[str, JsonValue]:
        """One object as it was recorded. Raises ToolError."""
        kind = kind_of(query.kind)
        if not query.name:
            raise InvalidArguments("name: which one")
        found = self._found(kind, query)
        if not found:
            raise InvalidArguments(f'{kind.plural} "{query.name}" not found')
        return shown(found[0])

    async def events(self, query: ObjectQuery) -> Sequence[ClusterEvent]:
        """Newest first. Cluster-wide objects have theirs in `default`, and those are shown too."""
        kind = kind_of(query.kind) if query.kind else None
        name = checked_name(query.name) if query.name else ""
        space = query.namespace or self._usual
        read = [
            (text_at(raw, "metadata", "namespace"), read_event(raw))
            for raw in self._source.events()
        ]
        found = [
            event
            for where, event in read
            if (space == EVERYWHERE or where in {space, "", "default"})
            and (kind is None or event.kind == kind.name)
            and name in {"", event.name}
        ]
        return sorted(found, key=lambda e: e.at.timestamp() if e.at else 0.0, reverse=True)

    async def logs(self, query: PodLogQuery) -> Sequence[str]:
        """What the case holds of that pod, oldest first: of that container and run, where lines say.

        Raises InvalidArguments for a pod or a container that is not there, and for an earlier run
        without lines.
        """
        pod = checked_name(query.pod)
        pods = [
            one
            for one in self._source.objects()
            if text_at(one, "kind") == "Pod" and name_of(one) == pod
        ]
        own = self._source.lines(pod, query.since_s or _LOG_S)
        if not pods and not own:
            raise InvalidArguments(f'pods "{pod}" not found')
        _check_container(query, pods, own)
        earlier = [line for line in own if line.labels.get("previous") == "true"]
        lines = earlier if query.previous else [line for line in own if line not in earlier]
        if query.previous and not earlier:
            raise InvalidArguments(f'previous terminated container of "{pod}" not found')
        named = [line for line in lines if _is_of(line, query.container)]
        return [shown_text(line.text) for line in named][-query.tail :]

    def _found(self, kind: Kind, query: ObjectQuery) -> list[Object]:
        wanted = _labels(checked_selector(query.selector))
        name = checked_name(query.name) if query.name else ""
        return [
            one
            for one in self._source.objects()
            if text_at(one, "kind") == kind.name
            and name in {"", name_of(one)}
            and (
                not kind.namespaced
                or query.namespace == EVERYWHERE
                or namespace_of(one) in {"", query.namespace or self._usual}
            )
            and wanted.items() <= mapping_at(one, "metadata", "labels").items()
        ]


def _check_container(
    query: PodLogQuery, pods: Sequence[Object], lines: Sequence[RecordedLine]
) -> None:
    """An empty log of a misspelt container would look like silence."""
    names = {text_at(row, "name") for one in pods for row in rows_at(one, "spec", "containers")}
    names |= {line.labels.get("container", "") for line in lines}
    names.discard("")
    if query.container and names and query.container not in names:
        there = ", ".join(sorted(names))
        raise InvalidArguments(
            f"container {query.container} is not valid for pod {query.pod}; there is {there}"
        )


def _is_of(line: RecordedLine, container: str) -> bool:
    """Lines that name no container are of the pod's own one."""
    return not container or line.labels.get("container", container) == container


def _labels(selector: str) -> dict[str, str]:
    """Equalities only; anything else selects nothing less."""
    pairs = [part.partition("=") for part in selector.split(",") if "=" in part]
    return {name.strip(): value.strip("= ") for name, _, value in pairs if not name.endswith("!")}


def _number(value: Object, key: str) -> int:
    found = value.get(key)
    return int(found) if isinstance(found, int | float) else 0


def _age(one: Object, now: datetime) -> str:
    try:
        created = datetime.fromisoformat(text_at(one, "metadata", "creationTimestamp"))
        minutes = int((now - created).total_seconds() // 60)
    except (ValueError, TypeError):  # TypeError: without a time zone
        return "<unknown>"
    if minutes < 120:
        return f"{minutes}m"
    return f"{minutes // 60}h" if minutes < 2880 else f"{minutes // 1440}d"


def _pod(one: Object, now: datetime) -> Sequence[str]:
    containers = rows_at(one, "status", "containerStatuses")
    ready = sum(1 for row in containers if row.get("ready") is True)
    total = len(containers) or len(rows_at(one, "spec", "containers"))
    restarts = sum(_number(row, "restartCount") for row in containers)
    return name_of(one), f"{ready}/{total}", pod_status(one), str(restarts), _age(one, now)


def pod_status(pod: Object) -> str:
    """The Status column: why a container waits or ended, before the phase; as kubectl prints it."""
    if text_at(pod, "metadata", "deletionTimestamp"):
        return "Terminating"
    status = mapping_at(pod, "status")
    for row in rows_at(status, "containerStatuses"):
        state = mapping_at(row, "state")
        for kind in ("waiting", "terminated"):
            if reason := text_at(state, kind, "reason"):
                return reason
    return text_at(status, "reason") or text_at(status, "phase") or "Unknown"


def _deployment(one: Object, now: datetime) -> Sequence[str]:
    status, wanted = mapping_at(one, "status"), _number(mapping_at(one, "spec"), "replicas")
    ready, updated = _number(status, "readyReplicas"), _number(status, "updatedReplicas")
    available = _number(status, "availableReplicas")
    return name_of(one), f"{ready}/{wanted}", str(updated), str(available), _age(one, now)


def _node(one: Object, now: datetime) -> Sequence[str]:
    states = {
        text_at(row, "type"): text_at(row, "status") for row in rows_at(one, "status", "conditions")
    }
    state = "Ready" if states.get("Ready") == "True" else "NotReady"
    cordoned = ",SchedulingDisabled" if mapping_at(one, "spec").get("unschedulable") is True else ""
    return name_of(one), state + cordoned, _age(one, now)


_COLUMNS: Final[Mapping[str, tuple[Sequence[str], Callable[[Object, datetime], Sequence[str]]]]] = {
    "Pod": (("Name", "Ready", "Status", "Restarts", "Age"), _pod),
    "Deployment": (("Name", "Ready", "Up-to-date", "Available", "Age"), _deployment),
    "Node": (("Name", "Status", "Age"), _node),
}
