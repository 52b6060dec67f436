"""How fast this machine is, so that a bound on CPU holds on any: those that run the suite differ threefold."""

import statistics
import time

PIECE_STEPS = 40_000
TIMED = 9  # a core's clock changes, and so does who shares it: the best of few is of no use


def pieces(cpu_s: float) -> float:
    """What `cpu_s` is in pieces of fixed work, timed here and now (one took 8 to 55 ms)."""
    return cpu_s / statistics.median(_piece_s() for _ in range(TIMED))


def _piece_s() -> float:
    begun = time.process_time()
    counts: dict[int, int] = {}
    for step in range(PIECE_STEPS):
        counts[step % 997] = counts.get(step % 997, 0) + len(str(step))
    return time.process_time() - begun
