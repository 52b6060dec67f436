"""Named random streams: the same names give the same numbers, in any order of asking."""

from random import Random


def stream(*names: object) -> Random:
    """A generator of its own for these names; asking for one never disturbs another."""
    return Random(":".join(map(str, names)))  # noqa: S311 - simulation, not cryptography
