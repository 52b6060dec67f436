"""The Kubernetes part of a case: pods, workloads and nodes as they are now, events as they are kept.

A cluster cannot be asked how it was: what is taken here is of the moment of taking.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from adapters.recorded.packs.taking import Row, Taken, words_of
from tools.capabilities import Kubernetes
from tools.cluster_objects import ClusterEvent, ObjectQuery, ObjectTable
from tools.errors import InvalidArguments, ToolError
from tools.product_names import workload_of

MOST_OBJECTS: Final = 200
_KINDS: Final = ("pods", "deployments", "statefulsets", "nodes")
_EVERYWHERE: Final = "*"
_EACH_S: Final = 60.0


async def take_cluster(kubernetes: Kubernetes, products: Sequence[str]) -> tuple[Row, list[str]]:
    """`kubernetes.json`, and what was not read. Objects without what may not be shown."""
    notes = Taken()
    objects: list[JsonValue] = []
    for kind in _KINDS:
        for query in await _wanted(kubernetes, kind, products, notes):
            if len(objects) >= MOST_OBJECTS:
                notes.notes.append(f"Kubernetes: only {MOST_OBJECTS} objects were taken")
                break
            found = await _read(kubernetes, query, notes)
            if found is not None:
                objects.append(found)
    events = await _events(kubernetes, notes)
    return {"objects": objects, "events": events}, list(dict.fromkeys(notes.notes))


async def _wanted(
    kubernetes: Kubernetes, kind: str, products: Sequence[str], notes: Taken
) -> Sequence[ObjectQuery]:
    try:
        async with asyncio.timeout(_EACH_S):
            table = await _table(kubernetes, kind)
    except (ToolError, TimeoutError) as error:
        notes.notes.append(f"Kubernetes: {kind} were not read: {words_of(error)}")
        return ()
    return list(_named(table, kind, set(products)))


async def _table(kubernetes: Kubernetes, kind: str) -> ObjectTable:
    """Of all namespaces; where only some may be read, of the usual one."""
    try:
        return await kubernetes.table(ObjectQuery(kind, namespace=_EVERYWHERE))
    except InvalidArguments:
        return await kubernetes.table(ObjectQuery(kind))


def _named(table: ObjectTable, kind: str, products: set[str]) -> Iterator[ObjectQuery]:
    """Nodes all of them; of the rest those that a product's name made."""
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=False))
        name = cells.get("Name", "")
        if name and (kind == "nodes" or name in products or workload_of(name) in products):
            yield ObjectQuery(kind, namespace=cells.get("Namespace", ""), name=name)


async def _read(kubernetes: Kubernetes, query: ObjectQuery, notes: Taken) -> Row | None:
    try:
        async with asyncio.timeout(_EACH_S):
            return await kubernetes.describe(query)
    except (ToolError, TimeoutError) as error:
        notes.notes.append(f"Kubernetes: {query.name} was not read: {words_of(error)}")
        return None


async def _events(kubernetes: Kubernetes, notes: Taken) -> list[JsonValue]:
    try:
        async with asyncio.timeout(_EACH_S):
            return [_event(one) for one in await _all_events(kubernetes)]
    except (ToolError, TimeoutError) as error:
        notes.notes.append(f"Kubernetes: events were not read: {words_of(error)}")
        return []


async def _all_events(kubernetes: Kubernetes) -> Sequence[ClusterEvent]:
    try:
        return await kubernetes.events(ObjectQuery("", namespace=_EVERYWHERE))
    except InvalidArguments:
        return await kubernetes.events(ObjectQuery(""))


def _event(one: ClusterEvent) -> JsonValue:
    return {
        "involvedObject": {"kind": one.kind, "name": one.name},
        "type": one.type,
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
        "lastTimestamp": one.at.isoformat() if one.at else None,
    }
