"""Nodes that do not take or run pods, with the pods that suffer."""

from collections.abc import Iterator
from typing import Final

from tools.analysis.cluster.fields import condition, mapping_at, name_of, rows_at, text_at
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.inventory import Inventory, joined, message_of, workload_of_pod
from tools.cluster_objects import KubernetesObject

_PRESSURES: Final = {
    "MemoryPressure": "node under memory pressure",
    "DiskPressure": "node under disk pressure",
    "PIDPressure": "node under PID pressure",
}


def lost_nodes(cluster: Inventory) -> frozenset[str]:
    return frozenset(
        name_of(node)
        for node in cluster.of("Node")
        if condition(node, "Ready").get("status") != "True"
    )


def node_findings(cluster: Inventory) -> Iterator[Finding]:
    """Nodes by their conditions. A cordoned node alone is maintenance."""
    for node in cluster.of("Node"):
        name, ready = name_of(node), condition(node, "Ready")
        if ready.get("status") != "True":
            yield _finding(node, *_why_lost(ready), _affected(name, cluster), Impact.DOWN, cluster)
            continue
        if condition(node, "NetworkUnavailable").get("status") == "True":
            said = text_at(condition(node, "NetworkUnavailable"), "message")
            yield _finding(
                node,
                "NetworkUnavailable",
                "node network unavailable",
                said,
                "",
                Impact.DOWN,
                cluster,
            )
        for kind, mechanism in _PRESSURES.items():
            if condition(node, kind).get("status") == "True":
                said = text_at(condition(node, kind), "message")
                yield _finding(node, kind, mechanism, said, "", Impact.DEGRADED, cluster)
        if mapping_at(node, "spec").get("unschedulable") is True and not _is_control_plane(node):
            yield _finding(
                node, "SchedulingDisabled", "node is cordoned", "", "", Impact.RISK, cluster
            )


def _why_lost(ready: KubernetesObject) -> tuple[str, str, str]:
    said = text_at(ready, "message")
    lowered = said.lower()
    if "runtime" in lowered or "containerd" in lowered or "docker" in lowered:
        mechanism = "container runtime is down"
    elif "network" in lowered or "cni" in lowered:
        mechanism = "node network is not ready"
    elif ready.get("status") == "Unknown" or "kubelet stopped" in lowered:
        mechanism = "kubelet does not report"
    else:
        mechanism = "node not ready"
    return "NotReady", mechanism, said


def _affected(node: str, cluster: Inventory) -> str:
    pods = [
        pod
        for pod in cluster.of("Pod")
        if text_at(pod, "spec", "nodeName") == node
        and cluster.product_of(pod, workload_of_pod(pod)[1])
    ]
    if not pods:
        return ""
    return f"; on it are pods of {joined(workload_of_pod(pod)[1] for pod in pods)}"


def _finding(
    node: KubernetesObject,
    state: str,
    mechanism: str,
    said: str,
    affected: str,
    impact: Impact,
    cluster: Inventory,
) -> Finding:
    name = name_of(node)
    warned = [
        message_of(e) for e in cluster.events_of("Node", "default", name) if e.type == "Warning"
    ]
    event = f"; {warned[0]}" if warned and impact is Impact.DOWN else ""
    return Finding(
        kind="Node",
        namespace="",
        name=name,
        product=cluster.product_of(node),
        workload=name,
        state=state,
        mechanism=mechanism,
        reason=f"node {name} is {state}{_unknown(node)}: {mechanism}"
        + (f", {said}" if said and said != mechanism else "")
        + f"{affected}{event}",
        impact=impact,
    )


def _unknown(node: KubernetesObject) -> str:
    status = condition(node, "Ready").get("status")
    return " (condition Ready is Unknown)" if status == "Unknown" else ""


def _is_control_plane(node: KubernetesObject) -> bool:
    labels = mapping_at(node, "metadata", "labels")
    keys = {text_at(row, "key") for row in rows_at(node, "spec", "taints")}
    return labels.get("kubernetes.io/role") == "master" or any(
        "control-plane" in key or "/master" in key for key in (*labels, *keys)
    )
