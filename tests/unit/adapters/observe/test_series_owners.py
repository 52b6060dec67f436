"""A generic label gives a product no series that its usual label gives to another product."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.observe.product_places import ProductLabels, Sighting, labels_to_ask
from adapters.observe.series_owners import Doubt, Owners

LABELS = ("job", "service", "type", "name", "dialer_name", "node", "pod")
OWN = Sighting("http_requests_total", "job", "checkout")
BY_TYPE = Sighting("rows_total", "type", "checkout")


def owners(
    *seen: Sighting, products: Sequence[str] = ("checkout",), preferred: Sequence[str] = ()
) -> Owners:
    return Owners(seen, products, labels_to_ask(LABELS, ProductLabels(preferred)))


def belongs_to_another(seen: Sighting, *series: Mapping[str, str]) -> bool:
    told = [(seen, labels) for labels in series]
    return bool(owners(OWN, seen).owned_by_another(told))


@pytest.mark.parametrize(
    ("labels", "is_anothers"),
    [
        ({"job": "db"}, True),
        ({"job": "shop/db"}, True),
        ({"job": "checkout"}, False),
        ({"job": "shop/checkout"}, False),
        ({"job": ""}, False),
        ({}, False),
        ({"job": "db-exporter"}, False),
        ({"job": "kubernetes-pods"}, False),
        ({"service": "db"}, False),  # by `service` the product was never found
    ],
)
def test_the_products_own_label_decides_a_series_owner(
    labels: Mapping[str, str], is_anothers: bool
) -> None:
    assert belongs_to_another(BY_TYPE, labels) is is_anothers


def test_a_series_without_an_owner_stays_the_products() -> None:
    assert not belongs_to_another(BY_TYPE, {"job": "db"}, {})
    assert belongs_to_another(BY_TYPE, {"job": "db"}, {"job": "cache"})


@pytest.mark.parametrize(
    ("metric", "is_anothers"), [("breaker_calls_total", True), ("container_cpu_usage", False)]
)
def test_a_name_label_is_a_container_only_in_cadvisor_metrics(
    metric: str, is_anothers: bool
) -> None:
    assert (
        belongs_to_another(Sighting(metric, "name", "checkout"), {"job": "docker"}) is is_anothers
    )


@pytest.mark.parametrize(
    "seen",
    [
        [BY_TYPE],  # nothing else says anything of the product
        [OWN],
        [OWN, Sighting("rows_total", "job", "checkout"), BY_TYPE],  # found by the job already
        [OWN, Sighting("rows_total", "pod", "checkout-0"), BY_TYPE],
        [OWN, Sighting("load", "node", "checkout")],
        [Sighting("http_requests_total", "node", "checkout"), BY_TYPE],  # a node is no service
        [Sighting("istio_requests_total", "service", "checkout"), BY_TYPE],  # the other end's
    ],
)
def test_nothing_is_queried_without_a_doubt(seen: Sequence[Sighting]) -> None:
    assert owners(*seen).doubts() == []


def test_only_shown_series_are_queried() -> None:
    seen = (OWN, BY_TYPE, Sighting("m", "dialer_name", "web"), Sighting("m2", "service", "web"))

    found = owners(*seen, products=("checkout", "web"))

    assert found.doubts() == [Doubt("dialer_name", ["service"]), Doubt("type", ["job"])]


def test_a_preferred_label_of_operators_is_trusted() -> None:
    assert owners(OWN, BY_TYPE, preferred=["type"]).doubts() == []


def test_a_product_of_a_namespace_is_not_that_of_another() -> None:
    own = Sighting("http_requests_total", "job", "web", "shop")
    seen = Sighting("rows_total", "type", "web", "shop")
    found = owners(own, seen, products=("shop/web",))

    assert found.owned_by_another([(seen, {"job": "web"})]) == set()
    assert found.owned_by_another([(seen, {"job": "db"})]) == {seen}


@given(st.lists(st.dictionaries(st.sampled_from(LABELS), st.text(max_size=9), max_size=4)))
def test_a_series_found_by_a_usual_label_is_never_removed(series: list[dict[str, str]]) -> None:
    told = [(OWN, labels) for labels in series]
    assert owners(OWN, BY_TYPE).owned_by_another(told) == set()
