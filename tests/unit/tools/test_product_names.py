"""One list of labels names a product, for any source."""

import pytest

from tools.product_names import product_in, workload_of

PRODUCTS = ("checkout", "payments", "shop/web")


@pytest.mark.parametrize(
    ("labels", "product"),
    [
        ({"service": "checkout", "severity": "page"}, "checkout"),
        ({"service_name": "payments", "job": "otel"}, "payments"),
        ({"job": "shop/checkout"}, "checkout"),
        ({"job": "kube-state-metrics", "deployment": "payments"}, "payments"),
        ({"job": "kube-state-metrics", "pod": "payments-7d9f8b6c5d-bbbbb"}, "payments"),
        ({"namespace": "shop", "deployment": "web"}, "shop/web"),
        ({"namespace": "blog", "deployment": "web"}, "web"),
        ({"app.kubernetes.io/name": "checkout"}, "checkout"),
        ({"team_part": "checkout"}, "checkout"),
        ({"service": "unheard-of"}, "unheard-of"),
        ({"pod": "cart-0"}, "cart"),
        ({"instance": "10.0.0.1:9100", "alertname": "HostDown"}, ""),
        ({"service": ""}, ""),
        ({}, ""),
    ],
)
def test_configured_product_counts_before_the_order_of_labels(
    labels: dict[str, str], product: str
) -> None:
    assert product_in(labels, PRODUCTS) == product


def test_preferred_label_is_asked_first() -> None:
    labels = {"service": "a", "team_service": "b"}
    assert product_in(labels, (), ("team_service",)) == "b"


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("checkout-7d9f8b6c5d-x7k2z", "checkout"),
        ("ts-order-other-service-5f55b6cf68-qmx8k", "ts-order-other-service"),
        ("postgres-0", "postgres"),
        ("agent-x7k2z", "agent"),
        ("checkout", "checkout"),
    ],
)
def test_workload_of_a_pod(pod: str, workload: str) -> None:
    assert workload_of(pod) == workload
