"""The label that names the products is found under any name."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.observe.product_label import LabelSeen, chosen_label, labels_to_try
from adapters.observe.product_places import ProductLabels, labels_to_ask

SERVICES = ("basket", "ledger", "store-front")
Seen = tuple[str, Sequence[str], int] | tuple[str, Sequence[str], int, bool]
NOBODY = ProductLabels()


def chosen(*seen: Seen, told: ProductLabels = NOBODY) -> str:
    asked = labels_to_ask([one[0] for one in seen], told)
    found = chosen_label([LabelSeen(*one) for one in seen], asked, told)
    return found.label if found else ""


@pytest.mark.parametrize("label", ["svc", "app_name", "k8s.deployment.name", "srvName", "module"])
def test_label_that_means_a_service_wins_over_instances_and_the_scrape(label: str) -> None:
    instances = [f"{name}-{number}" for name in SERVICES for number in range(12)]
    others: list[Seen] = [("inst", instances, 9), ("job", ["kubernetes-pods"], 40)]

    assert chosen(*others, (label, SERVICES, 9)) == label


def test_label_of_an_unknown_name_wins_when_most_metrics_carry_it() -> None:
    job: Seen = ("job", ["all"], 20)

    assert chosen(job, ("zq", SERVICES, 19)) == "zq"
    assert chosen(job, ("zq", SERVICES, 3)) == "job"


@pytest.mark.parametrize(
    "values",
    [
        ["10", "20", "30"],
        ["10.0.0.1:9100", "10.0.0.2:9100"],
        ["7f6a9c01d2", "aa6a9c01d3", "bb6a9c01d4"],
        ["true", "false"],
        [],
    ],
)
def test_values_that_are_not_names_are_not_products(values: Sequence[str]) -> None:
    assert chosen(("svc", values, 30), ("job", ["shop"], 20)) == "job"


def test_usual_label_of_a_few_metrics_gives_way_to_one_that_most_carry() -> None:
    assert chosen(("queue", ["mails", "bills"], 2), ("svc", SERVICES, 30)) == "svc"
    assert chosen(("service", SERVICES, 20), ("svc", SERVICES, 30)) == "service"


def test_usual_label_of_facts_alone_gives_way_to_the_scrape() -> None:
    facts: Seen = ("service", ["kubernetes", "checkout-slo"], 3, False)

    assert chosen(facts, ("job", SERVICES, 30)) == "job"
    assert chosen(facts, ("job", SERVICES, 1, False)) == "service"
    assert chosen(facts, ("zone", SERVICES, 30), ("zq", ["prod"], 30)) == "service"
    assert (
        chosen(facts, ("job", SERVICES, 30), told=ProductLabels(preferred=("service",)))
        == "service"
    )


def test_operator_setting_comes_first() -> None:
    told = ProductLabels(preferred=("zone_name",))

    assert chosen(("svc", SERVICES, 30), ("zone_name", ["a1"], 1), told=told) == "zone_name"


def test_label_with_one_value_distinguishes_no_products() -> None:
    assert chosen(("zq", ["prod"], 30), ("job", ["shop", "bank"], 20)) == "job"


def test_pods_name_their_workloads_without_another_label() -> None:
    pods = ["basket-7d9f8b6c5d-bbbbb", "ledger-7d9f8b6c5d-ccccc"]

    assert chosen(("pod", pods, 9), ("zone_of", ["a", "b"], 9)) == "pod"


@given(st.lists(st.text(min_size=1, max_size=20), unique=True, max_size=60))
def test_few_labels_are_tried_and_each_exists(labels: list[str]) -> None:
    tried = labels_to_try(labels_to_ask(labels), NOBODY)

    assert len(tried) <= 12
    assert set(tried) <= set(labels)


@given(
    st.lists(
        st.builds(
            LabelSeen,
            st.sampled_from(["svc", "job", "pod", "zq", "le", "queue", "inst"]),
            st.lists(st.text(max_size=12)),
            st.integers(0, 2**64),
            st.booleans(),
        )
    )
)
def test_chosen_label_has_values(seen: list[LabelSeen]) -> None:
    found = chosen_label(seen, labels_to_ask([one.label for one in seen]), NOBODY)

    assert found is None or found.values
