"""The stream selector of a product: a template of the operator's, a name that a model chose.

Whatever the name contains, it stays inside its string: it cannot widen the selector.
"""

import re
from typing import Final

from adapters.observe.line_filter import quoted
from tools.errors import InvalidArguments

_PLACE: Final = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*(=~|=)\s*"([^"\\]*)\$product([^"\\]*)"')
_MAX_CHARS: Final = 128


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

    def of(self, product: str) -> str:
        """The selector of one product. Raises InvalidArguments for a name that is no name."""
        _check(product)
        value = quoted(self._value(product))
        matcher = f"{self.label}{self._operator}{value}"
        return _PLACE.sub(lambda _place: matcher, self._template)

    def matches(self, product: str, value: str) -> bool:
        """Whether a label's value belongs to the product."""
        if self._operator == "=":
            return value == self._value(product)
        return re.fullmatch(self._value(product), value) is not None

    def _value(self, product: str) -> str:
        escaped = re.escape(product) if self._operator == "=~" else product
        return f"{self._before}{escaped}{self._after}"


def _check(product: str) -> None:
    if not any(char.isalnum() for char in product):
        raise InvalidArguments(f"name one product; {product!r} would search everything")
    if len(product) > _MAX_CHARS or not product.isprintable():
        raise InvalidArguments("a product's name is at most 128 printable characters")
