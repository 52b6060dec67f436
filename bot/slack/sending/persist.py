"""Trying again, boundedly: for what people must get to see, in spite of 429s and lost connections."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from bot.ports.failures import SurfaceFailed
from bot.slack.api.web_api import RateLimited

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Patience:
    """How often, and how long between two tries: `backoff_s`, doubled each time.

    A 429 is waited out by the scheduler, so it does not count as a failure; that many in a row
    mean that something is wrong with our idea of the limits.
    """

    failures: int = 5
    backoff_s: float = 0.5
    rate_limits: int = 30


async def persist(patience: Patience, send: Callable[[], Awaitable[T]]) -> T:
    """Until it works. Raises SurfaceGone at once, SurfaceFailed when patience is at its end."""
    failures = limits = 0
    while True:
        try:
            return await send()
        except RateLimited:
            limits += 1
            if limits >= patience.rate_limits:
                raise
        except SurfaceFailed as failure:
            failures += 1
            if not failure.retryable or failures >= patience.failures:
                raise
            await asyncio.sleep(patience.backoff_s * 2 ** (failures - 1))
