"""How long messages take to and from a provider's wire, for whoever measures a round."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from time import perf_counter


@dataclass(slots=True)
class Translation:
    """Seconds of this process's own work; waiting for the network is not in it."""

    request_s: float = 0.0
    answer_s: float = 0.0


_measured: ContextVar[Translation | None] = ContextVar("translation", default=None)


@contextmanager
def measured() -> Iterator[Translation]:
    """Sums up what is encoded and decoded within, in tasks started there too."""
    sum_of = Translation()
    before = _measured.set(sum_of)
    try:
        yield sum_of
    finally:
        _measured.reset(before)


@contextmanager
def encoding() -> Iterator[None]:
    """A request becomes bytes within."""
    began = perf_counter()
    yield
    if (sum_of := _measured.get()) is not None:
        sum_of.request_s += perf_counter() - began


@contextmanager
def decoding() -> Iterator[None]:
    """Bytes become chunks within."""
    began = perf_counter()
    yield
    if (sum_of := _measured.get()) is not None:
        sum_of.answer_s += perf_counter() - began
