"""How fast this machine is, so that a bound on CPU holds on any: those that run the suite differ threefold."""

import time

PIECE_STEPS = 40_000


def pieces(cpu_s: float) -> float:
    """What `cpu_s` is in pieces of fixed work, timed here and now (one took 8 to 55 ms).

    Leave a bound twice the most seen: a neighbour on the same core slows the one and not the other.
    """
    return cpu_s / min(_piece_s() for _ in range(3))


def _piece_s() -> float:
    begun = time.process_time()
    counts: dict[int, int] = {}
    for step in range(PIECE_STEPS):
        counts[step % 997] = counts.get(step % 997, 0) + len(str(step))
    return time.process_time() - begun
