"""The objects and events of a cluster, and which of them belong together."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tools.analysis.cluster.fields import (
    is_selected,
    labels_of,
    mapping_at,
    name_of,
    namespace_of,
    rows_at,
    text_at,
    texts_at,
)
from tools.cluster_objects import ClusterEvent, KubernetesObject
from tools.product_names import product_in, workload_of

WORKLOADS: Final = ("Deployment", "StatefulSet", "DaemonSet")
_COMBINED: Final = re.compile(r"^\(combined from similar events\): ")
_PREEMPTION: Final = re.compile(r"\s*preemption: .*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Inventory:
    """`objects` by kind; a kind that could not be read is absent, one read in part is in `partial`."""

    objects: Mapping[str, Sequence[KubernetesObject]]
    events: Sequence[ClusterEvent]
    products: Sequence[str]
    now: datetime
    partial: frozenset[str] = frozenset()

    def of(self, kind: str) -> Sequence[KubernetesObject]:
        """The objects of a kind."""
        return self.objects.get(kind, ())

    def is_whole(self, kind: str) -> bool:
        """Whether all objects of that kind are known, so that an absence proves something."""
        return bool(self.objects.get(kind)) and kind not in self.partial

    def named(self, kind: str, namespace: str, name: str) -> KubernetesObject | None:
        """The object of that name."""
        found = (
            one
            for one in self.of(kind)
            if name_of(one) == name and namespace_of(one) in {"", namespace}
        )
        return next(found, None)

    def selected(
        self, kind: str, namespace: str, selector: Mapping[str, str]
    ) -> list[KubernetesObject]:
        """The objects that a selector selects in its namespace."""
        return [
            one
            for one in self.of(kind)
            if namespace_of(one) == namespace and is_selected(labels_of(one), selector)
        ]

    def product_of(self, one: KubernetesObject, workload: str = "") -> str:
        """The channel's product that the object belongs to; empty when it is none's."""
        for name in dict.fromkeys((workload, name_of(one))):
            if owner := owner_of(name, self.products):
                return owner
        found = product_in(labels_of(one), self.products)
        return found if found in self.products else ""

    def events_of(
        self, kind: str, namespace: str, name: str, *reasons: str
    ) -> Sequence[ClusterEvent]:
        """The object's events, newest first; only with these reasons where any is given."""
        found = (
            event
            for event in self.events
            if event.name == name
            and event.kind == kind
            and event.namespace in {"", namespace}
            and (not reasons or event.reason in reasons)
        )
        return sorted(found, key=when, reverse=True)

    def is_older_than(self, at: datetime | None, age: timedelta) -> bool:
        """Whether that instant is that long ago; an unknown one is."""
        return at is None or self.now - at > age


def when(event: ClusterEvent) -> float:
    """The event's time as a number; 0 when it has none."""
    return event.at.timestamp() if event.at else 0.0


def message_of(event: ClusterEvent) -> str:
    """The event's message, without what says nothing of the reason."""
    return _PREEMPTION.sub("", _COMBINED.sub("", event.message)).strip()


def workload_of_pod(pod: KubernetesObject) -> tuple[str, str]:
    """Kind and name of what made the pod: its Deployment, or the pod itself."""
    owners = rows_at(pod, "metadata", "ownerReferences")
    owner = next((row for row in owners if row.get("controller") is True), None)
    owner = owner or next(iter(owners), None)
    if owner is None:
        return "Pod", workload_of(name_of(pod))
    kind, name = text_at(owner, "kind"), text_at(owner, "name")
    if kind == "ReplicaSet":
        return "Deployment", deployment_of(name, labels_of(pod).get("pod-template-hash", ""))
    return kind, name


def deployment_of(replica_set: str, template_hash: str = "") -> str:
    """A ReplicaSet's name without the hash of its template."""
    if template_hash and replica_set.endswith(f"-{template_hash}"):
        return replica_set.removesuffix(f"-{template_hash}")
    return re.sub(r"-[bcdfghjklmnpqrstvwxz2456789]{6,10}$", "", replica_set)


def template_labels(workload: KubernetesObject) -> dict[str, str]:
    """The labels of the pods that a workload makes."""
    return texts_at(workload, "spec", "template", "metadata", "labels")


def containers_of(pod_spec: KubernetesObject) -> list[KubernetesObject]:
    """Containers of a pod's spec, without init containers."""
    return rows_at(pod_spec, "containers")


def declared_ports(pod_spec: KubernetesObject) -> list[tuple[int, str, str]]:
    """Number, name and protocol of each port that its containers declare; sidecars' too."""
    sidecars = (
        row for row in rows_at(pod_spec, "initContainers") if row.get("restartPolicy") == "Always"
    )
    found = []
    for container in (*containers_of(pod_spec), *sidecars):
        for port in rows_at(container, "ports"):
            number = port.get("containerPort")
            if isinstance(number, int) and not isinstance(number, bool):
                found.append((number, text_at(port, "name"), text_at(port, "protocol") or "TCP"))
    return found


def probe_ports(pod_spec: KubernetesObject) -> set[int]:
    """The ports that its containers' probes ask."""
    named = {name: number for number, name, _ in declared_ports(pod_spec) if name}
    found = set()
    for container in containers_of(pod_spec):
        for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
            port = port_of_probe(mapping_at(container, probe))
            number = named.get(port) if isinstance(port, str) else port
            if number is not None:
                found.add(number)
    return found


def port_of_probe(probe: KubernetesObject) -> int | str | None:
    """The port that a probe asks, by number or name; None for a command."""
    for how in ("httpGet", "tcpSocket", "grpc"):
        port = mapping_at(probe, how).get("port")
        if isinstance(port, str) or (isinstance(port, int) and not isinstance(port, bool)):
            return port
    return None


def owner_of(name: str, products: Collection[str]) -> str:
    """The product that an object's name is made of, the longest; empty when none is."""
    fits = [p for p in products if name == p or name.startswith((f"{p}-", f"{p}."))]
    return max(fits, key=len, default="")


def joined(parts: Iterable[str], most: int = 4) -> str:
    """`a, b and 3 more`."""
    found = list(dict.fromkeys(part for part in parts if part))
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def in_pairs(labels: Mapping[str, str]) -> str:
    """Labels as a selector writes them: `app=web, tier=front`."""
    return ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))
