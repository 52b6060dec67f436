"""The labels of series, streams, alerts or Deployments that name a product.

One list for all of them, so that a product has the same name everywhere.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

ANY_PRODUCT: Final = "*"
# The most specific first: the telemetry's own labels, then the platform's, then the scrape's.
WORKLOAD_LABELS: Final = (
    "service_name", "service", "exported_service", "app", "application", "app_kubernetes_io_name",
    "label_app_kubernetes_io_name", "label_app", "microservice", "component", "container",
    "container_name", "k8s_container_name", "deployment", "k8s_deployment_name", "statefulset",
    "k8s_statefulset_name", "daemonset", "k8s_daemonset_name", "destination_service_name",
    "destination_workload", "destination_canonical_service", "workload", "owner_name", "ingress",
    "horizontalpodautoscaler", "job_name", "persistentvolumeclaim", "queue", "consumergroup",
    "dimension_DBInstanceIdentifier", "dbinstance_identifier", "DBInstanceIdentifier",
    "dimension_FunctionName", "dimension_LoadBalancer", "dimension_QueueName",
    "dimension_ClusterName", "dimension_ServiceName", "resource_name", "resourceName", "cluster",
    "job", "exported_job", "name", "node", "instance",
)  # fmt: skip
POD_LABELS: Final = (
    "pod", "pod_name", "k8s_pod_name", "kubernetes_pod_name", "exported_pod",
)  # fmt: skip
NAMESPACE_LABELS: Final = (
    "namespace",
    "k8s_namespace_name",
    "kubernetes_namespace",
    "exported_namespace",
)

# What Kubernetes makes of a workload's name: a ReplicaSet's hash and a pod's suffix use these letters
# (k8s.io/apimachinery/pkg/util/rand SafeEncodeString), a StatefulSet's pods have a number.
_SAFE: Final = "[bcdfghjklmnpqrstvwxz2456789]"
POD_TAIL: Final = f"(?:-{_SAFE}{{6,10}})?-(?:{_SAFE}{{5}}|[0-9]{{1,3}})"
# Usual labels that hold the name of a machine or of anything at all as often as a service's.
NO_WORKLOAD: Final = frozenset({"cluster", "name", "node", "instance", "resource_name"})


def workload_of(pod: str) -> str:
    """The Deployment, StatefulSet or DaemonSet that made a pod; the name itself when none did."""
    found = re.fullmatch(f"(.+?){POD_TAIL}", pod)
    return found[1] if found else pod


def product_in(
    labels: Mapping[str, str], products: Sequence[str] = (), preferred: Sequence[str] = ()
) -> str:
    """The product that labels speak of, empty when none does.

    One of `products` (the configured ones) counts before anything else, by the first label that
    holds it; where none does, what the first usual label says. `app.kubernetes.io/name` is
    `app_kubernetes_io_name`.
    """
    plain = {_plain(name): value for name, value in labels.items() if value}
    first = [*map(_plain, preferred), "product"]
    order = [*first, *WORKLOAD_LABELS, *POD_LABELS, *sorted(plain)]
    there = [name for name in dict.fromkeys(order) if name in plain]
    namespace = next((plain[name] for name in NAMESPACE_LABELS if name in plain), "")
    for name in there:
        value = workload_of(plain[name]) if name in POD_LABELS else plain[name]
        known = {value, value.rpartition("/")[2], f"{namespace}/{value}"}
        found = next((product for product in products if product in known), "")
        if found:
            return found
    usual = [one for one in (*first, *WORKLOAD_LABELS) if one not in NO_WORKLOAD]
    named = next((plain[name] for name in usual if name in plain), "")
    return named or next((workload_of(plain[name]) for name in POD_LABELS if name in plain), "")


def _plain(label: str) -> str:
    return re.sub(r"\W", "_", label)
