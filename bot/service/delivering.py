"""How what could not be shown is brought, and how it is known whether anything can be."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from bot.app import Base
from bot.chat.delivery import Redelivery
from bot.domain.ids import TeamId
from bot.ports.platform import AnswerSurface
from bot.service.times import Times
from bot.service.workspace import SlackWorkspace
from bot.upkeep.jobs import Job


def redelivery_of(
    base: Base, served: Callable[[], Sequence[SlackWorkspace]], surface: AnswerSurface
) -> Redelivery:
    """While any of `served` is open, which are home and what is open beside it."""

    async def tell(team: TeamId, text: str) -> int:
        """In its own workspace; what was asked over HTTP is home's."""
        tenant = base.in_force.tenant_of(team)
        found = [each for each in served() if each.tenant == tenant]
        return await found[0].admins.tell(text) if found else 0

    return Redelivery(
        surface,
        base.stores.sessions,
        base.stores.undelivered,
        base.stores.audit,
        tell,
        lambda: any(each.access.is_open for each in served()),
        base.stores.proposals.of_session,
    )


def probe_jobs(served: Callable[[], Sequence[SlackWorkspace]], times: Times) -> Mapping[str, Job]:
    """Every tick on every replica."""

    async def probe() -> None:
        await asyncio.gather(*(each.access.probe(times.probe_s) for each in served()))

    return {"probe": Job(times.tick_s, probe)}
