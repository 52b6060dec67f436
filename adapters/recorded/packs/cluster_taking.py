"""The Kubernetes part of a case: pods, workloads and nodes as they are now, events as they are kept.

A cluster cannot be asked how it was: what is taken here is of the moment of taking.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from pydantic import JsonValue

from adapters.recorded.packs.taking import Row, Taken, asked
from tools.cluster_objects import ClusterEvent, Kubernetes, ObjectQuery, ObjectTable
from tools.errors import InvalidArguments
from tools.product_names import workload_of

MOST_OBJECTS: Final = 200
_NODES: Final = "nodes"
_KINDS: Final = ("pods", "deployments", "statefulsets", _NODES)
_EVERYWHERE: Final = "*"


async def take_cluster(kubernetes: Kubernetes, products: Sequence[str]) -> tuple[Row, list[str]]:
    """`kubernetes.json`, and what was not read. Objects without what may not be shown."""
    taken = Taken()
    wanted = [
        query for kind in _KINDS for query in await _wanted(kubernetes, kind, products, taken)
    ]
    for query in wanted[:MOST_OBJECTS]:
        found = await asked(partial(kubernetes.describe, query), f"Kubernetes: {query.name}", taken)
        taken.rows += [found] if found is not None else []
    if len(wanted) > MOST_OBJECTS:
        taken.notes.append(f"Kubernetes: {MOST_OBJECTS} of {len(wanted)} objects were taken")
    told: list[JsonValue] = []
    spaces = {query.namespace for query in wanted if query.kind != _NODES} or {""}
    for namespace in sorted(spaces):
        ask = partial(kubernetes.events, ObjectQuery("", namespace=namespace))
        events = await asked(ask, f"Kubernetes: events {namespace}".rstrip(), taken)
        told += [_event(one) for one in events or ()]
    return {"objects": list[JsonValue](taken.rows), "events": told}, taken.notes


async def _wanted(
    kubernetes: Kubernetes, kind: str, products: Sequence[str], taken: Taken
) -> Sequence[ObjectQuery]:
    table = await asked(partial(_table, kubernetes, kind), f"Kubernetes: {kind}", taken)
    return list(_named(table, kind, set(products))) if table else ()


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
        if name and (kind == _NODES or name in products or workload_of(name) in products):
            yield ObjectQuery(kind, namespace=cells.get("Namespace", ""), name=name)


def _event(one: ClusterEvent) -> JsonValue:
    return {
        "involvedObject": {"kind": one.kind, "name": one.name},
        "type": one.type,
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
        "lastTimestamp": one.at.isoformat() if one.at else None,
    }
