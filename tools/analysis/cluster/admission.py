"""Pods that do not exist because the API server refused them: quotas, accounts, policies, webhooks."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from tools.analysis.cluster.fields import (
    condition,
    name_of,
    namespace_of,
    number_at,
    rows_at,
    text_at,
)
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.inventory import WORKLOADS, Inventory, deployment_of, message_of, when
from tools.cluster_objects import ClusterEvent, KubernetesObject

_OWNERS: Final = {"ReplicaSet": "Deployment", "StatefulSet": "StatefulSet",
                  "DaemonSet": "DaemonSet"}  # fmt: skip
_QUOTA: Final = re.compile(
    r"exceeded quota: (?P<quota>[^,]+), requested: (?P<asked>.+?), used: (?P<used>.+?), "
    r"limited: (?P<hard>.+)$"
)
_REFUSALS: Final[Sequence[tuple[str, str]]] = (
    (r"exceeded quota", "exceeded quota"),
    (r"failed quota", "quota requires limits"),
    (r"service ?account .*not found", "serviceaccount not found"),
    (r"violates podsecurity|securitycontextconstraints|pod security", "pod security policy"),
    (r"failed calling webhook", "admission webhook fails"),
    (r"admission webhook", "admission webhook denies"),
    (r"limitrange|(maximum|minimum) (cpu|memory) usage|limit to request ratio", "limit range"),
    (r"priorityclass|priority class", "priority class not found"),
)


def admission_findings(cluster: Inventory) -> Iterator[Finding]:
    """For workloads with fewer pods than wanted: older refusals of the others are over."""
    newest = _newest(cluster.events)
    for kind in WORKLOADS:
        for one in cluster.of(kind):
            event = newest.get((kind, namespace_of(one), name_of(one)))
            said = _refusal(kind, one, event, cluster) if _lacks_pods(one) else ""
            if said:
                yield _finding(kind, one, said, cluster)


def _newest(events: Sequence[ClusterEvent]) -> dict[tuple[str, str, str], ClusterEvent]:
    """Of each workload the newest event about the creation of a pod."""
    found = {}
    for event in sorted(events, key=when):
        kind = _OWNERS.get(event.kind)
        if kind and event.reason in {"FailedCreate", "SuccessfulCreate"}:
            name = deployment_of(event.name) if event.kind == "ReplicaSet" else event.name
            found[kind, event.namespace, name] = event
    return found


def _lacks_pods(one: KubernetesObject) -> bool:
    wanted = number_at(one, "spec", "replicas")
    wanted = number_at(one, "status", "desiredNumberScheduled") if wanted is None else wanted
    ready = number_at(one, "status", "readyReplicas") or number_at(one, "status", "numberReady")
    updated = number_at(one, "status", "updatedReplicas")
    lacking = (ready or 0) < (wanted or 0) or (
        updated is not None and wanted is not None and updated < wanted
    )
    return lacking or bool((number_at(one, "status", "unavailableReplicas") or 0) > 0)


def _refusal(
    kind: str, one: KubernetesObject, newest: ClusterEvent | None, cluster: Inventory
) -> str:
    """What the newest refusal says; only where no pod was created since."""
    failure = condition(one, "ReplicaFailure")
    if failure.get("status") == "True" and text_at(failure, "message"):
        return text_at(failure, "message")
    if newest is None or newest.reason != "FailedCreate":
        return ""
    pods = cluster.pods_of(namespace_of(one), (kind, name_of(one)))
    created = sum(_is_made_by(pod, newest.name) for pod in pods)
    return message_of(newest) if created < (number_at(one, "spec", "replicas") or 1) else ""


def _is_made_by(pod: KubernetesObject, owner: str) -> bool:
    return any(row.get("name") == owner for row in rows_at(pod, "metadata", "ownerReferences"))


def _finding(kind: str, one: KubernetesObject, said: str, cluster: Inventory) -> Finding:
    name = name_of(one)
    ready = number_at(one, "status", "readyReplicas") or 0
    lowered = said.lower()
    mechanism = next((words for pattern, words in _REFUSALS if re.search(pattern, lowered)), "")
    quota = _QUOTA.search(said)
    more = ""
    if quota:
        more = (
            f"exceeded quota {quota['quota']} of namespace {namespace_of(one)}: "
            f"requested {quota['asked']}, used {quota['used']}, limited to {quota['hard']}"
        )
    return Finding(
        kind=kind,
        namespace=namespace_of(one),
        name=name,
        product=cluster.product_of(one),
        workload=name,
        state="FailedCreate",
        mechanism=mechanism or "pods are refused",
        reason=f"{kind} {name}: its pods cannot be created: {more or said}",
        impact=Impact.DEGRADED if ready else Impact.DOWN,
    )
