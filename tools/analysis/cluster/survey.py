"""Everything that is wrong in a cluster, causes before consequences, each reported once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tools.analysis.cluster.admission import admission_findings
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.inventory import WORKLOADS, Inventory
from tools.analysis.cluster.network import network_findings
from tools.analysis.cluster.nodes import lost_nodes, node_findings
from tools.analysis.cluster.pods import pod_findings
from tools.analysis.cluster.services import service_findings
from tools.analysis.cluster.storage import storage_findings
from tools.analysis.cluster.workloads import workload_findings

_ORDER: Final = (Impact.DOWN, Impact.DEGRADED, Impact.UNSURE, Impact.RISK)
_KINDS: Final = ("Node", "Scheduler", "PersistentVolumeClaim")
_SYSTEM: Final = "kube-system"


def findings(cluster: Inventory) -> Sequence[Finding]:
    lost = lost_nodes(cluster)
    claims = list(storage_findings(cluster))
    mounted = {(one.namespace, one.workload) for one in claims if one.impact is Impact.DOWN}
    pods = [
        one
        for one in pod_findings(cluster, lost)
        if not (
            one.mechanism == "volume claim not bound" and (one.namespace, one.workload) in mounted
        )
    ]
    first = [*node_findings(cluster), *claims, *admission_findings(cluster), *pods]
    told = {(one.namespace, one.workload) for one in first}
    rest = [
        one
        for one in workload_findings(cluster)
        if one.kind not in WORKLOADS or (one.namespace, one.workload) not in told
    ]
    if lost:
        rest = [replace(one, impact=Impact.RISK) if _is_short(one) else one for one in rest]
    found = [*first, *rest, *service_findings(cluster, lost), *network_findings(cluster)]
    places = {product: place for place, product in enumerate(cluster.products)}
    return sorted(found, key=lambda one: _rank(one, places))


def _is_short(one: Finding) -> bool:
    return one.mechanism == "fewer ready than wanted"


def _rank(one: Finding, places: dict[str, int]) -> tuple[int, bool, bool, int]:
    return (
        _ORDER.index(one.impact),
        not one.product and one.kind not in _KINDS,
        one.kind not in _KINDS,
        places.get(one.product, len(places)),
    )


def concerns(found: Sequence[Finding]) -> Iterator[Finding]:
    """Those of the channel's products, and of what all products need: nodes and kube-system."""
    for one in found:
        if one.product or one.kind in {"Node", "Scheduler"} or one.namespace == _SYSTEM:
            yield one
