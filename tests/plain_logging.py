"""Logging of a process that was not set up, and the way back to it from one that was.

structlog's own default looks up source files to print a traceback, which would block the loop.
"""

import logging
from collections.abc import Iterator
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


@contextmanager
def logging_put_back() -> Iterator[None]:
    """Whatever is set up inside is gone afterwards."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers.clear()  # so that a new set-up closes none of the test runner's
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        log_plainly()
