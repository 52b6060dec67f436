"""Signals as PromQL."""

from dataclasses import replace

import pytest

from adapters.observe.product_places import LabelAsked, Sighting, places_by_metric, value_pattern
from adapters.observe.signal_promql import (
    chunks,
    expression,
    groups_of,
    joined,
    spacing_of,
    terms_of,
    window_of,
)
from tools.signals import Place, Signal

ASKED = [LabelAsked("service", pods=False), LabelAsked("pod", pods=True)]


def gauge(name: str, *products: str) -> Signal:
    places = {product: [Place("service", product)] for product in products}
    return Signal(name, "other", "gauge", name, places=places)


@pytest.mark.parametrize("name", ['x"} or {a="b', "a\\", "a\nb", "a.*", "(", "a|b"])
def test_product_stays_inside_its_matcher(name: str) -> None:
    (group,) = groups_of(gauge("m", name).places)
    inner = group.matchers().removeprefix('service=~"').removesuffix('"')
    assert not inner.replace("\\\\", "").replace('\\"', "").count('"')
    assert "\n" not in inner


def test_gauges_share_one_term() -> None:
    terms = terms_of([gauge("a", "x", "y"), gauge("b", "x")], None, 60.0)
    assert [set(term.signals) for term in terms] == [{"a"}, {"b"}]
    together = terms_of([gauge("a", "x", "y"), gauge("b", "x", "y")], None, 60.0)
    assert [set(term.signals) for term in together] == [{"a", "b"}]


def test_terms_of_a_query_are_distinguished() -> None:
    query = joined(terms_of([gauge("a", "x"), gauge("b", "y")], None, 60.0))
    assert '"kortex_term", "0"' in query
    assert '"kortex_term", "1"' in query


def test_requests_stay_small() -> None:
    terms = terms_of([gauge(name, f"of-{name}") for name in "abcdef"], None, 60.0)
    assert [len(part) for part in chunks(terms, 100, 250)] == [2, 2, 2]


@pytest.mark.parametrize(
    ("step_s", "spacing_s", "window"),
    [(15.0, 15.0, "60s"), (60.0, 60.0, "240s"), (300.0, 60.0, "360s"), (60.0, None, "240s")],
)
def test_window_holds_four_scrapes_and_skips_none(
    step_s: float, spacing_s: float | None, window: str
) -> None:
    assert window_of(step_s, spacing_s) == window


@pytest.mark.parametrize(
    ("samples", "spacing_s"), [(21, 60), (20, 60), (41, 30), (39, 30), (5, 300), (4, 300), (80, 15), (120, 10)]
)  # fmt: skip
def test_spacing_is_the_nearest_common_setting(samples: int, spacing_s: float) -> None:
    assert spacing_of(1200.0, samples) == spacing_s


def test_failure_that_never_occurred_is_zero() -> None:
    (group,) = groups_of(gauge("m", "x").places)
    signal = Signal("e", "errors", "rate_ratio", "m", where='code=~"5.."', over="m")
    assert "* 0" in expression(signal, group, 60.0)


@pytest.mark.parametrize(
    ("pod", "product"),
    [
        ("ts-order-service-5f55b6cf68-qmx8k", "ts-order-service"),
        ("ts-order-other-service-5f55b6cf68-qmx8k", "ts-order-other-service"),
        ("postgres-0", "postgres"),
        ("agent-x7k2z", "agent"),
    ],
)
def test_pod_belongs_to_the_workload_that_made_it(pod: str, product: str) -> None:
    products = ("ts-order-service", "ts-order-other-service", "postgres", "agent", "ts-order")
    found = places_by_metric([Sighting("m", "pod", pod)], products, ASKED, "")
    assert list(found["m"]) == [product]


def test_label_of_the_telemetry_counts_more_than_the_pod() -> None:
    seen = [Sighting("m", "pod", "checkout-0"), Sighting("m", "service", "checkout")]
    found = places_by_metric(seen, ["checkout"], ASKED, "")
    assert found["m"]["checkout"] == [Place("service", "checkout")]


def test_other_end_of_a_call_is_not_the_product_measured() -> None:
    asked = [LabelAsked("app", pods=False), LabelAsked("destination_service_name", pods=False)]
    seen = [
        Sighting("istio_requests_total", "app", "checkout"),
        Sighting("istio_requests_total", "destination_service_name", "payments"),
    ]
    found = places_by_metric(seen, ["checkout", "payments"], asked, "")
    assert list(found["istio_requests_total"]) == ["payments"]


def test_workload_of_a_namespace_is_not_that_of_another() -> None:
    asked = [LabelAsked("deployment", pods=False)]
    seen = [Sighting("m", "deployment", "web", "shop"), Sighting("m", "deployment", "web", "blog")]
    found = places_by_metric(seen, ["shop/web"], asked, "namespace")
    assert found["m"]["shop/web"] == [Place("deployment", "web", False, "shop", "namespace")]


def test_value_may_have_a_namespace_prefix() -> None:
    assert value_pattern(["checkout"], pods=False) == "(?:[^/]+/)?(?:checkout)"


NAMES = [f"vm_request_{'long_' * 10}metric_of_number_{number}" for number in range(400)]
PRODUCTS = [f"team-{number}/a-service-with-a-name-of-{'some-' * 5}length" for number in range(300)]


@pytest.mark.parametrize(
    "signals",
    [
        [gauge(name, "checkout") for name in NAMES],
        [gauge("cpu", *PRODUCTS)],
        [gauge(name, *PRODUCTS[:60]) for name in NAMES[:60]],
        [replace(gauge(name, *PRODUCTS), reading="quantile") for name in NAMES[:5]],
        [
            replace(gauge(name, *PRODUCTS), reading="ratio", over=f"{name}_max")
            for name in NAMES[:5]
        ],
        [gauge(name, f"{name}-é{'ü' * 40}") for name in NAMES],
    ],
)
def test_no_query_is_longer_than_servers_take(signals: list[Signal]) -> None:
    terms = terms_of(signals, None, 60.0)

    queries = [joined(part) for part in chunks(terms, 1, 10**9)]

    assert max(len(query.encode()) for query in queries) <= 16_384
    asked = {(one.name, product) for one in signals for product in one.places}
    told = {
        (signal.name, product)
        for term in terms
        for signal in term.signals.values()
        for product in term.group.values.values()
    }
    assert told == asked
