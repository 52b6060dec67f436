"""Logging of a process that was not set up, and the way back to it from one that was.

structlog's own default looks up source files to print a traceback, which would block the loop.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog


def log_plainly() -> None:
    """One JSON line per record on standard output."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        logger_factory=structlog.PrintLoggerFactory(),
        cache_logger_on_first_use=False,
    )


def logging_as_it_is() -> Callable[[], None]:
    """Returns what brings it back."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level

    def put_back() -> None:
        if root.handlers != handlers:
            root.handlers[:] = handlers
            root.setLevel(level)
            log_plainly()

    return put_back


@contextmanager
def logging_put_back() -> Iterator[None]:
    put_back = logging_as_it_is()
    logging.getLogger().handlers.clear()
    try:
        yield
    finally:
        put_back()
