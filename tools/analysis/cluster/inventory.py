"""The objects and events of a cluster, and which of them belong together."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
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


class Inventory:
    """The indexed objects of a cluster: a large one has thousands.

    `objects` by kind; a kind that could not be read is absent, one read in part is in `partial`.
    """

    def __init__(
        self,
        objects: Mapping[str, Sequence[KubernetesObject]],
        events: Sequence[ClusterEvent],
        products: Sequence[str],
        now: datetime,
        partial: frozenset[str] = frozenset(),
    ) -> None:
        self.objects, self.events, self.products = objects, events, products
        self.now, self.partial = now, partial
        self._named = {
            (kind, namespace_of(one), name_of(one)): one
            for kind, found in objects.items()
            for one in found
        }
        self._pods_of: dict[tuple[str, tuple[str, str]], list[KubernetesObject]] = defaultdict(list)
        for pod in self.of("Pod"):
            self._pods_of[namespace_of(pod), workload_of_pod(pod)].append(pod)
        self._pods = _by_pair((pod, labels_of(pod)) for pod in self.of("Pod"))
        workloads = [one for kind in WORKLOADS for one in self.of(kind)]
        self._templates = _by_pair((one, template_labels(one)) for one in workloads)
        self._selectors = _by_pair((one, selector_of(one)) for one in self.of("Service"))
        self._events_of: dict[tuple[str, str], list[ClusterEvent]] = defaultdict(list)
        for event in sorted(events, key=when, reverse=True):
            self._events_of[event.kind, event.name].append(event)

    def of(self, kind: str) -> Sequence[KubernetesObject]:
        return self.objects.get(kind, ())

    def is_whole(self, kind: str) -> bool:
        """Whether all objects of that kind are known, so that an absence proves something."""
        return bool(self.objects.get(kind)) and kind not in self.partial

    def named(self, kind: str, namespace: str, name: str) -> KubernetesObject | None:
        return self._named.get((kind, namespace, name)) or self._named.get((kind, "", name))

    def pods_of(self, namespace: str, workload: tuple[str, str]) -> Sequence[KubernetesObject]:
        """The pods that a workload (kind and name) made."""
        return self._pods_of.get((namespace, workload), ())

    def pods_selected(
        self, namespace: str, selector: Mapping[str, str]
    ) -> Sequence[KubernetesObject]:
        found = _of_first_pair(self._pods, namespace, selector)
        return [one for one in found if is_selected(labels_of(one), selector)]

    def workloads_selected(
        self, namespace: str, selector: Mapping[str, str]
    ) -> Sequence[KubernetesObject]:
        found = _of_first_pair(self._templates, namespace, selector)
        return [one for one in found if is_selected(template_labels(one), selector)]

    def services_of(self, namespace: str, labels: Mapping[str, str]) -> list[KubernetesObject]:
        """The Services that lead to pods with these labels."""
        found = {
            name_of(one): one
            for pair in labels.items()
            for one in self._selectors.get((namespace, *pair), ())
            if is_selected(labels, selector_of(one))
        }
        return list(found.values())

    def product_of(self, one: KubernetesObject, workload: str = "") -> str:
        """The channel's product that owns the object; empty if none does."""
        for name in dict.fromkeys((workload, name_of(one))):
            if owner := owner_of(name, self.products):
                return owner
        found = product_in(labels_of(one), self.products)
        return found if found in self.products else ""

    def events_of(
        self, kind: str, namespace: str, name: str, *reasons: str
    ) -> Sequence[ClusterEvent]:
        """The object's events, newest first; only with these reasons where any is given."""
        return [
            event
            for event in self._events_of.get((kind, name), ())
            if event.namespace in {"", namespace} and (not reasons or event.reason in reasons)
        ]

    def is_older_than(self, at: datetime | None, age: timedelta) -> bool:
        """Whether that instant is that long ago; an unknown one is."""
        return at is None or self.now - at > age


_ByPair = Mapping[tuple[str, str, str], Sequence[KubernetesObject]]


def _by_pair(found: Iterable[tuple[KubernetesObject, Mapping[str, str]]]) -> _ByPair:
    index: dict[tuple[str, str, str], list[KubernetesObject]] = defaultdict(list)
    for one, labels in found:
        for pair in labels.items():
            index[namespace_of(one), *pair].append(one)
    return index


def _of_first_pair(
    index: _ByPair, namespace: str, selector: Mapping[str, str]
) -> Sequence[KubernetesObject]:
    """The fewest objects that may fit."""
    rows = [index.get((namespace, *pair), ()) for pair in selector.items()]
    return min(rows, key=len, default=())


def selector_of(service: KubernetesObject) -> dict[str, str]:
    """The labels that a Service selects its pods by."""
    return texts_at(service, "spec", "selector")


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
    return texts_at(workload, "spec", "template", "metadata", "labels")


def containers_of(pod_spec: KubernetesObject) -> list[KubernetesObject]:
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
