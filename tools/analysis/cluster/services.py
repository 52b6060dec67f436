"""Services that lead nowhere: selectors, ports and protocols that fit no pod."""

from collections.abc import Iterator, Sequence
from typing import Final

from tools.analysis.cluster.fields import (
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
    declared_ports,
    in_pairs,
    joined,
    probe_ports,
    selector_of,
    template_labels,
    workload_of_pod,
)
from tools.analysis.cluster.pods import is_working
from tools.cluster_objects import KubernetesObject

# A proxy beside the container may listen on any port for it.
_PROXIES: Final = frozenset({"istio-proxy", "linkerd-proxy", "envoy", "envoy-sidecar"})


def service_findings(cluster: Inventory, lost: frozenset[str]) -> Iterator[Finding]:
    """Findings about Services with a selector, without pods on `lost` nodes.

    Other Services have manual endpoints, or are only names.
    """
    for service in cluster.of("Service"):
        selector = selector_of(service)
        if not selector or text_at(service, "spec", "type") == "ExternalName":
            continue
        pods = cluster.pods_selected(namespace_of(service), selector)
        if pods:
            misled = list(_ports(service, pods, cluster))
            yield from misled or _not_published(service, pods, lost, cluster)
        elif cluster.is_whole("Pod"):
            yield from _selects_none(service, selector, cluster)
    yield from _without_service(cluster)


def _selects_none(
    service: KubernetesObject, selector: dict[str, str], cluster: Inventory
) -> Iterator[Finding]:
    """No pod fits: its workload has none, which is a finding of its own, or the labels differ."""
    space, name = namespace_of(service), name_of(service)
    if cluster.workloads_selected(space, selector):
        return
    orphans = [
        pod
        for kind in WORKLOADS
        for pod in cluster.pods_of(space, (kind, name))
        if not cluster.services_of(space, labels_of(pod))
    ]
    has = ""
    if orphans:
        labels = {
            key: labels_of(orphans[0])[key] for key in selector if key in labels_of(orphans[0])
        }
        has = f"; the pods of {name} have {in_pairs(labels) or 'none of these labels'}"
    yield _finding(
        service,
        cluster,
        "selector matches no pod",
        f"its selector {in_pairs(selector)} matches no pod{has}, so it has no endpoints",
        Impact.DOWN if orphans else Impact.RISK,
    )


def _ports(
    service: KubernetesObject, pods: Sequence[KubernetesObject], cluster: Inventory
) -> Iterator[Finding]:
    """Each of its ports against what the newest pod's containers declare."""
    spec = mapping_at(pods[-1], "spec")
    declared = declared_ports(spec)
    for port in rows_at(service, "spec", "ports"):
        target = port.get("targetPort")
        target = port.get("port") if target is None or target == 0 else target
        if isinstance(target, str) and not target.isdecimal():
            if not _is_published(service, port, cluster):
                yield from _named_port(service, pods[-1], target, cluster)
        elif declared and isinstance(target, int | str):
            yield from _numbered_port(service, pods[-1], port, int(target), cluster)


def _is_published(service: KubernetesObject, port: KubernetesObject, cluster: Inventory) -> bool:
    """Whether its endpoints have this port, so that its name was found."""
    endpoints = cluster.named("Endpoints", namespace_of(service), name_of(service))
    return endpoints is not None and any(
        text_at(row, "name") == text_at(port, "name")
        for subset in rows_at(endpoints, "subsets")
        for row in rows_at(subset, "ports")
    )


def _named_port(
    service: KubernetesObject, pod: KubernetesObject, target: str, cluster: Inventory
) -> Iterator[Finding]:
    names = sorted({name for _, name, _ in declared_ports(mapping_at(pod, "spec")) if name})
    if target in names or not declared_ports(mapping_at(pod, "spec")):
        return
    has = f"its ports are named {', '.join(names)}" if names else "it names no port"
    yield _finding(
        service,
        cluster,
        "targetPort mismatch",
        f"its targetPort {target} is no container port of {workload_of_pod(pod)[1]}: {has}",
        Impact.DOWN,
    )


