"""The clock's part in asking other systems what they deployed."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from adapters.deploys.feed import DeployFeed
from bot.app import Base
from bot.upkeep.deploy_feeds import TICK_S, FeedRound, FeedSweep
from bot.upkeep.jobs import Job
from bot.wiring.feeds import make_feeds


async def feed_jobs(base: Base, stack: AsyncExitStack) -> Mapping[str, Job]:
    """Ask each of `[deploys]` what it deployed. Raises ConfigurationError."""
    feeds = await asyncio.to_thread(make_feeds, base.settings, base.cluster, stack)
    return {
        f"deploys.{name}": Job(TICK_S, _round(base, name, of).run) for name, of in feeds.items()
    }


def _round(base: Base, table: str, feeds: Mapping[str, DeployFeed]) -> FeedRound:
    every_s = base.settings.deploys[table].every.total_seconds()
    return FeedRound(
        [
            FeedSweep(f"{table}, {name}", feed, base.stores.events, base.clock, every_s)
            for name, feed in feeds.items()
        ]
    )
