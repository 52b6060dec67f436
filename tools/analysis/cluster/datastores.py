"""Which products are databases, caches or queues, by the images of their containers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from tools.analysis.cluster.fields import instant_at, name_of, namespace_of, rows_at, text_at
from tools.analysis.cluster.inventory import Inventory
from tools.cluster_objects import KubernetesObject

_NEW: Final = timedelta(hours=1)
TECHNOLOGIES: Final = {
    "mysql": r"mysql|mariadb|percona",
    "postgres": r"postgres|postgis|timescale|patroni|spilo|citus",
    "redis": r"redis|valkey|keydb|dragonfly",
    "mongo": r"mongo",
    "kafka": r"kafka|redpanda",
    "rabbitmq": r"rabbitmq",
    "elasticsearch": r"elasticsearch|opensearch",
    "cassandra": r"cassandra|scylla",
    "etcd": r"etcd",
    "memcached": r"memcached",
    "nats": r"\bnats\b",
    "clickhouse": r"clickhouse",
}


def technology_of(text: str) -> str:
    """The technology that an image, a name or an error speaks of; empty when none is known."""
    lowered = text.lower()
    return next((name for name, how in TECHNOLOGIES.items() if re.search(how, lowered)), "")


@dataclass(frozen=True, slots=True)
class Datastore:
    """A product that stores or queues data. `is_new`: its newest pod was created within the hour."""

    product: str
    technology: str
    is_new: bool


def datastores(cluster: Inventory) -> Sequence[Datastore]:
    """Found by the images of products' workloads.

    An exporter beside an application does not count.
    """
    found: dict[str, Datastore] = {}
    for kind in ("StatefulSet", "Deployment"):
        for one in cluster.of(kind):
            product, technology = cluster.product_of(one), _technology(one)
            if product and technology and product not in found:
                pods = cluster.pods_of(namespace_of(one), (kind, name_of(one)))
                created = [instant_at(pod, "metadata", "creationTimestamp") for pod in pods]
                is_new = any(at and not cluster.is_older_than(at, _NEW) for at in created)
                found[product] = Datastore(product, technology, is_new)
    return list(found.values())


def _technology(workload: KubernetesObject) -> str:
    for row in rows_at(workload, "spec", "template", "spec", "containers"):
        image = text_at(row, "image").split("@")[0].rpartition("/")[2]
        if "exporter" not in image and (technology := technology_of(image)):
            return technology
    return ""
