"""The clock's part in asking other systems what they deployed."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from bot.app import Base
from bot.upkeep.deploy_feeds import FeedSweep
from bot.upkeep.jobs import Job
from bot.wiring.feeds import make_feeds


async def feed_jobs(base: Base, stack: AsyncExitStack) -> Mapping[str, tuple[float, Job]]:
    """Ask each of `[deploys]` what it deployed. Raises ConfigurationError."""
    feeds = await asyncio.to_thread(make_feeds, base.settings, base.cluster, stack)
    return {
        f"deploys.{name}": (
            base.settings.deploys[name].every.total_seconds(),
            FeedSweep(name, feed, base.stores.events, base.clock).run,
        )
        for name, feed in feeds.items()
    }
