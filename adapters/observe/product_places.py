"""Where products are found: which labels hold their names, and which of several is to be believed.

A product is a label's value (`service_name="checkout"`), the end of one (`job="shop/checkout"`), the
workload that a pod's name is made of, or `namespace/workload`.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.observe.signal_promql import literal
from tools.product_names import (
    NAMESPACE_LABELS,
    NO_WORKLOAD,
    POD_LABELS,
    POD_TAIL,
    WORKLOAD_LABELS,
    workload_of,
)
from tools.signals import Place

# Of a sidecar's own labels and the other end's, the served workload is the product.
_BY_PREFIX: Final[Mapping[str, Sequence[str]]] = {
    "istio_": ("destination_service_name", "destination_workload", "destination_canonical_service"),
}
# The other end of a call, or a dimension that is never the product measured.
_NEVER: Final = re.compile(
    r"__name__|le|quantile|stat(istic)?|(source|client|peer|upstream|remote|target|net|server|db|rpc|http|"
    r"url|le|exception|error|messaging|user_agent|net)_.*|.*(_peer|_upstream|_remote|address|_version|"
    r"_hash|_id|_uid|_code|_status)|method|path|route|uri|url|handler|endpoint|code|status|outcome|"
    r"result|reason|phase|condition|mode|state|device|mountpoint|fstype|cpu|interface|image|uid|id|"
    r"version|upstream|peer|remote|target|dependency|callee|destination.*|environment|env|region|zone"
)  # fmt: skip
_MOST_UNKNOWN: Final = 40
# A usual label with several meanings: a container's name, or that of a pool or a circuit breaker.
_GENERIC: Final = frozenset({"name"})


@dataclass(frozen=True, slots=True)
class ProductLabels:
    """What operators say of the labels that hold products: those to believe first, or the only one."""

    preferred: Sequence[str] = ()
    named: str = ""


@dataclass(frozen=True, slots=True)
class LabelAsked:
    """A label that may hold products, and how.

    `generic`: it rarely names one; `tells_owner`: a service.
    """

    label: str
    pods: bool
    generic: bool = False
    tells_owner: bool = False


@dataclass(frozen=True, slots=True)
class Sighting:
    """A metric was seen with this value of a label, in this namespace (empty: not known)."""

    metric: str
    label: str
    value: str
    namespace: str = ""


NO_WORD: Final = ProductLabels()


def labels_to_ask(existing: Iterable[str], told: ProductLabels = NO_WORD) -> list[LabelAsked]:
    """The labels that may name a product, the preferred first, unknown ones last."""
    if told.named:
        return [LabelAsked(told.named, pods=False)]
    there = sorted(set(existing))
    by_usual_name: dict[str, list[str]] = defaultdict(list)
    for label in there:
        by_usual_name[underscored(label)].append(label)
    preferred = [label for label in told.preferred if label in there]
    usual = [label for name in WORKLOAD_LABELS for label in by_usual_name[name]]
    known = [*preferred, *usual]
    pods = [label for name in POD_LABELS for label in by_usual_name[name]]
    spaces = {label for name in NAMESPACE_LABELS for label in by_usual_name[name]}
    others = [label for label in there if label not in {*known, *pods, *spaces}]
    unknown = [label for label in others if not _NEVER.fullmatch(underscored(label))]
    return [
        *(_known(label, told) for label in dict.fromkeys(known)),
        *(LabelAsked(label, pods=True) for label in pods),
        *(LabelAsked(label, pods=False, generic=True) for label in unknown[:_MOST_UNKNOWN]),
    ]


def underscored(label: str) -> str:
    """`k8s.pod.name`, as OpenTelemetry writes it, is `k8s_pod_name` to Prometheus before 3."""
    return re.sub(r"[^a-zA-Z0-9_]", "_", label)


def _known(label: str, told: ProductLabels) -> LabelAsked:
    is_preferred = label in told.preferred
    return LabelAsked(
        label,
        pods=False,
        generic=underscored(label) in _GENERIC and not is_preferred,
        tells_owner=is_preferred or underscored(label) not in NO_WORKLOAD,
    )


def value_pattern(products: Sequence[str], pods: bool) -> str:
    """What a label's value looks like when it names one of the products, as RE2."""
    names = {product.rpartition("/")[2] for product in products} | set(products)
    either = "|".join(literal(name) for name in sorted(names))
    return f"(?:{either}){POD_TAIL}" if pods else f"(?:[^/]+/)?(?:{either})"


def places_by_metric(
    sightings: Iterable[Sighting],
    products: Sequence[str],
    asked: Sequence[LabelAsked],
    namespace_label: str,
) -> dict[str, dict[str, list[Place]]]:
    """For each metric where each product is: by one label, the first that has it."""
    rank = {one.label: number for number, one in enumerate(asked)}
    pods = {one.label for one in asked if one.pods}
    seen: dict[str, dict[str, dict[str, set[Place]]]] = defaultdict(lambda: defaultdict(dict))
    for sighting in sightings:
        if not may_hold(sighting):
            continue
        name = workload_of(sighting.value) if sighting.label in pods else sighting.value
        for product in products_of(name, sighting.namespace, products):
            place = _place(sighting, name, product, sighting.label in pods, namespace_label)
            labels = seen[sighting.metric][product]
            labels.setdefault(sighting.label, set()).add(place)
    return {
        metric: {
            product: sorted(labels[min(labels, key=lambda label: rank[label])], key=repr)
            for product, labels in of_products.items()
        }
        for metric, of_products in seen.items()
    }


def may_hold(sighting: Sighting) -> bool:
    """Whether a label of that metric may name its product: of a sidecar's, those of the served alone."""
    for prefix, labels in _BY_PREFIX.items():
        if sighting.metric.startswith(prefix):
            return sighting.label in labels
    return True


def products_of(name: str, namespace: str, products: Sequence[str]) -> list[str]:
    """The products that a workload's name means. `namespace` is empty if unknown."""
    end = name.rpartition("/")[2]
    return [
        product
        for product in products
        if product in (name, end) or (namespace and product == f"{namespace}/{name}")
    ]


def _place(sighting: Sighting, name: str, product: str, pods: bool, namespace_label: str) -> Place:
    in_namespace = bool(sighting.namespace) and product == f"{sighting.namespace}/{name}"
    return Place(
        sighting.label,
        name,
        pods,
        sighting.namespace if in_namespace else "",
        namespace_label if in_namespace else "",
    )
