"""Volume claims that are not bound, and why: the class, the selector, the volume's owner."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Final

from tools.analysis.cluster.fields import (
    instant_at,
    is_selected,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    text_at,
    texts_at,
    value_at,
)
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.inventory import (
    Inventory,
    in_pairs,
    joined,
    message_of,
    workload_of_pod,
)
from tools.analysis.cluster.pods import pending_claims
from tools.analysis.cluster.scheduling import is_unscheduled
from tools.cluster_objects import KubernetesObject

_CLAIM: Final = "PersistentVolumeClaim"
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d+)?)([A-Za-z]*)")
_UNITS: Final = {
    "": 1,
    **{unit: 1000**power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": 1024**power for power, unit in enumerate("KMGTPE", 1)},
}
_BOUND_WITHIN: Final = timedelta(seconds=60)
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"
_SAID: Final = ("FailedBinding", "ProvisioningFailed", "VolumeMismatch", "WaitForPodScheduled")


def storage_findings(cluster: Inventory) -> Iterator[Finding]:
    """Claims that a waiting pod mounts, or that are lost; an unused claim may wait for its pod."""
    mounting = _mounting(cluster)
    for claim in cluster.of(_CLAIM):
        phase = text_at(claim, "status", "phase")
        users = mounting.get((namespace_of(claim), name_of(claim)), ())
        waiting = [pod for pod in users if is_unscheduled(pod)]
        if phase == "Lost" or (phase == "Pending" and _is_late(claim, cluster)):
            yield _finding(claim, phase, users, waiting, cluster)
    yield from _absent(cluster)


def _is_late(claim: KubernetesObject, cluster: Inventory) -> bool:
    return cluster.is_older_than(instant_at(claim, "metadata", "creationTimestamp"), _BOUND_WITHIN)


def _mounting(cluster: Inventory) -> Mapping[tuple[str, str], Sequence[KubernetesObject]]:
    found: dict[tuple[str, str], list[KubernetesObject]] = defaultdict(list)
    for pod in cluster.of("Pod"):
        for name in pending_claims(pod):
            found[namespace_of(pod), name].append(pod)
    return found


def _finding(
    claim: KubernetesObject,
    phase: str,
    users: Sequence[KubernetesObject],
    waiting: Sequence[KubernetesObject],
    cluster: Inventory,
) -> Finding:
    name = name_of(claim)
    workload = workload_of_pod(users[0])[1] if users else ""
    mechanism, why = _why(claim, cluster)
    said = next(
        (message_of(e) for e in cluster.events_of(_CLAIM, namespace_of(claim), name, *_SAID)), ""
    )
    pods = f", so pod {name_of(waiting[0])} cannot be scheduled" if waiting else ""
    reasons = "; ".join(part for part in (why, said) if part)
    return Finding(
        kind=_CLAIM,
        namespace=namespace_of(claim),
        name=name,
        product=cluster.product_of(users[0], workload) if users else cluster.product_of(claim),
        workload=workload,
        state=phase,
        mechanism=mechanism or "volume claim not bound",
        reason=f"volume claim (PVC) {name} is {phase}{pods}: {reasons or 'no reason is given'}",
        impact=Impact.DOWN if waiting or phase == "Lost" else Impact.RISK,
    )


def _why(claim: KubernetesObject, cluster: Inventory) -> tuple[str, str]:
    wanted = text_at(claim, "spec", "storageClassName")
    classes = {name_of(one): one for one in cluster.of("StorageClass")}
    if wanted and cluster.is_whole("StorageClass") and wanted not in classes:
        there = joined(sorted(classes))
        return (
            "StorageClass not found",
            f'its StorageClass (storage class) "{wanted}" does not exist; there is {there}',
        )
    if wanted or (_names_no_class(claim) and any(map(_is_default, classes.values()))):
        return "", ""
    return _why_no_volume(claim, cluster)


def _names_no_class(claim: KubernetesObject) -> bool:
    """An empty class is a choice: it excludes the default one."""
    return value_at(claim, "spec", "storageClassName") is None


def _is_default(storage_class: KubernetesObject) -> bool:
    return texts_at(storage_class, "metadata", "annotations").get(_DEFAULT_CLASS) == "true"


def _why_no_volume(claim: KubernetesObject, cluster: Inventory) -> tuple[str, str]:
    selector = texts_at(claim, "spec", "selector", "matchLabels")
    volumes = cluster.of("PersistentVolume")
    free = [one for one in volumes if not mapping_at(one, "spec", "claimRef")]
    if selector and volumes and not any(is_selected(labels_of(one), selector) for one in volumes):
        labels = joined(f"{name_of(one)} {in_pairs(labels_of(one))}".strip() for one in free)
        has = f"; free volumes have the labels: {labels}" if labels else ""
        return (
            "claim selector matches no volume",
            f"its selector {in_pairs(selector)} matches the labels of no volume{has}",
        )
    taken = [one for one in volumes if _would_fit(claim, one) and one not in free]
    if taken and not any(_would_fit(claim, one) for one in free):
        of = mapping_at(taken[0], "spec", "claimRef")
        return (
            "volume is bound to another claim",
            f"volume {name_of(taken[0])} would fit and is already bound to another claim, "
            f"{text_at(of, 'name')}",
        )
    return _why_not_these(claim, free) if free else ("", "")


def _why_not_these(claim: KubernetesObject, free: Sequence[KubernetesObject]) -> tuple[str, str]:
    asked = text_at(claim, "spec", "resources", "requests", "storage")
    offered = joined(
        f"{name_of(one)} ({text_at(one, 'spec', 'capacity', 'storage')}, {joined(_modes(one))})"
        for one in free
    )
    wanted = set(_modes(claim))
    if not any(wanted <= set(_modes(one)) for one in free):
        modes = joined(_modes(claim))
        return "access mode mismatch", f"no free volume has its access mode {modes}: {offered}"
    if not any(_size(claim, "requests") <= _size(one, "capacity") for one in free):
        return (
            "no volume is large enough",
            f"it requests a capacity of {asked}, free volumes are smaller: {offered}",
        )
    return "no volume fits the claim", f"it requests {asked}, free volumes: {offered}"


def _size(one: KubernetesObject, kind: str) -> float:
    path = ("spec", "capacity") if kind == "capacity" else ("spec", "resources", "requests")
    found = _QUANTITY.fullmatch(text_at(one, *path, "storage"))
    return float(found[1]) * _UNITS.get(found[2], 0) if found else 0.0


def _would_fit(claim: KubernetesObject, volume: KubernetesObject) -> bool:
    """By class, mode and namesake; a volume named after the claim was made for it."""
    same_class = text_at(claim, "spec", "storageClassName") == text_at(
        volume, "spec", "storageClassName"
    )
    selector = texts_at(claim, "spec", "selector", "matchLabels")
    selected = not selector or is_selected(labels_of(volume), selector)
    return same_class and selected and set(_modes(claim)) <= set(_modes(volume))


def _modes(one: KubernetesObject) -> Sequence[str]:
    found = value_at(one, "spec", "accessModes")
    return [str(mode) for mode in found] if isinstance(found, list) else []


def _absent(cluster: Inventory) -> Iterator[Finding]:
    """Claims that pods mount and that do not exist; a full quota of storage may be why."""
    if _CLAIM not in cluster.objects or _CLAIM in cluster.partial:
        return
    told = set()
    for pod in cluster.of("Pod"):
        if not is_unscheduled(pod):
            continue
        for name in pending_claims(pod):
            space, workload = namespace_of(pod), workload_of_pod(pod)[1]
            if cluster.named(_CLAIM, space, name) is not None or (space, name) in told:
                continue
            told.add((space, name))
            yield Finding(
                kind=_CLAIM,
                namespace=space,
                name=name,
                product=cluster.product_of(pod, workload),
                workload=workload,
                state="not found",
                mechanism="persistentvolumeclaim not found",
                reason=f"volume claim (PVC) {name} does not exist, so pod {name_of(pod)} cannot be "
                f"scheduled{_quota(space, cluster)}",
            )


def _quota(space: str, cluster: Inventory) -> str:
    for quota in cluster.of("ResourceQuota"):
        hard, used = texts_at(quota, "status", "hard"), texts_at(quota, "status", "used")
        limits = {key: value for key, value in hard.items() if "storage" in key or "volume" in key}
        if namespace_of(quota) == space and limits:
            told = joined(
                f"{key} {used.get(key, '0')} of {value} used" for key, value in limits.items()
            )
            return f"; perhaps exceeded quota: ResourceQuota {name_of(quota)} limits it ({told})"
    return ""
