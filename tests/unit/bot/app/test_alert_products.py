"""The product of an alert: one, for any spelling of its name."""

import pytest

from bot.app.http_server import alert_products
from bot.settings.model import Settings

SETTINGS = Settings.model_validate(
    {
        "channels": [
            {"match": "*", "products": ["checkout", "*"]},
            {"match": "a", "products": ["Cart"]},
        ]
    }
)


@pytest.mark.parametrize(
    ("labels", "product"),
    [
        ({"service": "checkout"}, "checkout"),
        ({"service": "Checkout"}, "checkout"),
        ({"service": " CHECKOUT\n"}, "checkout"),
        ({"service": "cart"}, "Cart"),
        ({"service": "Search"}, "Search"),
        ({}, ""),
    ],
)
def test_a_name_in_another_case_is_the_configured_product(
    labels: dict[str, str], product: str
) -> None:
    assert alert_products(SETTINGS)(labels) == product
