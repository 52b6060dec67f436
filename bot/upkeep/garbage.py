"""The garbage collector, whose full collections make every answer stand still at once."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_USUAL = gc.get_threshold()
# Of objects made before the youngest are looked at; Python's own is 700. What a start imports is
# 180,000 of them, and not one in forty of those is ever garbage.
_STARTING = (100_000, 10, 10)


@contextmanager
def seldom() -> Iterator[None]:
    """Collect little until a bot serves, or the command ends: it was a quarter of a start."""
    before = gc.get_threshold()
    gc.set_threshold(*_STARTING)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def spare_what_stays() -> None:
    """Take all there is now out of later collections: after the start it stays until the end.

    A full collection looks at every object, 200,000 of them in a bot that has just started. None is
    made for it: of those not three thousand are garbage. For processes that run one bot: what is
    spared is never freed.
    """
    gc.freeze()
    gc.set_threshold(*_USUAL)
