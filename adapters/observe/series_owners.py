"""The owner of a series with a product's name in a generic label (`type`, `name`).

`vm_rows{job="victoriametrics", type="prometheus"}` is not a series of Prometheus, because `job`
names Prometheus on other series. That label shows that this series belongs to another product.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.observe.product_places import LabelAsked, Sighting, may_hold, products_of
from tools.product_names import workload_of

# Exporters and agents describe other products, so their own names say nothing. The same holds for
# jobs of Prometheus' own example for Kubernetes, which scrape any product.
# https://github.com/prometheus/prometheus/blob/main/documentation/examples/prometheus-kubernetes.yml
_SPEAKS_FOR_OTHERS: Final = re.compile(
    r".*(exporter|cadvisor|kubelet|kube-?state-?metrics|push-?gateway|collector|agent|telegraf|statsd|"
    r"blackbox|probe).*|kubernetes-.*|integrations/.*",
    re.IGNORECASE,
)
# cAdvisor without Kubernetes: `name` is the container's, for any scraper.
# https://github.com/google/cadvisor/blob/master/docs/storage/prometheus.md
_CONTAINERS: Final = ("container_", "name")


@dataclass(frozen=True, slots=True)
class Doubt:
    """A label whose sightings may be another product's, and the labels that would show it."""

    label: str
    owners: Sequence[str]


class Owners:
    """The labels that products are found by in one look. What they say of a series is asked only in doubt."""

    def __init__(
        self, sightings: Sequence[Sighting], products: Sequence[str], asked: Sequence[LabelAsked]
    ) -> None:
        self._products = products
        self._generic = {one.label for one in asked if one.generic}
        self._pods = {one.label for one in asked if one.pods}
        telling = {one.label for one in asked if one.tells_owner}
        sure: dict[str, set[str]] = defaultdict(set)
        self._labels: dict[str, set[str]] = defaultdict(set)
        for one in filter(may_hold, sightings):
            for product in self._named(one):
                if one.label not in self._generic:
                    sure[one.metric].add(product)
                if one.label in telling:
                    self._labels[product].add(one.label)
        self._doubted = [one for one in sightings if self._is_doubted(one, sure[one.metric])]

    def doubts(self) -> list[Doubt]:
        """What to ask for; nothing where no product is found by a usual label and by another one too."""
        owners: dict[str, set[str]] = defaultdict(set)
        for one in self._doubted:
            owners[one.label].update(*(self._labels[product] for product in self._named(one)))
        return [Doubt(label, sorted(of)) for label, of in sorted(owners.items())]

    def owned_by_another(
        self, series: Iterable[tuple[Sighting, Mapping[str, str]]]
    ) -> set[Sighting]:
        """The sightings all of whose series (with their labels) belong to other products."""
        doubted = set(self._doubted)
        is_anothers: dict[Sighting, bool] = {}
        for one, labels in series:
            if one in doubted:
                is_anothers[one] = is_anothers.get(one, True) and self._is_anothers(one, labels)
        return {one for one, says in is_anothers.items() if says}

    def _is_doubted(self, one: Sighting, sure: set[str]) -> bool:
        if one.label not in self._generic or _is_container(one):
            return False
        return any(self._labels[product] for product in self._named(one) if product not in sure)

    def _is_anothers(self, one: Sighting, labels: Mapping[str, str]) -> bool:
        return all(self._names_another(product, one, labels) for product in self._named(one))

    def _names_another(self, product: str, one: Sighting, labels: Mapping[str, str]) -> bool:
        names = [name for label in self._labels[product] if (name := labels.get(label))]
        return any(
            product not in products_of(name, one.namespace, self._products)
            and not _SPEAKS_FOR_OTHERS.fullmatch(name)
            for name in names
        )

    def _named(self, one: Sighting) -> Sequence[str]:
        name = workload_of(one.value) if one.label in self._pods else one.value
        return products_of(name, one.namespace, self._products)


def _is_container(one: Sighting) -> bool:
    prefix, label = _CONTAINERS
    return one.label == label and one.metric.startswith(prefix)
