"""Workloads with fewer pods than wanted, and what scales and protects them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from tools.analysis.cluster.fields import (
    condition,
    instant_at,
    is_selected,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    number_at,
    rows_at,
    text_at,
    texts_at,
    value_at,
)
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.inventory import (
    WORKLOADS,
    Inventory,
    message_of,
    template_labels,
)
from tools.analysis.cluster.pods import is_to_run, is_working
from tools.cluster_objects import KubernetesObject

_FAILED_LATELY: Final = timedelta(hours=6)
_RAN_LATELY: Final = timedelta(days=7)
_SCALED_TO_ZERO: Final = "to 0 from "
_ROLLING: Final = frozenset({"ReplicaSetUpdated", "NewReplicaSetCreated"})
_HPA: Final = "HorizontalPodAutoscaler"


def workload_findings(cluster: Inventory) -> Iterator[Finding]:
    """Of Deployments, StatefulSets, DaemonSets, Jobs, autoscalers and disruption budgets."""
    for kind in WORKLOADS:
        for one in cluster.of(kind):
            wanted, ready = _counts(kind, one)
            if kind != "DaemonSet" and value_at(one, "spec", "replicas") == 0:
                yield from _zero_replicas(kind, one, cluster)
            elif ready < wanted:
                yield from _short(kind, one, wanted, ready, cluster)
            elif kind == "DaemonSet" and wanted == 0:
                yield from _on_no_node(one, cluster)
            elif value_at(one, "spec", "paused") is True:
                yield from _paused(kind, one, wanted, cluster)
    yield from _jobs(cluster)
    yield from _suspended(cluster)
    yield from _autoscalers(cluster)
    yield from _budgets(cluster)


def _counts(kind: str, one: KubernetesObject) -> tuple[int, int]:
    if kind == "DaemonSet":
        wanted = number_at(one, "status", "desiredNumberScheduled") or 0
        return wanted, number_at(one, "status", "numberReady") or 0
    replicas = number_at(one, "spec", "replicas")
    return (1 if replicas is None else replicas), number_at(one, "status", "readyReplicas") or 0


def _zero_replicas(kind: str, one: KubernetesObject, cluster: Inventory) -> Iterator[Finding]:
    """A fault only if it is needed: a Service leads to it and no autoscaler starts it on demand."""
    space, name = namespace_of(one), name_of(one)
    services = [name_of(row) for row in cluster.services_of(space, template_labels(one))]
    if _is_scaled(kind, space, name, cluster):
        return
    lately = next(
        (
            message_of(event)
            for event in cluster.events_of(kind, space, name, "ScalingReplicaSet")
            if _SCALED_TO_ZERO in event.message
        ),
        "",
    )
    needed = f", so Service {services[0]} has no endpoints" if services else ""
    yield _finding(
        kind,
        one,
        "0/0 ready",
        "scaled to 0 replicas",
        f"{kind} {name} is scaled to 0 replicas{needed}" + (f"; {lately}" if lately else ""),
        Impact.DOWN if services and lately else Impact.UNSURE if services else Impact.RISK,
        cluster,
    )


def _is_scaled(kind: str, space: str, name: str, cluster: Inventory) -> bool:
    return any(
        namespace_of(hpa) == space
        and text_at(hpa, "spec", "scaleTargetRef", "kind") == kind
        and text_at(hpa, "spec", "scaleTargetRef", "name") == name
        for hpa in cluster.of(_HPA)
    )


def _short(
    kind: str, one: KubernetesObject, wanted: int, ready: int, cluster: Inventory
) -> Iterator[Finding]:
    """Reported where no pod says why: pods that do not exist, or a rollout that is stuck."""
    name, progressing = name_of(one), condition(one, "Progressing")
    stuck = progressing.get("status") == "False"
    pods = [pod for pod in cluster.pods_of(namespace_of(one), (kind, name)) if is_to_run(pod)]
    there = len(pods)
    # A StatefulSet creates its next pod once the one before is ready.
    under_way = text_at(progressing, "reason") in _ROLLING or (
        kind == "StatefulSet" and not all(map(is_working, pods))
    )
    is_known = cluster.is_whole("Pod")
    if not stuck and is_known and (there >= wanted or (there and under_way)):
        return  # its pods start, or have findings of their own
    missing = "" if there >= wanted or not is_known else _missing(wanted, there)
    why = text_at(progressing, "message") if stuck else ""
    paused = ", its rollout is paused" if mapping_at(one, "spec").get("paused") is True else ""
    yield _finding(
        kind,
        one,
        f"{ready}/{wanted} ready",
        "rollout does not progress" if stuck else "fewer ready than wanted",
        f"{kind} {name}: {ready} of {wanted} pods are ready{missing}{paused}"
        + (f": {why}" if why else ""),
        Impact.DOWN if ready == 0 else Impact.DEGRADED,
        cluster,
    )


def _on_no_node(one: KubernetesObject, cluster: Inventory) -> Iterator[Finding]:
    """Only of a product: clusters have many that are for other kinds of nodes."""
    selector = texts_at(one, "spec", "template", "spec", "nodeSelector")
    nodes = cluster.of("Node")
    if not selector or not cluster.is_whole("Node") or not cluster.product_of(one):
        return
    if any(is_selected(labels_of(node), selector) for node in nodes):
        return
    wanted = ", ".join(f"{key}={value}" for key, value in selector.items())
    yield _finding(
        "DaemonSet",
        one,
        "0 nodes",
        "matches no node",
        f"DaemonSet {name_of(one)} runs nowhere: none of {len(nodes)} nodes has the labels {wanted}",
        Impact.UNSURE,
        cluster,
    )


def _paused(kind: str, one: KubernetesObject, wanted: int, cluster: Inventory) -> Iterator[Finding]:
    updated = number_at(one, "status", "updatedReplicas")
    is_half = updated is not None and updated < wanted
    done = (
        f" with {updated} of {wanted} pods updated" if is_half else ", so no change is rolled out"
    )
    yield _finding(
        kind,
        one,
        "paused",
        "rollout is paused",
        f"{kind} {name_of(one)}: its rollout is paused{done}",
        Impact.UNSURE if is_half else Impact.RISK,
        cluster,
    )


def _suspended(cluster: Inventory) -> Iterator[Finding]:
    """A job that ran lately is missed; one that has not run for long is off on purpose."""
    for job in cluster.of("CronJob"):
        last = instant_at(job, "status", "lastScheduleTime")
        if value_at(job, "spec", "suspend") is not True or last is None:
            continue
        yield _finding(
            "CronJob",
            job,
            "suspended",
            "CronJob is suspended",
            f"CronJob {name_of(job)} is suspended: schedule {text_at(job, 'spec', 'schedule')}, "
            f"last run {last:%Y-%m-%d %H:%M} UTC",
            Impact.RISK if cluster.is_older_than(last, _RAN_LATELY) else Impact.UNSURE,
            cluster,
        )


def _missing(wanted: int, there: int) -> str:
    if not there:
        return ", and none of its pods exists"
    return f", and {wanted - there} of its pods do not exist"


def _jobs(cluster: Inventory) -> Iterator[Finding]:
    for job in cluster.of("Job"):
        failed = condition(job, "Failed")
        ended = instant_at(failed, "lastTransitionTime")
        if failed.get("status") != "True" or cluster.is_older_than(ended, _FAILED_LATELY):
            continue
        said = text_at(failed, "message") or text_at(failed, "reason")
        yield _finding(
            "Job",
            job,
            text_at(failed, "reason") or "Failed",
            "job failed",
            f"Job {name_of(job)} failed: {said}",
            Impact.DEGRADED,
            cluster,
        )


def _autoscalers(cluster: Inventory) -> Iterator[Finding]:
    for hpa in cluster.of(_HPA):
        target = text_at(hpa, "spec", "scaleTargetRef", "name")
        current, most = (
            number_at(hpa, "status", "currentReplicas"),
            number_at(hpa, "spec", "maxReplicas"),
        )
        for kind in ("AbleToScale", "ScalingActive"):
            row = condition(hpa, kind)
            if row.get("status") == "False" and text_at(row, "reason") != "ScalingDisabled":
                yield _finding(
                    _HPA,
                    hpa,
                    text_at(row, "reason"),
                    "autoscaler cannot scale",
                    f"HorizontalPodAutoscaler {name_of(hpa)} of {target} cannot scale: "
                    f"{text_at(row, 'message') or text_at(row, 'reason')}",
                    Impact.RISK,
                    cluster,
                )
                break
        limited = condition(hpa, "ScalingLimited")
        if limited.get("status") == "True" and text_at(limited, "reason") == "TooManyReplicas":
            yield _finding(
                _HPA,
                hpa,
                f"{current}/{most} replicas",
                "autoscaler at its maximum",
                f"HorizontalPodAutoscaler {name_of(hpa)} wants more replicas of {target} than its "
                f"maximum of {most}",
                Impact.RISK,
                cluster,
            )


def _budgets(cluster: Inventory) -> Iterator[Finding]:
    for budget in cluster.of("PodDisruptionBudget"):
        healthy = number_at(budget, "status", "currentHealthy")
        desired = number_at(budget, "status", "desiredHealthy")
        if healthy is None or desired is None or healthy >= desired:
            continue
        yield _finding(
            "PodDisruptionBudget",
            budget,
            f"{healthy}/{desired} healthy",
            "disruption budget not met",
            f"PodDisruptionBudget {name_of(budget)}: {healthy} healthy pods, {desired} required, so "
            "no pod may be evicted and nodes cannot be drained",
            Impact.RISK,
            cluster,
        )


def _finding(
    kind: str,
    one: KubernetesObject,
    state: str,
    mechanism: str,
    reason: str,
    impact: Impact,
    cluster: Inventory,
) -> Finding:
    owners = rows_at(one, "metadata", "ownerReferences")
    target = text_at(one, "spec", "scaleTargetRef", "name")
    workload = target or next((text_at(row, "name") for row in owners), "") or name_of(one)
    return Finding(
        kind=kind,
        namespace=namespace_of(one),
        name=name_of(one),
        product=cluster.product_of(one, workload),
        workload=workload,
        state=state,
        mechanism=mechanism,
        reason=reason,
        impact=impact,
    )
