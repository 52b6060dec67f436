"""Failing pods, with one finding for all pods of a workload that fail in the same way."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from tools.analysis.cluster.containers import (
    PROBES,
    STARTING,
    Trouble,
    failing_probe,
    restarted,
    stuck,
    trouble_of,
)
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
    Inventory,
    message_of,
    workload_of_pod,
)
from tools.analysis.cluster.scheduling import (
    control_plane_node,
    is_unscheduled,
    why_unscheduled,
)
from tools.cluster_objects import KubernetesObject

_CREATED_WITHIN: Final = timedelta(minutes=3)  # of images that are large and volumes that are slow
_LEAST_START: Final = timedelta(seconds=60)
_LONGEST_START: Final = timedelta(minutes=10)
_TERMINATING: Final = timedelta(minutes=15)
_NOT_RUN: Final = frozenset({"Succeeded", "Failed"})


def pod_findings(cluster: Inventory, lost_nodes: frozenset[str]) -> Iterator[Finding]:
    """Of all pods but those on nodes that are not Ready: the node's finding names those."""
    found: dict[tuple[str, str, str], Finding] = {}
    for pod in cluster.of("Pod"):
        if text_at(pod, "spec", "nodeName") in lost_nodes:
            continue
        trouble = pod_trouble(pod, cluster)
        if trouble is None:
            continue
        key = (namespace_of(pod), workload_of_pod(pod)[1], trouble.mechanism)
        before = found.get(key)
        again = replace(before, objects=before.objects + 1) if before else None
        found[key] = again or _finding(pod, trouble, cluster)
    yield from found.values()


def is_working(pod: KubernetesObject) -> bool:
    """Whether it is ready, or ended as it should."""
    if text_at(pod, "status", "phase") == "Succeeded":
        return True
    statuses = rows_at(pod, "status", "containerStatuses")
    return (
        text_at(pod, "status", "phase") == "Running"
        and bool(statuses)
        and all(row.get("ready") is True for row in statuses)
        and value_at(pod, "metadata", "deletionTimestamp") is None
    )


def is_to_run(pod: KubernetesObject) -> bool:
    """Whether it counts among the pods that its workload wants."""
    ended = text_at(pod, "status", "phase") in _NOT_RUN
    return not ended and value_at(pod, "metadata", "deletionTimestamp") is None


def pod_trouble(pod: KubernetesObject, cluster: Inventory) -> Trouble | None:
    """None for a pod that works, ended, starts or stops as it should."""
    phase = text_at(pod, "status", "phase")
    if deleted := instant_at(pod, "metadata", "deletionTimestamp"):
        late = cluster.is_older_than(deleted, _TERMINATING)
        said = "it was deleted long ago and does not end: a finalizer or its node holds it"
        return (
            Trouble("Terminating", "pod does not end", said, impact=Impact.RISK) if late else None
        )
    if phase in _NOT_RUN:
        return _failed_alone(pod) if phase == "Failed" else None
    if is_unscheduled(pod):
        mechanism, reason = why_unscheduled(pod, cluster)
        why = text_at(condition(pod, "PodScheduled"), "reason")
        state = f"Pending, {why}" if why else "Pending"
        return Trouble(state, mechanism, reason) if mechanism else None
    return _of_containers(pod, cluster)


def _failed_alone(pod: KubernetesObject) -> Trouble | None:
    """A failed pod without a replacement by a Job or a workload."""
    if rows_at(pod, "metadata", "ownerReferences"):
        return None
    reason = text_at(pod, "status", "reason") or "Failed"
    said = text_at(pod, "status", "message") or "it failed, and nothing replaces it"
    return Trouble(reason, "pod failed", said)


def _of_containers(pod: KubernetesObject, cluster: Inventory) -> Trouble | None:
    for row in rows_at(pod, "status", "initContainerStatuses"):
        if trouble := trouble_of(pod, row, cluster, is_init=True):
            return trouble
    statuses = rows_at(pod, "status", "containerStatuses")
    for row in statuses:
        if trouble := trouble_of(pod, row, cluster):
            return trouble
    for row in statuses:
        if trouble := restarted(pod, row, cluster):
            return trouble
    if is_working(pod):
        return None
    if any(_is_waiting(row) for row in statuses) or not statuses:
        return _not_created(pod, cluster)
    return _not_ready(pod, cluster)


def _is_waiting(row: KubernetesObject) -> bool:
    waiting = mapping_at(row, "state", "waiting")
    return bool(waiting) and text_at(waiting, "reason") in STARTING


def _not_created(pod: KubernetesObject, cluster: Inventory) -> Trouble | None:
    if trouble := stuck(pod, cluster):
        return trouble
    started = instant_at(pod, "status", "startTime") or instant_at(
        pod, "metadata", "creationTimestamp"
    )
    running = [row for row in rows_at(pod, "status", "initContainerStatuses") if _runs(row)]
    if not cluster.is_older_than(started, _CREATED_WITHIN):
        return None
    if running:
        name = text_at(running[0], "name")
        said = f"init container {name} still runs, so the containers are not started"
        return Trouble("Init", "init container does not end", said, name, impact=Impact.DEGRADED)
    said = text_at(condition(pod, "ContainersReady"), "message")
    state = text_at(pod, "status", "reason") or "ContainerCreating"
    words = text_at(pod, "status", "message") or said or "its containers are not created"
    return Trouble(state, "container is not created", words)


