"""Alerts, put together: from a sender's request to rows, and from rows to threads and turns."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import structlog

from bot.alerts.intake import AlertIntake, Taken
from bot.alerts.threads import AlertThreads
from bot.app import Base
from bot.domain.alerts import Alert, FiledAlert
from bot.domain.ids import TeamId
from bot.engine.engine import Engine
from bot.ports.failures import StorageUnavailable
from bot.service.listening import alert_products
from bot.service.times import Times
from bot.slack.delivery.outbox import Outbox
from bot.slack.views.alert_posts import AlertPosts

log = structlog.get_logger(__name__)
CALLS = 2  # a message, and the line that tells its end


@dataclass(frozen=True, slots=True)
class Alerting:
    """`take` stores a request's alerts and has them shown; `show` has shown what is still owed."""

    take: Callable[[Sequence[Alert]], Awaitable[Taken]]
    show: Callable[[], Awaitable[None]]


@asynccontextmanager
async def alerting(
    base: Base, outbox: Outbox, engine: Engine, team: TeamId, times: Times
) -> AsyncIterator[Alerting]:
    """Over this process's Slack and engine; shown by a task of its own while the body runs.

    A storm is posted at Slack's pace, which neither a sender's request nor the clock waits for.
    """
    threads = AlertThreads(
        base.stores.alerts,
        AlertPosts(outbox),
        engine,
        team,
        base.redactor,
        base.metrics.alert_thread,
        call_timeout_s=CALLS * times.card_call_s,
        gather_s=times.gather_s,
    )
    due = asyncio.Event()

    async def wake() -> None:
        due.set()

    async def file(found: Sequence[FiledAlert]) -> None:
        await base.stores.alerts.file(found, base.in_force.alert_limits)
        due.set()

    products, received = alert_products(base.settings), base.metrics.alerts_received
    intake = AlertIntake(base.in_force.alerts, products, base.redactor, file, received)
    async with asyncio.TaskGroup() as tasks:
        showing = tasks.create_task(_show(threads, due), name="alerts")
        try:
            yield Alerting(intake.take, wake)
        finally:
            showing.cancel()


async def _show(threads: AlertThreads, due: asyncio.Event) -> None:
    while True:
        await due.wait()
        due.clear()
        try:
            with suppress(StorageUnavailable):  # a later run's; the jobs tell that it is away
                await threads.run()
        except Exception:  # a bug in one thread must not end the showing of all
            log.exception("alerts.failed")
