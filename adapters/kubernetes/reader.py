"""`tools.cluster_objects.Kubernetes` on a real API server."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Final

import structlog
from pydantic import (
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from adapters.kubernetes.api import KubernetesApi, parsed
from adapters.kubernetes.hiding import shown, shown_text
from adapters.kubernetes.kinds import (
    EVERYWHERE,
    Kind,
    checked_name,
    checked_namespace,
    checked_selector,
    is_secret,
    kind_of,
    known_kind,
)
from tools.cluster_objects import (
    ClusterEvent,
    ObjectList,
    ObjectQuery,
    ObjectTable,
    PodLogQuery,
)
from tools.cluster_offer import ClusterOffer
from tools.errors import InvalidArguments, UpstreamFailed
from tools.output import lines_of
from tools.outside_json import Entries, OutsideModel, SetInstant, Unread

_log = structlog.stdlib.get_logger(__name__)

MAX_ROWS: Final = 1_000
MAX_EVENTS: Final = 500  # of those read, the newest
PAGE: Final = 500  # kubectl's own chunk size
OBJECTS_PAGE: Final = 150  # a Pod has up to 50 KB with its fields' owners, and a page at most 8 MB
# The server sends events by name, not by time, so the newest are known when all were read. A cluster
# keeps them for an hour; so many in one namespace is a storm that an object's name narrows.
MAX_EVENT_PAGES: Final = 40
MAX_LOG_LINES: Final = 500
MAX_LOG_BYTES: Final = 256 * 1024
# The columns that kubectl shows, without the objects: a tenth of their size.
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
_EVENTS: Final = "api/v1"


class _Column(OutsideModel):
    name: str
    priority: int = 0


def _or_none(value: object, read: ValidatorFunctionWrapHandler) -> _Column | None:
    try:
        column: _Column | None = read(value)
    except ValidationError:
        return None
    return column


class _Metadata(OutsideModel):
    name: str = ""
    namespace: str = ""
    continues: str = Field(default="", alias="continue")


class _Object(OutsideModel):
    metadata: _Metadata = _Metadata()


class _Row(OutsideModel):
    cells: list[JsonValue] = Field(default_factory=list)
    object: _Object | None = None


class _Table(OutsideModel):
    # An odd one keeps its place: cells belong to columns by their number.
    columns: list[Annotated[_Column | None, WrapValidator(_or_none)]] = Field(
        alias="columnDefinitions"
    )
    rows: Entries[_Row] = Field(default_factory=list)
    metadata: _Metadata = _Metadata()


class _Involved(OutsideModel):
    kind: str = ""
    name: str = ""
    namespace: str = ""


class _Repeats(OutsideModel):
    count: int = 1
    last: SetInstant = Field(default=None, alias="lastObservedTime")


class _Created(OutsideModel):
    at: SetInstant = Field(default=None, alias="creationTimestamp")


class _Event(OutsideModel):
    metadata: _Created = _Created()
    involved: _Involved = Field(default=_Involved(), alias="involvedObject")
    type: str = ""
    reason: str | None = None
    message: str | None = None
    count: int | None = None
    series: _Repeats | None = None
    last: SetInstant = Field(default=None, alias="lastTimestamp")
    once: SetInstant = Field(default=None, alias="eventTime")

    def read(self) -> ClusterEvent:
        """Older and newer events say when and how often in different fields."""
        at = (self.series.last if self.series else None) or self.last or self.once
        return ClusterEvent(
            at=at or self.metadata.at,
            kind=self.involved.kind,
            name=self.involved.name,
            type=self.type,
            reason=self.reason or "",
            message=shown_text(self.message or ""),
            count=(self.series.count if self.series else None) or self.count or 1,
            namespace=self.involved.namespace,
        )


class _Events(OutsideModel):
    items: Entries[_Event] = Field(default_factory=list)
    metadata: _Metadata = _Metadata()


class _Objects(OutsideModel):
    items: Entries[dict[str, JsonValue]] = Field(default_factory=list)
    metadata: _Metadata = _Metadata()


_TABLE_BODY: Final = TypeAdapter(_Table)
_EVENTS_BODY: Final = TypeAdapter(_Events)
_EVENT: Final = TypeAdapter(_Event)
_OBJECTS_BODY: Final = TypeAdapter(_Objects)
_OBJECT_BODY: Final = TypeAdapter(dict[str, JsonValue])


def read_event(raw: Mapping[str, JsonValue]) -> ClusterEvent:
    """An event as the API returns it. Raises pydantic's ValidationError for another shape."""
    return _EVENT.validate_python(raw).read()


