"""What makes a simulated shop lively: its daily rhythm, and named random streams.

The same names give the same numbers, in any order of asking.
"""

import math
from random import Random

_DAY_S = 86_400.0
_BUSIEST_S = 19.0 * 3600  # 19:00 UTC


def load(at_s: float) -> float:
    """Load as a share of the busiest hour, 0.35 at night to 1.0. `at_s` since the epoch."""
    phase = math.cos((at_s - _BUSIEST_S) / _DAY_S * 2.0 * math.pi)
    return 0.675 + 0.325 * phase


def stream(*names: object) -> Random:
    """A generator of its own for these names; asking for one never disturbs another."""
    return Random(":".join(map(str, names)))  # noqa: S311 - simulation, not cryptography


def below(random: Random, end: int) -> int:
    """What `random.randrange(end)` gives, for a positive end, at a third of its cost."""
    bits = end.bit_length()
    drawn = random.getrandbits(bits)
    while drawn >= end:
        drawn = random.getrandbits(bits)
    return drawn
