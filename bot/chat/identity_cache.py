"""A cache of computed values by the identity of their input."""

from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST = 64


class IdentityCache(Generic[K, V]):
    """For immutable inputs, compared by `is` and not by value."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[K], V]) -> None:
        self._make = make
        # Each is kept with its result, so that no other value gets its identity.
        self._made: dict[int, tuple[K, V]] = {}

    def __call__(self, value: K) -> V:
        kept = self._made.get(id(value))
        if kept is None:
            if len(self._made) >= MOST:
                self._made.clear()
            kept = self._made[id(value)] = value, self._make(value)
        return kept[1]
