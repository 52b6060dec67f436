"""Alerts, put together: from a sender's request to rows, and from rows to threads and turns."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.alerts.intake import AlertIntake, Taken
from bot.alerts.threads import AlertThreads
from bot.app import Base
from bot.domain.alerts import Alert, FiledAlert
from bot.domain.ids import TeamId
from bot.engine.engine import Engine
from bot.service.listening import alert_products
from bot.service.times import Times
from bot.slack.handling.errands import Errands
from bot.slack.sending.outbox import Outbox
from bot.slack.showing.alert_posts import AlertPosts
from bot.upkeep.jobs import Job

CALLS = 2  # a message, and the line that tells its end


@dataclass(frozen=True, slots=True)
class Alerting:
    """`take` stores a request's alerts and has them shown; `jobs` show what is still owed."""

    take: Callable[[Sequence[Alert]], Awaitable[Taken]]
    jobs: Mapping[str, tuple[float, Job]]


def alerting(
    base: Base,
    outbox: Outbox,
    engine: Engine,
    team: TeamId,
    errands: Errands,
    times: Times,
) -> Alerting:
    """Over this process's Slack and engine."""
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

    async def file(found: Sequence[FiledAlert]) -> None:
        await base.stores.alerts.file(found, base.in_force.alert_limits)
        errands.run("alerts", threads.run())

    received = base.metrics.alerts_received
    product_of = alert_products(base.settings)
    intake = AlertIntake(base.in_force.alerts, product_of, base.redactor, file, received)
    return Alerting(intake.take, {"alerts": (times.tick_s, threads.run)})
