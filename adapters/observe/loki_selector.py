"""The stream selector of a product: the operator's template, or the discovered label.

Any product name stays inside its string: it cannot widen the selector.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from adapters.observe.line_filter import quoted
from tools.errors import InvalidArguments
from tools.product_names import POD_TAIL, workload_of

_PLACE: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*(=~|=)\s*"([^"\\]*)\$product([^"\\]*)"')
_MAX_CHARS: Final = 128


class Selecting(Protocol):
    """How products are selected in one way: all of them have their name in `label`."""

    @property
    def label(self) -> str: ...

    def of(self, products: Sequence[str]) -> str:
        """One selector of all of them. Raises InvalidArguments for a name that is no name."""
        ...

    def matches(self, product: str, value: str) -> bool: ...


class Selector:
    """A template such as `{service_name="$product"}` or `{namespace="shop", app=~"$product-.*"}`."""

    def __init__(self, template: str) -> None:
        places = _PLACE.findall(template)
        shaped = template.startswith("{") and template.endswith("}")
        if not shaped or len(places) != 1 or template.count("$product") != 1:
            raise ValueError(
                f'selector {template!r}: write one matcher label="$product" within {{ }}'
            )
        self._template = template
        self.label, self._operator, self._before, self._after = places[0]

    def of(self, products: Sequence[str]) -> str:
        """One selector of all of them. Raises InvalidArguments for a name that is no name."""
        for product in products:
            check_product(product)
        if len(products) == 1:
            matcher = f"{self.label}{self._operator}{quoted(self._value(products[0]))}"
        else:
            values = "|".join(self._pattern(product) for product in sorted(products))
            matcher = f"{self.label}=~{quoted(values)}"
        return _PLACE.sub(lambda _place: matcher, self._template)

    def matches(self, product: str, value: str) -> bool:
        return re.fullmatch(self._pattern(product), value) is not None

    def _pattern(self, product: str) -> str:
        value = self._value(product)
        return value if self._operator == "=~" else re.escape(value)

    def _value(self, product: str) -> str:
        escaped = re.escape(product) if self._operator == "=~" else product
        return f"{self._before}{escaped}{self._after}"


@dataclass(frozen=True, slots=True)
class FoundLabel:
    """A label that was found to hold products. `values` are its values by product."""

    label: str
    pods: bool
    values: Mapping[str, frozenset[str]]

    def of(self, products: Sequence[str]) -> str:
        """One selector of all of them. Raises InvalidArguments for a name that is no name."""
        for product in products:
            check_product(product)
        found = {value for product in products for value in self.values.get(product, ())}
        if len(found) == 1 and not self.pods:
            return f"{{{self.label}={quoted(found.pop())}}}"
        tail = POD_TAIL if self.pods else ""
        either = "|".join(re.escape(value) for value in sorted(found))
        return f"{{{self.label}=~{quoted(f'(?:{either}){tail}')}}}"

    def matches(self, product: str, value: str) -> bool:
        return (workload_of(value) if self.pods else value) in self.values.get(product, ())


def check_product(product: str) -> None:
    """Raises InvalidArguments for a name that is empty or would match everything."""
    if not any(char.isalnum() for char in product):
        raise InvalidArguments(f"name one product; {product!r} would search everything")
    if len(product) > _MAX_CHARS or not product.isprintable():
        raise InvalidArguments("a product's name is at most 128 printable characters")
