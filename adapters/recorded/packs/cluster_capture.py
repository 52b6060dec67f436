"""The Kubernetes part of a case: pods, workloads and nodes as they are now, events as they are kept.

A cluster cannot be asked how it was: what is taken here is of the moment of taking.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from pydantic import JsonValue

from adapters.recorded.packs.capture import Row, Taken, asked
from tools.analysis.cluster.fields import labels_of, name_of, namespace_of
from tools.analysis.cluster.inventory import owner_of, workload_of_pod
from tools.cluster_objects import (
    ClusterEvent,
    Kubernetes,
    KubernetesObject,
    ObjectList,
    ObjectQuery,
)
from tools.core.cluster_reading import ALWAYS, OF_THE_CLUSTER, PODS, STORAGE
from tools.errors import InvalidArguments
from tools.product_names import product_in

MOST_OBJECTS: Final = 500
_OF_NAMESPACES: Final = OF_THE_CLUSTER | {"ResourceQuota", "PersistentVolumeClaim"}
_EVERYWHERE: Final = "*"


async def take_cluster(kubernetes: Kubernetes, products: Sequence[str]) -> tuple[Row, list[str]]:
    """`kubernetes.json`, and what was not read. Objects without what may not be shown."""
    taken = Taken()
    wanted: list[KubernetesObject] = []
    for plural, kind in (PODS, *ALWAYS, *STORAGE):
        ask = partial(_objects, kubernetes, plural)
        found = await asked(ask, f"Kubernetes: {plural}", taken)
        wanted += [one for one in found.objects if _is_wanted(one, kind, products)] if found else []
    if len(wanted) > MOST_OBJECTS:
        taken.notes.append(f"Kubernetes: {MOST_OBJECTS} of {len(wanted)} objects were taken")
    spaces = {namespace_of(one) for one in wanted} - {""} or {""}
    told: list[JsonValue] = []
    for namespace in sorted(spaces):
        ask_events = partial(kubernetes.events, ObjectQuery("", namespace=namespace))
        events = await asked(ask_events, f"Kubernetes: events {namespace}".rstrip(), taken)
        told += [_event(one) for one in events or ()]
    objects: list[JsonValue] = [dict(one) for one in wanted[:MOST_OBJECTS]]
    return {"objects": objects, "events": told}, taken.notes


async def _objects(kubernetes: Kubernetes, plural: str) -> ObjectList:
    """Of all namespaces; where only some may be read, of the usual one."""
    try:
        return await kubernetes.objects(ObjectQuery(plural, namespace=_EVERYWHERE))
    except InvalidArguments:
        return await kubernetes.objects(ObjectQuery(plural))


def _is_wanted(one: KubernetesObject, kind: str, products: Sequence[str]) -> bool:
    """What belongs to a product, and what all of them share: nodes, volumes, quotas."""
    if kind in _OF_NAMESPACES:
        return True
    workload = workload_of_pod(one)[1] if kind == "Pod" else ""
    names = (name_of(one), workload, product_in(labels_of(one), products))
    return any(owner_of(name, products) for name in names)


def _event(one: ClusterEvent) -> JsonValue:
    return {
        "involvedObject": {"kind": one.kind, "name": one.name, "namespace": one.namespace},
        "type": one.type,
        "reason": one.reason,
        "message": one.message,
        "count": one.count,
        "lastTimestamp": one.at.isoformat() if one.at else None,
    }
