"""Ingresses that lead to no Service, and NetworkPolicies that keep all traffic from a product."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from tools.analysis.cluster.fields import (
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
from tools.analysis.cluster.inventory import WORKLOADS, Inventory, declared_ports, template_labels
from tools.cluster_objects import KubernetesObject

_PEERS: Final = {"Ingress": "from", "Egress": "to"}


def network_findings(cluster: Inventory) -> Iterator[Finding]:
    if cluster.is_whole("Service"):
        for ingress in cluster.of("Ingress"):
            yield from _backends(ingress, cluster)
    policies: dict[str, list[KubernetesObject]] = defaultdict(list)
    if "NetworkPolicy" in cluster.partial:
        return  # one that was not read may allow what another denies
    for policy in cluster.of("NetworkPolicy"):
        policies[namespace_of(policy)].append(policy)
    for kind in WORKLOADS if policies else ():
        for one in cluster.of(kind):
            yield from _denied(kind, one, policies[namespace_of(one)], cluster)


def _backends(ingress: KubernetesObject, cluster: Inventory) -> Iterator[Finding]:
    """Once per Service that does not exist, or does not have the port."""
    paths = [
        (f"{text_at(rule, 'host')}{text_at(path, 'path')}", mapping_at(path, "backend", "service"))
        for rule in rows_at(ingress, "spec", "rules")
        for path in rows_at(rule, "http", "paths")
    ]
    paths.append(("its default backend", mapping_at(ingress, "spec", "defaultBackend", "service")))
    told: set[str] = set()
    for where, backend in paths:
        name = text_at(backend, "name")
        service = cluster.named("Service", namespace_of(ingress), name)
        if not name or name in told or (service and _has_port(service, backend)):
            continue
        told.add(name)
        port = value_at(backend, "port", "number") or text_at(backend, "port", "name")
        lacks = f"has no port {port}" if service else "does not exist"
        yield Finding(
            kind="Ingress",
            namespace=namespace_of(ingress),
            name=name_of(ingress),
            product=cluster.product_of(ingress, name),
            workload=name,
            state="no backend",
            mechanism="Ingress without backend",
            reason=f"Ingress {name_of(ingress)} sends {where or 'all paths'} to Service {name}, "
            f"which {lacks}",
        )


def _has_port(service: KubernetesObject, backend: KubernetesObject) -> bool:
    number, called = number_at(backend, "port", "number"), text_at(backend, "port", "name")
    return any(
        number_at(row, "port") == number if number is not None else text_at(row, "name") == called
        for row in rows_at(service, "spec", "ports")
    )


def _denied(
    kind: str, one: KubernetesObject, there: Sequence[KubernetesObject], cluster: Inventory
) -> Iterator[Finding]:
    """Policies add up: traffic is denied where some select the pods, and no rule lets any pass."""
    space, labels = namespace_of(one), template_labels(one)
    services = [name_of(each) for each in cluster.services_of(space, labels)]
    for way, words in (("Ingress", "into"), ("Egress", "out of")):
        policies = [each for each in there if way in _ways(each) and _may_select(each, labels)]
        if not policies or (way == "Ingress" and not services):
            continue
        rules = [rule for each in policies for rule in rows_at(each, "spec", way.lower())]
        is_sure = not any(map(_has_expressions, policies))
        if not is_sure or any(_passes(rule, way, one, cluster) for rule in rules):
            continue
        led = f", which Service {services[0]} leads to" if way == "Ingress" else ", nor DNS"
        name = name_of(policies[0])
        yield Finding(
            kind="NetworkPolicy",
            namespace=space,
            name=name,
            product=cluster.product_of(one),
            workload=name_of(one),
            state=f"{way} denied",
            mechanism="network policy denies",
            reason=f"NetworkPolicy {name} lets no traffic {words} the pods of {kind} "
            f"{name_of(one)}{led}",
            impact=Impact.UNSURE,  # not every network plugin enforces policies
        )


def _ways(policy: KubernetesObject) -> Sequence[str]:
    named = value_at(policy, "spec", "policyTypes")
    if isinstance(named, list) and named:
        return [each for each in named if isinstance(each, str)]
    return ["Ingress", *(["Egress"] if rows_at(policy, "spec", "egress") else [])]


def _has_expressions(policy: KubernetesObject) -> bool:
    """Whether more than equal labels decides what it selects."""
    return bool(rows_at(policy, "spec", "podSelector", "matchExpressions"))


def _may_select(policy: KubernetesObject, labels: dict[str, str]) -> bool:
    wanted = texts_at(policy, "spec", "podSelector", "matchLabels")
    return not wanted or is_selected(labels, wanted)


def _passes(rule: KubernetesObject, way: str, one: KubernetesObject, cluster: Inventory) -> bool:
    """Whether a rule lets anything pass; in doubt it does."""
    peers = rows_at(rule, _PEERS[way])
    ports = rows_at(rule, "ports")
    declared = declared_ports(mapping_at(one, "spec", "template", "spec"))
    is_port = (
        way == "Egress"
        or not declared
        or not ports
        or any(_is_port(row, number, name) for row in ports for number, name, _ in declared)
    )
    return is_port and (not peers or any(_is_someone(peer, one, cluster) for peer in peers))


def _is_port(row: KubernetesObject, number: int, name: str) -> bool:
    port, last = value_at(row, "port"), number_at(row, "endPort")
    if isinstance(port, int):
        return port <= number <= (last or port)
    return port is None or port == name


def _is_someone(peer: KubernetesObject, one: KubernetesObject, cluster: Inventory) -> bool:
    selector = mapping_at(peer, "podSelector")
    wanted = texts_at(selector, "matchLabels")
    is_plain = "namespaceSelector" not in peer and "ipBlock" not in peer
    if not is_plain or not wanted or rows_at(selector, "matchExpressions"):
        return True
    pods = [pod for pod in cluster.of("Pod") if namespace_of(pod) == namespace_of(one)]
    return not cluster.is_whole("Pod") or any(is_selected(labels_of(pod), wanted) for pod in pods)
