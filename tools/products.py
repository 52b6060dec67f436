"""A channel's products as a limit on reads, and each tool's declaration for it.

The limit applies to what a call names, not to what an answer holds: a log line of one product may
mention another.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from pydantic import BaseModel

from tools.named_products import named_products
from tools.product_keys import PRODUCT_KEYS, plain_key
from tools.product_mentions import mentioned
from tools.product_names import ANY_PRODUCT


class Reading(StrEnum):
    ALL = "all"  # everything; proposals are bounded all the same
    PRODUCTS = "products"  # nothing that a call names as another product's
    STRICT = "strict"  # nor with tools whose products are unknown


@dataclass(frozen=True, slots=True)
class ProductScope:
    """The products that a call reads.

    `arguments` are the top-level ones with a product's name or a list of them; `narrows`: without
    them the tool itself keeps to the context's products. Otherwise `is_free` means that the tool
    reads no product's data, and else the scope is unknown. `checks_every_value` is for foreign
    tools: they may name a product at any depth of the arguments.
    """

    arguments: tuple[str, ...] = ()
    narrows: bool = False
    is_free: bool = False
    checks_every_value: bool = False

    @property
    def can_be_told(self) -> bool:
        """Whether the call's arguments, or the tool, name the products."""
        return self.is_free or self.narrows or bool(self.arguments)


BY_PRODUCT: Final = ProductScope(("product",))
OF_NO_PRODUCT: Final = ProductScope(is_free=True)
# Queries in a language of their own, objects by their own names: what they reach is not in a name.
CANNOT_BE_TOLD: Final = ProductScope()
# The same of a foreign tool with an argument of any shape.
FOREIGN_QUERY: Final = ProductScope(checks_every_value=True)


class Bounded(Protocol):
    """What the bound looks at; a CallContext is one."""

    @property
    def products(self) -> tuple[str, ...]:
        """Those of the channel; `*` is any."""
        ...

    @property
    def reading(self) -> Reading: ...


class BoundedCall(Bounded, Protocol):
    """The same for a call."""

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """The products of other channels, as far as they are configured."""
        ...


def usual_scope(names: Collection[str]) -> ProductScope:
    """The scope of a foreign tool that declares none: the arguments with a product's usual name."""
    found = sorted(name for name in names if plain_key(name) in PRODUCT_KEYS)
    return ProductScope(tuple(found), checks_every_value=True)


def is_offered(scope: ProductScope, bound: Bounded) -> bool:
    """Whether a call of that tool can ever be inside the bound."""
    if bound.reading is Reading.ALL or scope.is_free:
        return True
    if bound.reading is Reading.STRICT and not scope.can_be_told:
        return False
    return bool(bound.products) or not scope.can_be_told


def refusal(scope: ProductScope, arguments: BaseModel, bound: BoundedCall) -> str | None:
    """Why that call is outside the bound, in words a model can act on; None when it is inside."""
    if bound.reading is Reading.ALL or scope.is_free:
        return None
    own = f"this channel's products ({', '.join(bound.products) or 'none'})"
    if not is_offered(scope, bound):
        return f"this tool may read more than {own}; use another one"
    left_out = []
    for name in scope.arguments:
        named = [each for each in _names(getattr(arguments, name, None)) if each != ANY_PRODUCT]
        outside = [each for each in named if each not in bound.products]
        if outside:
            return f"{name}: outside {own}, so it may not be read from here"
        left_out += [] if named else [name]
    if scope.checks_every_value or not scope.can_be_told:
        problem = _problem(scope, arguments.model_dump(), bound)
        if problem:
            return f"the arguments {problem.format(own=own)}"
    if scope.arguments and left_out == list(scope.arguments) and not scope.narrows:
        return f"{left_out[0]}: name one of {own}"
    return None


_PATTERN: Final = re.compile(r"[*%?|^$()\[\]{}\\+]")
_OUTSIDE: Final = "name a product outside {own}, so it may not be read from here"
_UNDECIDED: Final = (
    "hold a pattern, or a packed or unknown form, so they may reach beyond {own}: name one "
    'product in full, such as service="NAME", and send plain text'
)


def _problem(scope: ProductScope, arguments: Mapping[str, object], bound: BoundedCall) -> str:
    named = set(named_products(arguments))
    elsewhere = [product for product in bound.elsewhere if product != ANY_PRODUCT]
    if not scope.checks_every_value:
        return "" if named.isdisjoint(elsewhere) else _OUTSIDE
    outside = named - {*bound.products}
    if any(_PATTERN.search(name) is None for name in outside):
        return _OUTSIDE
    if outside:
        return _UNDECIDED
    return _OUTSIDE if mentioned(arguments, elsewhere, bound.products) else ""


def within(bound: Bounded, product: str) -> bool:
    """Whether an entry of that product may be in a result that was not asked for by product."""
    return bound.reading is Reading.ALL or product in bound.products


def _names(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list | tuple | set | frozenset):
        return [str(each) for each in value]
    return [] if value is None else [str(value)]