def _numbered_port(
    service: KubernetesObject,
    pod: KubernetesObject,
    port: KubernetesObject,
    target: int,
    cluster: Inventory,
) -> Iterator[Finding]:
    spec = mapping_at(pod, "spec")
    declared = declared_ports(spec)
    protocol = text_at(port, "protocol") or "TCP"
    protocols = {one for number, _, one in declared if number == target}
    numbers = sorted({number for number, _, _ in declared})
    workload = workload_of_pod(pod)[1]
    if protocols and protocol not in protocols:
        yield _finding(
            service,
            cluster,
            "protocol mismatch",
            f"its port {number_at(port, 'port') or target} has protocol {protocol}, "
            f"the container port {target} of {workload} has {', '.join(sorted(protocols))}",
            Impact.DOWN,
        )
    elif not protocols:
        listed = ", ".join(map(str, numbers))
        yield _finding(
            service,
            cluster,
            "targetPort mismatch",
            f"its targetPort {target} does not match the container port of {workload}: {listed}",
            Impact.DOWN if _listens_elsewhere(pod, target, service, cluster) else Impact.UNSURE,
        )


def _listens_elsewhere(
    pod: KubernetesObject, target: int, service: KubernetesObject, cluster: Inventory
) -> bool:
    """Whether a probe asks a declared port that no Service leads to, and none asks this one.

    A container may listen on ports that it does not declare, so a missing declaration proves little.
    """
    spec, labels = mapping_at(pod, "spec"), labels_of(pod)
    probed = probe_ports(spec)
    names = {text_at(row, "name") for row in rows_at(spec, "containers")}
    led_to = {
        number_at(port, "targetPort") or number_at(port, "port")
        for one in cluster.services_of(namespace_of(service), labels)
        for port in rows_at(one, "spec", "ports")
    }
    declared = {number for number, _, _ in declared_ports(spec)}
    return target not in probed and bool((probed & declared) - led_to) and not (_PROXIES & names)


def _not_published(
    service: KubernetesObject,
    pods: Sequence[KubernetesObject],
    lost: frozenset[str],
    cluster: Inventory,
) -> Iterator[Finding]:
    """Ready pods that are not among its endpoints: the control plane did not publish them."""
    endpoints = cluster.named("Endpoints", namespace_of(service), name_of(service))
    ready = [p for p in pods if is_working(p) and text_at(p, "spec", "nodeName") not in lost]
    if (
        endpoints is None
        or not ready
        or any(rows_at(subset, "addresses") for subset in rows_at(endpoints, "subsets"))
    ):
        return
    yield _finding(
        service,
        cluster,
        "no endpoints",
        f"it has no endpoints though {len(ready)} of its pods are ready",
        Impact.UNSURE,
    )


def _without_service(cluster: Inventory) -> Iterator[Finding]:
    """A Deployment with ports that no Service selects, in a namespace that may have no more Services."""
    if not cluster.is_whole("Service"):
        return
    for quota in cluster.of("ResourceQuota"):
        hard, used = texts_at(quota, "status", "hard"), texts_at(quota, "status", "used")
        if "services" not in hard or hard["services"] != used.get("services"):
            continue
        space = namespace_of(quota)
        for one in cluster.of("Deployment"):
            labels, spec = template_labels(one), mapping_at(one, "spec", "template", "spec")
            if namespace_of(one) != space or not declared_ports(spec):
                continue
            if not labels or cluster.services_of(space, labels):
                continue
            name = name_of(one)
            yield Finding(
                kind="Service",
                namespace=space,
                name=name,
                product=cluster.product_of(one),
                workload=name,
                state="not found",
                mechanism="exceeded quota",
                reason=f"no Service selects the pods of {name}, and ResourceQuota {name_of(quota)} "
                f"of {space} is used up: services={used['services']} of services={hard['services']}",
            )


def _finding(
    service: KubernetesObject, cluster: Inventory, mechanism: str, reason: str, impact: Impact
) -> Finding:
    name = name_of(service)
    ports = joined(str(value_at(row, "port")) for row in rows_at(service, "spec", "ports"))
    return Finding(
        kind="Service",
        namespace=namespace_of(service),
        name=name,
        product=cluster.product_of(service),
        workload=name,
        state=f"port {ports}" if ports else "no port",
        mechanism=mechanism,
        reason=f"Service {name}: {reason}",
        impact=impact,
    )
