"""How fast this machine is, so that a bound on CPU holds on any: those that run the suite differ threefold."""

import gc
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PIECE_STEPS = 40_000
TIMED = 9  # a core's clock changes, and so does who shares it: the best of few is of no use


@dataclass
class Spent:
    """What a body took; known at its end."""

    cpu_s: float = 0.0

    @property
    def pieces(self) -> float:
        """In pieces of fixed work, timed here and now (one took 7 to 55 ms)."""
        return self.cpu_s / statistics.median(_piece_s() for _ in range(TIMED))


@contextmanager
def spending() -> Iterator[Spent]:
    spent, begun = Spent(), time.process_time()
    gc.disable()
    try:
        yield spent
        spent.cpu_s = time.process_time() - begun
    finally:
        gc.enable()


def _piece_s() -> float:
    begun = time.process_time()
    counts: dict[int, int] = {}
    for step in range(PIECE_STEPS):
        counts[step % 997] = counts.get(step % 997, 0) + len(str(step))
    return time.process_time() - begun
