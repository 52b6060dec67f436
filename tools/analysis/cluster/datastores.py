"""Which products are databases, caches or queues, by the images of their containers."""

import re
from typing import Final

from tools.analysis.cluster.fields import rows_at, text_at
from tools.analysis.cluster.inventory import Inventory

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


def datastores(cluster: Inventory) -> dict[str, str]:
    """The technology of each product that stores or queues data. An exporter beside it is none."""
    found: dict[str, str] = {}
    for kind in ("StatefulSet", "Deployment"):
        for one in cluster.of(kind):
            for row in rows_at(one, "spec", "template", "spec", "containers"):
                image = text_at(row, "image").split("@")[0].rpartition("/")[2]
                technology = "" if "exporter" in image else technology_of(image)
                product = cluster.product_of(one)
                if product and technology:
                    found.setdefault(product, technology)
    return found