def _not_ready(pod: KubernetesObject, cluster: Inventory) -> Trouble | None:
    if not _had_time(pod, cluster):
        return None
    if probe := failing_probe(pod, cluster, tuple(PROBES)):
        kind, how = probe
        said = f"{how}"
        return Trouble(_ready_text(pod), f"{kind} probe fails", said)
    words = (
        text_at(condition(pod, "Ready"), "message")
        or text_at(condition(pod, "ContainersReady"), "message")
        or text_at(pod, "status", "message")
        or "it runs and is not ready"
    )
    state = text_at(pod, "status", "reason") or _ready_text(pod)
    return Trouble(state, "not ready", words)


def _had_time(pod: KubernetesObject, cluster: Inventory) -> bool:
    """Whether its readiness probes could have passed since the containers started."""
    started = [
        at
        for row in rows_at(pod, "status", "containerStatuses")
        if (at := instant_at(row, "state", "running", "startedAt"))
    ]
    patience = max(
        (_patience(container) for container in rows_at(pod, "spec", "containers")),
        default=_LEAST_START,
    )
    return not started or cluster.is_older_than(max(started), min(patience, _LONGEST_START))


def _patience(container: KubernetesObject) -> timedelta:
    seconds = 0
    for probe in ("readinessProbe", "startupProbe"):
        asked = mapping_at(container, probe)
        period = number_at(asked, "periodSeconds") or 10
        most = number_at(asked, "failureThreshold") or 3
        seconds += (number_at(asked, "initialDelaySeconds") or 0) + period * most if asked else 0
    return max(_LEAST_START, timedelta(seconds=min(seconds, 3600)))


def _finding(pod: KubernetesObject, trouble: Trouble, cluster: Inventory) -> Finding:
    kind, workload = workload_of_pod(pod)
    product = cluster.product_of(pod, workload)
    name = name_of(pod)
    if trouble.mechanism.startswith("kube-scheduler"):
        return _scheduler(pod, trouble, cluster)
    others = _siblings(pod, cluster)
    well = sum(map(is_working, others))
    count = f" ({well} of {len(others)} pods are ready)" if len(others) > 1 else ""
    return Finding(
        kind="Pod",
        namespace=namespace_of(pod),
        name=name,
        product=product,
        workload=workload,
        state=trouble.state,
        mechanism=trouble.mechanism,
        reason=f"pod {name}{count}: {trouble.reason}{_rollout(pod, workload, cluster)}",
        impact=_impact(trouble, well, is_stateful=kind == "StatefulSet"),
        crashed=trouble.crashed,
    )


def _rollout(pod: KubernetesObject, workload: str, cluster: Inventory) -> str:
    space = namespace_of(pod)
    deployment = cluster.named("Deployment", space, workload) or next(
        (one for one in cluster.of("Deployment") if _selects(one, pod)), None
    )
    if deployment is None:
        return ""
    name, progressing = name_of(deployment), condition(deployment, "Progressing")
    events = cluster.events_of("Deployment", space, name, "ProgressDeadlineExceeded")
    if progressing.get("status") != "False" and not events:
        return ""
    said = text_at(progressing, "message") or "".join(message_of(event) for event in events[:1])
    return f"; the rollout of Deployment {name} does not progress: {said}"


def _selects(deployment: KubernetesObject, pod: KubernetesObject) -> bool:
    selector = texts_at(deployment, "spec", "selector", "matchLabels")
    return namespace_of(deployment) == namespace_of(pod) and is_selected(labels_of(pod), selector)


def _impact(trouble: Trouble, well: int, *, is_stateful: bool) -> Impact:
    partly = trouble.impact is Impact.DOWN and well and not is_stateful
    return Impact.DEGRADED if partly else trouble.impact


def _scheduler(pod: KubernetesObject, trouble: Trouble, cluster: Inventory) -> Finding:
    """The scheduler is a part of the control plane, so it is named with its node."""
    node = control_plane_node(cluster)
    where = f" of {node}" if node else ""
    return Finding(
        kind="Scheduler",
        namespace="kube-system",
        name="kube-scheduler",
        product=node,
        workload="kube-scheduler",
        state="unavailable",
        mechanism="kube-scheduler is probably down",
        reason=f"kube-scheduler{where}: pod {name_of(pod)} is Pending, {trouble.reason}",
    )


def _siblings(pod: KubernetesObject, cluster: Inventory) -> Sequence[KubernetesObject]:
    return [
        one for one in cluster.pods_of(namespace_of(pod), workload_of_pod(pod)) if is_to_run(one)
    ]


def _runs(row: KubernetesObject) -> bool:
    return bool(mapping_at(row, "state", "running"))


def _ready_text(pod: KubernetesObject) -> str:
    statuses = rows_at(pod, "status", "containerStatuses")
    ready = sum(row.get("ready") is True for row in statuses)
    return f"{ready}/{len(statuses)} ready"


def pending_claims(pod: KubernetesObject) -> list[str]:
    volumes = rows_at(pod, "spec", "volumes")
    return [name for row in volumes if (name := text_at(row, "persistentVolumeClaim", "claimName"))]
