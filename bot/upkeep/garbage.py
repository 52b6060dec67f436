"""The garbage collector, whose full collections make every answer stand still at once."""

import gc


def spare_what_stays() -> None:
    """Take all there is now out of later collections: after the start it stays until the end.

    A full collection looks at every object, 200,000 of them in a bot that has just started. Takes
    as long as one of them, and is for processes that run one bot: what is spared is never freed.
    """
    gc.collect()
    gc.freeze()
