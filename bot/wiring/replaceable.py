"""Values that a reload replaces while others hold them: read through, never copied."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar, overload

T = TypeVar("T")


class ReplaceableSequence(Sequence[T], Generic[T]):
    """A sequence whose items are all replaced at once."""

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = tuple(items)

    def replace(self, items: Iterable[T]) -> None:
        """From here on, these."""
        self._items = tuple(items)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        return self._items[index]

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)  # of one moment, even when it is replaced in the middle


class ReplaceableMapping(Mapping[str, T], Generic[T]):
    """A mapping whose entries are all replaced at once."""

    def __init__(self, entries: Mapping[str, T]) -> None:
        self._entries = dict(entries)

    def replace(self, entries: Mapping[str, T]) -> None:
        """From here on, these."""
        self._entries = dict(entries)

    def __getitem__(self, key: str) -> T:
        return self._entries[key]

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)
