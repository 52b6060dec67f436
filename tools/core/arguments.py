"""Argument types the built-in tools share: a product, a time range, a name that goes into a query."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_PRODUCT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
ANY_PRODUCT = "*"


def _product(text: str) -> str:
    """A product ends up inside query languages: letters, digits and . _ / - only."""
    if _PRODUCT.fullmatch(text) is None:
        raise ValueError("a product is letters, digits, '.', '_', '/' or '-', at most 128")
    return text


def _product_or_any(text: str) -> str:
    return text if text == ANY_PRODUCT else _product(text)


Product = Annotated[
    str, AfterValidator(_product), Field(description="Product name, e.g. 'checkout'")
]
ProductOrAny = Annotated[
    str, AfterValidator(_product_or_any), Field(description="Product name; '*' for all")
]
TimeRangeText = Annotated[
    str,
    Field(description="'last 30m', 'now-2h..now-1h' or ISO 8601 '2026-04-07T14:00:00Z/PT30M'"),
]
