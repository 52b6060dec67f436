"""Slack as the place where people read, put together."""

from contextlib import AsyncExitStack
from functools import partial

import aiohttp

from bot.actions.versions import VersionCheck
from bot.app import Base
from bot.domain.proposal import Proposal
from bot.engine.engine import Engine
from bot.service.cards import paging
from bot.slack.api.calls import SlackCalls
from bot.slack.delivery.agent_sessions import AgentSessions
from bot.slack.delivery.chart_files import ChartFiles, uploader
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.streams import Streams
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.text.links import LinkPolicy
from bot.slack.views.chart_image import painter
from bot.slack.views.charts import described
from bot.slack.views.surface import SlackSurface
from tools.capabilities import Deploys


async def slack_surface(
    base: Base,
    api: SlackCalls,
    outbox: Outbox,
    engine: Engine,
    identity: SlackIdentity,
    session: aiohttp.ClientSession,
    stack: AsyncExitStack,
) -> SlackSurface:
    """Its agent sessions are told of as long as the stack is open."""
    scheduler = outbox.scheduler
    sessions = await stack.enter_async_context(AgentSessions(api, scheduler.rates).running())
    return SlackSurface(
        outbox,
        streams=Streams(api, scheduler, base.settings.slack.stream, outbox.pictures),
        sessions=sessions,
        links=LinkPolicy(frozenset(base.settings.slack.link_hosts), identity.site),
        now=base.stores.database.now,
        take_first_look=engine.take_first_look,
        redact=base.redactor.redact_for_people,
        resolve=lambda text, place: base.placeholders.resolved(text, place.key),
        show_cost=base.settings.llm.show_cost,
        paging=paging(base, api, identity.team),
        stored=base.stores.proposals.get,
        stands=base.stores.sessions.set_answer,
        chart_files=_chart_files(api, outbox, session),
        warning=VersionCheck(partial(deploys_of, base)).warning,
    )


def deploys_of(base: Base, proposal: Proposal) -> Deploys | None:
    """The deploy records that the proposal's channel reads."""
    channels = base.in_force.channels_at(proposal.place.team)
    return base.observed_in(channels, proposal.channel_name).deploys


def _chart_files(
    api: SlackCalls, outbox: Outbox, session: aiohttp.ClientSession
) -> ChartFiles | None:
    """Sent where blocks are refused; None without the extra `kortex[charts]`, which draws them."""
    paint = painter()
    return ChartFiles(api, outbox, paint, described, uploader(session)) if paint else None
