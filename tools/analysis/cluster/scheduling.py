"""Why a pod has no node: what the scheduler says, explained by the pod's own spec."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from tools.analysis.cluster.fields import (
    condition,
    instant_at,
    mapping_at,
    name_of,
    namespace_of,
    rows_at,
    text_at,
    texts_at,
)
from tools.analysis.cluster.inventory import Inventory, in_pairs, joined, message_of
from tools.cluster_objects import KubernetesObject

_SCHEDULED_WITHIN: Final = timedelta(seconds=45)  # a scheduler decides in far less
_WORKERS: Final = frozenset({"", "node", "worker", "agent"})
_CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


def is_unscheduled(pod: KubernetesObject) -> bool:
    if text_at(pod, "status", "phase") not in {"Pending", ""}:
        return False
    refused = condition(pod, "PodScheduled").get("status") == "False"
    return refused or not text_at(pod, "spec", "nodeName")


def why_unscheduled(pod: KubernetesObject, cluster: Inventory) -> tuple[str, str]:
    """The mechanism and the reason in full; two empty texts while the scheduler has time left."""
    said = scheduler_message(pod, cluster)
    if said:
        return _mechanism(said), "; ".join((said, *_explained(said, pod, cluster)))
    if gates := [text_at(row, "name") for row in rows_at(pod, "spec", "schedulingGates")]:
        return "scheduling gate", f"its scheduling gates are not removed: {joined(gates)}"
    created = instant_at(pod, "metadata", "creationTimestamp")
    if not cluster.is_older_than(created, _SCHEDULED_WITHIN):
        return "", ""
    scheduler = text_at(pod, "spec", "schedulerName")
    who = scheduler if scheduler not in {"", "default-scheduler"} else "kube-scheduler"
    return (
        f"{who} does not schedule pods",
        f"no node was assigned and there is no scheduling event: {who} has not handled this pod, "
        "so it is probably not running",
    )


def scheduler_message(pod: KubernetesObject, cluster: Inventory) -> str:
    """What the scheduler says of a pod that fits no node; empty when it says nothing."""
    events = cluster.events_of("Pod", namespace_of(pod), name_of(pod), "FailedScheduling")
    if events:
        return message_of(events[0])
    scheduled = condition(pod, "PodScheduled")
    return text_at(scheduled, "message") if scheduled.get("status") == "False" else ""


def control_plane_node(cluster: Inventory) -> str:
    """The only node of the control plane; empty where there are several or none is known."""
    found = []
    for node in cluster.of("Node"):
        labels = mapping_at(node, "metadata", "labels")
        role = labels.get("kubernetes.io/role", "node")
        if role not in _WORKERS or any(label in labels for label in _CONTROL_PLANE):
            found.append(name_of(node))
    return found[0] if len(found) == 1 else ""


def _mechanism(said: str) -> str:
    lowered = said.lower()
    for pattern, mechanism in _MECHANISMS:
        if re.search(pattern, lowered):
            return mechanism
    return "cannot be scheduled"


# Of several reasons the pod's own come before a node that is cordoned: one usually is.
_MECHANISMS: Final[Sequence[tuple[str, str]]] = (
    (r"persistentvolumeclaim", "volume claim not bound"),
    (r"volume node affinity conflict", "volume is in another zone"),
    (r"insufficient memory", "insufficient memory"),
    (r"insufficient cpu", "insufficient CPU"),
    (r"insufficient", "insufficient resources"),
    (r"too many pods", "nodes are full"),
    (r"anti-affinity", "pod anti-affinity"),
    (r"pod affinity", "pod affinity"),
    (r"topology spread", "topology spread constraint"),
    (r"untolerated taint \{(?!node\.kubernetes\.io|node-role)", "taint not tolerated"),
    (r"node affinity|node selector", "node selector or affinity"),
    (r"untolerated taint", "taint not tolerated"),
    (r"unschedulable", "nodes are cordoned"),
)


def _explained(said: str, pod: KubernetesObject, cluster: Inventory) -> Iterator[str]:
    lowered = said.lower()
    for pattern, explain in _EXPLAIN:
        if re.search(pattern, lowered) and (text := explain(pod, cluster)):
            yield text


def _requests(pod: KubernetesObject, cluster: Inventory) -> str:
    requested = []
    for resource in ("cpu", "memory"):
        amounts = [
            text_at(container, "resources", "requests", resource)
            for container in rows_at(pod, "spec", "containers")
        ]
        if amounts := [one for one in amounts if one]:
            requested.append(f"{' + '.join(amounts)} {resource}")
    capacity = joined(
        f"{text_at(node, 'status', 'allocatable', 'cpu')} cpu, "
        f"{text_at(node, 'status', 'allocatable', 'memory')} memory"
        for node in cluster.of("Node")
        if text_at(node, "status", "allocatable", "cpu")
    )
    if not requested:
        return ""
    beside = f", nodes have {capacity} allocatable" if capacity else ""
    return f"the pod requests {' and '.join(requested)}{beside}"


def _selector(pod: KubernetesObject, cluster: Inventory) -> str:
    del cluster
    found = []
    if selector := texts_at(pod, "spec", "nodeSelector"):
        found.append(f"node selector {in_pairs(selector)}")
    affinity = mapping_at(pod, "spec", "affinity", "nodeAffinity")
    if affinity:
        terms = rows_at(
            affinity, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"
        )
        wanted = joined(_expression(row) for t in terms for row in rows_at(t, "matchExpressions"))
        found.append(f"node affinity {wanted}".strip())
    return f"the pod requires {' and '.join(found)}" if found else ""


def _expression(row: KubernetesObject) -> str:
    values = row.get("values")
    listed = ", ".join(map(str, values)) if isinstance(values, list) else ""
    return f"{text_at(row, 'key')} {text_at(row, 'operator')} {listed}".strip()


def _selected_by(selector: KubernetesObject) -> str:
    labels = in_pairs(texts_at(selector, "matchLabels"))
    return joined((labels, *map(_expression, rows_at(selector, "matchExpressions"))))


def _taints(pod: KubernetesObject, cluster: Inventory) -> str:
    del pod
    found = joined(
        f"{name_of(node)} {text_at(taint, 'key')}={text_at(taint, 'value')}:{text_at(taint, 'effect')}"
        for node in cluster.of("Node")
        for taint in rows_at(node, "spec", "taints")
        if not text_at(taint, "key").startswith("node.kubernetes.io/")
    )
    return f"taints: {found}" if found else ""


def _cordoned(pod: KubernetesObject, cluster: Inventory) -> str:
    del pod
    found = joined(
        name_of(one)
        for one in cluster.of("Node")
        if mapping_at(one, "spec").get("unschedulable") is True
    )
    return f"cordoned (SchedulingDisabled): {found}" if found else ""


def _anti_affinity(pod: KubernetesObject, cluster: Inventory) -> str:
    del cluster
    rules = rows_at(
        pod, "spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"
    )
    found = joined(
        f"{_selected_by(mapping_at(row, 'labelSelector'))} per {text_at(row, 'topologyKey')}"
        for row in rules
    )
    return f"required pod anti-affinity: {found}" if found else ""


_EXPLAIN: Final[Sequence[tuple[str, Callable[[KubernetesObject, Inventory], str]]]] = (
    (r"insufficient", _requests),
    (r"node affinity|node selector", _selector),
    (r"anti-affinity", _anti_affinity),
    (r"untolerated taint", _taints),
    (r"unschedulable", _cordoned),
)
