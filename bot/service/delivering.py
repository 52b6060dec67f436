"""The clock's part in bringing what could not be shown, and in knowing whether anything can be."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from bot.app import Base
from bot.chat.delivery import Redelivery
from bot.domain.ids import TeamId
from bot.ports.platform import AnswerSurface
from bot.service.times import Times
from bot.service.workspace import SlackWorkspace
from bot.upkeep.jobs import Job


def delivery_jobs(
    base: Base,
    served: Callable[[], Sequence[SlackWorkspace]],
    surface: AnswerSurface,
    times: Times,
) -> Mapping[str, tuple[float, Job]]:
    """Every tick on every replica. `served` are home and what is open beside it."""

    async def tell(team: TeamId, text: str) -> int:
        """In its own workspace; what was asked over HTTP is home's."""
        tenant = base.in_force.tenant_of(team)
        found = [each for each in served() if each.tenant == tenant]
        return await found[0].admins.tell(text) if found else 0

    redelivery = Redelivery(
        surface,
        base.stores.sessions,
        base.stores.undelivered,
        base.stores.audit,
        tell,
        lambda: any(each.access.is_open for each in served()),
    )

    async def probe_and_bring() -> None:
        await asyncio.gather(*(each.access.probe(times.probe_s) for each in served()))
        await redelivery.run()

    return {"delivery": (times.tick_s, probe_and_bring)}
