"""The longest query, and how to split requests into several."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

# VictoriaMetrics refuses a query of more than 16384 bytes (its flag -search.maxQueryLen, by default);
# the rest is room for what a proxy may add, as vmauth and prom-label-proxy do.
# https://docs.victoriametrics.com/victoriametrics/#list-of-command-line-flags
MOST_BYTES: Final = 15_000
# Of names in one matcher: a ratio holds its matcher three times, and the rest of it.
MOST_NAME_BYTES: Final = 4_000
OR_BYTES: Final = len("( or )")  # what joining costs each part

PartT = TypeVar("PartT")


def bytes_of(text: str) -> int:
    return len(text.encode())


def runs(
    parts: Iterable[PartT], size_of: Callable[[PartT], int], most: int
) -> Iterator[list[PartT]]:
    """Neighbours together, so that the sizes of a run add up to `most` at most; one part at least."""
    run: list[PartT] = []
    filled = 0
    for part in parts:
        size = size_of(part)
        if run and filled + size > most:
            yield run
            run, filled = [], 0
        run.append(part)
        filled += size
    if run:
        yield run
