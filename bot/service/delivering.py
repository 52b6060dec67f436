"""The clock's part in bringing what could not be shown, and in knowing whether anything can be."""

from collections.abc import Mapping

from bot.app import Base
from bot.chat.delivery import Redelivery
from bot.ports.platform import AnswerSurface
from bot.service.times import Times
from bot.slack.api.calls import WatchedCalls
from bot.slack.showing.admins import AdminMessages
from bot.upkeep.jobs import Job


def delivery_jobs(
    base: Base, access: WatchedCalls, surface: AnswerSurface, admins: AdminMessages, times: Times
) -> Mapping[str, tuple[float, Job]]:
    """Every tick on every replica."""
    redelivery = Redelivery(
        surface,
        base.stores.sessions,
        base.stores.undelivered,
        base.stores.audit,
        admins.tell,
        lambda: access.is_open,
    )

    async def probe_and_bring() -> None:
        await access.probe(times.probe_s)
        await redelivery.run()

    return {"delivery": (times.tick_s, probe_and_bring)}
