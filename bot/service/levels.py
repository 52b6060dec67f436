"""Looks by the clock at how things stand, for `/metrics`."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from bot.app import Base
from bot.ports.failures import StorageUnavailable
from bot.service.listening import providers_report
from bot.slack.api.calls import WatchedCalls
from bot.store.levels import StoredLevels
from bot.telemetry.levels import Levels
from bot.upkeep.jobs import Job
from bot.wiring import rules
from bot.wiring.audit_outlets import sinks_of

log = structlog.get_logger(__name__)

EVERY_S = 15.0  # twice within the shortest `for` of deploy/alerts.yaml
Connected = Callable[[], Awaitable[bool]]
LOOK_S = 10.0  # a database that takes longer counts as lost: the next look is due soon


class LevelsLook:
    """One look sets every level; what fails makes its own level absent and no other."""

    def __init__(self, base: Base, access: WatchedCalls, connected: Connected | None) -> None:
        self._base = base
        self._access = access
        self._connected = connected
        self._levels = Levels(base.metrics.registry)
        self._stored = StoredLevels(base.stores.database)
        self._providers = providers_report(base)
        self._sinks = sinks_of(base.settings.audit)

    async def run(self) -> None:
        """Look once. Raises nothing of the database's."""
        told = await self._providers()
        self._levels.providers({each.name: each.available for each in told if each.turn})
        self._levels.slack_refused(not self._access.is_open)
        if self._connected is not None:
            await self._look_at_connection(self._connected)
        try:
            async with asyncio.timeout(LOOK_S):
                await self._look_at_database()
        except (StorageUnavailable, TimeoutError):
            self._levels.database_lost()

    async def _look_at_connection(self, connected: Connected) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                self._levels.slack_connected(await connected())
        except TimeoutError:
            self._levels.slack_connection_lost()

    async def _look_at_database(self) -> None:
        begun = time.monotonic()
        await self._stored.touch()
        took_s = time.monotonic() - begun
        limit = rules.budget_limits(self._base.settings).daily_usd_micros
        today = await self._base.stores.ledger.today()
        self._levels.budget_used(today.used_usd_micros / limit if limit else 0.0)
        for sink, behind in (await self._stored.behind(self._sinks)).items():
            self._levels.audit_behind(sink, behind.rows, behind.seconds)
        self._levels.proposals_stuck(await self._stored.stuck_s())
        self._levels.database_answered(took_s)


def level_jobs(base: Base, access: WatchedCalls, connected: Connected | None) -> dict[str, Job]:
    """By the clock, on every replica. `connected` is None where Slack comes to us."""
    return {"levels": Job(EVERY_S, LevelsLook(base, access, connected).run)}
