"""The garbage collector, whose full collections make every answer stand still at once."""

import atexit
import gc
import sys
import typing

_USUAL = gc.get_threshold()
# Of objects made before the youngest are looked at; Python's own is 700. What a start imports is
# 180,000 of them, a question of the demo makes as many again, and not one in forty is ever garbage:
# each look takes some 30 ms.
_STARTING = (500_000, 10, 10)


def collect_seldom() -> None:
    """For the process of one command: little until a bot serves, and nothing when it ends.

    It was a quarter of a start. At the end Python would look at all there is twice more, a tenth of a
    second, to free what the system takes back at once; what has to be closed is closed by then.
    """
    gc.set_threshold(*_STARTING)
    atexit.register(gc.freeze)


def spare_what_stays() -> None:
    """Take all there is now out of later collections: after the start it stays until the end.

    A full collection looks at every object, 200,000 of them in a bot that has just started. For it the
    youngest alone are looked at, 18 ms for half a MB: classes of which others with slots were made. For
    processes that run one bot: what is spared is never freed.
    """
    typing.clear_overloads()  # which nobody asks for
    sys.path_importer_cache.clear()  # what is in which folder: looked up again by the next import
    gc.collect(0)
    gc.freeze()
    gc.set_threshold(*_USUAL)
