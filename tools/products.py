"""A channel's products as a bound on what tools read. Each tool declares how far it can be told.

The bound is on what a call names, not on what an answer holds: a log line of one product may speak
of another.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from pydantic import BaseModel

from tools.named_products import ANY_PRODUCT, PRODUCT_KEYS, named_products, plain_key


class Reading(StrEnum):
    """What the tools of a channel with products may read."""

    ALL = "all"  # everything; proposals are bounded all the same
    PRODUCTS = "products"  # nothing that a call names as another product's
    STRICT = "strict"  # nor with tools of which it cannot be told


@dataclass(frozen=True, slots=True)
class ProductScope:
    """Whose data a call is about.

    `arguments` are the top-level ones that hold a product's name or a list of them; `narrows` says
    that the tool itself keeps to the context's products where they are left out. Without any,
    `is_free` says that the tool reads no product's data; otherwise the scope is unknown.
    `checks_every_value` is for foreign tools: a product may be named at any depth of the arguments.
    """

    arguments: tuple[str, ...] = ()
    narrows: bool = False
    is_free: bool = False
    checks_every_value: bool = False

    @property
    def can_be_told(self) -> bool:
        """Whether a call's arguments, or the tool, say whose data it is about."""
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
    def reading(self) -> Reading:
        """Whether they bound what is read."""
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


def refusal(scope: ProductScope, arguments: BaseModel, bound: Bounded) -> str | None:
    """Why that call is outside the bound, in words a model can act on; None when it is inside."""
    if bound.reading is Reading.ALL or scope.is_free:
        return None
    own = f"this channel's products ({', '.join(bound.products) or 'none'})"
    if not is_offered(scope, bound):
        return f"it cannot be told whether this tool would read only {own}; use another one"
    left_out = []
    for name in scope.arguments:
        named = [each for each in _names(getattr(arguments, name, None)) if each != ANY_PRODUCT]
        outside = [each for each in named if each not in bound.products]
        if outside:
            return f"{name}: outside {own}, so it may not be read from here"
        left_out += [] if named else [name]
    if scope.checks_every_value:
        named = list(named_products(arguments.model_dump()))
        if any(each not in bound.products for each in named):
            return f"the arguments name a product outside {own}, so it may not be read from here"
    if scope.arguments and left_out == list(scope.arguments) and not scope.narrows:
        return f"{left_out[0]}: name one of {own}"
    return None


def within(bound: Bounded, product: str) -> bool:
    """Whether an entry of that product may be in a result that was not asked for by product."""
    return bound.reading is Reading.ALL or product in bound.products


def _names(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return [value] if value else []
    if isinstance(value, list | tuple | set | frozenset):
        return [str(each) for each in value]
    return [] if value is None else [str(value)]