class KubernetesReader:
    """Reads through `api`; only in `namespaces` when there are any, the first being the usual one.

    `offer` knows the cluster's own kinds, such as Argo's Rollouts; without it only those of
    Kubernetes itself are read.
    """

    def __init__(
        self,
        api: KubernetesApi,
        namespaces: Sequence[str] = (),
        offer: ClusterOffer | None = None,
    ) -> None:
        self._api = api
        self._allowed = tuple(checked_namespace(one) for one in namespaces)
        self._offer = offer

    @property
    def namespaces(self) -> Sequence[str]:
        """Those it keeps to; empty is all that its identity may read."""
        return self._allowed

    async def table(self, query: ObjectQuery) -> ObjectTable:
        """The objects as kubectl lists them; page after page, at most `MAX_ROWS`."""
        kind = await self._kind(query.kind)
        params = {"limit": str(PAGE), "includeObject": "Metadata"}
        if query.selector:
            params["labelSelector"] = checked_selector(query.selector)
        if query.name and query.namespace == EVERYWHERE:
            raise InvalidArguments("namespace: name one for a single object")
        namespace = self._namespace(query.namespace)
        path = kind.path(namespace, query.name)
        unread = Unread()
        found = parsed(_TABLE_BODY, await self._api.get(path, params, _TABLE), unread)
        rows = list(found.rows)
        while found.metadata.continues and len(rows) < MAX_ROWS:
            more = {**params, "continue": found.metadata.continues}
            found = parsed(_TABLE_BODY, await self._api.get(path, more, _TABLE), unread)
            rows += found.rows
        whole = found.model_copy(update={"rows": rows[:MAX_ROWS]})
        table = _table(whole, with_namespace=kind.namespaced and namespace == EVERYWHERE)
        unread.count += found.columns.count(None)
        if unread.count:
            _log.warning("kubernetes.unreadable_entries", kind=kind.plural, count=unread.count)
        return replace(table, unread=unread.count)

    async def objects(self, query: ObjectQuery) -> ObjectList:
        """Whole objects, page after page, at most `MAX_ROWS`, without what may be secret."""
        kind = await self._kind(query.kind)
        params = {"limit": str(OBJECTS_PAGE)}
        if query.selector:
            params["labelSelector"] = checked_selector(query.selector)
        path = kind.path(self._namespace(query.namespace))
        found: list[dict[str, JsonValue]] = []
        unread = Unread()
        while True:
            body = await self._api.get(path, params)
            page, continues = await asyncio.to_thread(_objects, body, kind, unread)
            found += page
            if not continues or len(found) >= MAX_ROWS:
                more = bool(continues) or len(found) > MAX_ROWS
                return ObjectList(found[:MAX_ROWS], more, unread.count)
            params["continue"] = continues

    async def describe(self, query: ObjectQuery) -> dict[str, JsonValue]:
        """One object, without what may be secret. Raises ToolError."""
        kind = await self._kind(query.kind)
        if not query.name:
            raise InvalidArguments("name: which one")
        path = kind.path(self._namespace(query.namespace), query.name)
        found: dict[str, JsonValue] = parsed(_OBJECT_BODY, await self._api.get(path))
        return shown(found)

    async def events(self, query: ObjectQuery) -> Sequence[ClusterEvent]:
        """The newest `MAX_EVENTS`, newest first, of all that exist.

        Raises UpstreamFailed for more than can be read: the newest would then be unknown.
        """
        namespace = checked_namespace(self._namespace(query.namespace))
        params = {"limit": str(PAGE)}
        selector = await self._involved(query, namespace)
        if selector:
            params["fieldSelector"] = selector
        path = f"/{_EVENTS}/namespaces/{namespace}/events"
        read: list[ClusterEvent] = []
        for _ in range(MAX_EVENT_PAGES):
            found = parsed(_EVENTS_BODY, await self._api.get(path, params))
            read += [event.read() for event in found.items]
            read = sorted(read, key=_when, reverse=True)[:MAX_EVENTS]
            if not found.metadata.continues:
                return read
            params["continue"] = found.metadata.continues
        raise UpstreamFailed(
            f"more than {PAGE * MAX_EVENT_PAGES} events in {namespace}; ask for one object's"
        )

    async def logs(self, query: PodLogQuery) -> Sequence[str]:
        namespace = checked_namespace(self._namespace(query.namespace))
        params = {
            "tailLines": str(min(query.tail, MAX_LOG_LINES)),
            "limitBytes": str(MAX_LOG_BYTES),
            "timestamps": "true",
        }
        if query.container:
            params["container"] = checked_name(query.container)
        if query.previous:
            params["previous"] = "true"
        if query.since_s is not None:
            params["sinceSeconds"] = str(max(1, query.since_s))
        pod = checked_name(query.pod)
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        body = await self._api.get(path, params, "text/plain, application/json")
        return [shown_text(line) for line in lines_of(body.decode("utf-8", "replace"))]

    def _namespace(self, asked: str) -> str:
        if self._allowed and asked and asked not in self._allowed:
            raise InvalidArguments(f"namespace: readable are {', '.join(self._allowed)}")
        return asked or next(iter(self._allowed), self._api.namespace)

    async def _kind(self, text: str) -> Kind:
        known = known_kind(text)
        if known is not None:
            return known
        offered = await self._offer.kinds() if self._offer and not is_secret(text) else ()
        return kind_of(text, offered)

    async def _involved(self, query: ObjectQuery, namespace: str) -> str:
        if not query.name:
            if not query.kind:
                return ""
            return f"involvedObject.kind={(await self._kind(query.kind)).name}"
        name = f"involvedObject.name={checked_name(query.name)}"
        if not query.kind:
            return name
        kind = await self._kind(query.kind)
        return f"{name},involvedObject.kind={kind.name},involvedObject.namespace={namespace}"


def _objects(body: bytes, kind: Kind, unread: Unread) -> tuple[list[dict[str, JsonValue]], str]:
    found = parsed(_OBJECTS_BODY, body, unread)
    return [{**shown(one), "kind": kind.name} for one in found.items], found.metadata.continues


def _table(found: _Table, *, with_namespace: bool) -> ObjectTable:
    visible = {n: each.name for n, each in enumerate(found.columns) if each and not each.priority}
    if found.rows and not visible:
        raise UpstreamFailed("not what the Kubernetes API promises")
    columns = list(visible.values())
    rows = [[_cell(row.cells[n]) for n in visible if n < len(row.cells)] for row in found.rows]
    if with_namespace:
        columns = ["Namespace", *columns]
        spaces = [row.object.metadata.namespace if row.object else "" for row in found.rows]
        rows = [[space, *cells] for space, cells in zip(spaces, rows, strict=True)]
    return ObjectTable(columns, rows, more=bool(found.metadata.continues))


def _cell(value: JsonValue) -> str:
    return "" if value is None else shown_text(str(value))


def _when(event: ClusterEvent) -> float:
    return event.at.timestamp() if event.at else 0.0
