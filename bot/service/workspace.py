"""One Slack workspace, put together: its client, its pace, its people and channels, where people read."""

import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp

from bot.app import Base
from bot.chat.pictures import withheld
from bot.domain.ids import TeamId, UserId
from bot.engine.engine import Engine
from bot.ports.platform import OnCallNow, OnCallOf
from bot.service.routing import Platform
from bot.service.surface import slack_surface
from bot.slack.api.calls import CountedCalls, RedactedCalls, SlackCalls, WatchedCalls
from bot.slack.api.channels import ChannelReaders, Channels, SlackChannelNames
from bot.slack.api.files import SlackFiles
from bot.slack.api.users import PersonNames
from bot.slack.api.web_api import create_api
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.pacing import Rates
from bot.slack.delivery.scheduler import EditScheduler, LookupCalls
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.roles.directory import SlackRoleDirectory
from bot.slack.views.admin_messages import AdminMessages
from bot.slack.views.surface import SlackSurface
from bot.slack.views.threads import SlackThreads
from bot.wiring.in_force import Directory


@dataclass(frozen=True, slots=True)
class SlackWorkspace:
    """`tenant` is whose it is: home's, or that of another workspace, which is its team.

    Everything Slack counts or knows is of one workspace, so nothing here is shared with another one.
    """

    identity: SlackIdentity
    tenant: str
    access: WatchedCalls
    api: SlackCalls
    scheduler: EditScheduler
    outbox: Outbox
    surface: SlackSurface
    names: SlackChannelNames
    roles: SlackRoleDirectory
    directory: Directory
    admins: AdminMessages

    @property
    def team(self) -> TeamId:
        """By which places name it."""
        return self.identity.team

    @property
    def platform(self) -> Platform:
        """As conversations are routed to it."""
        surface = self.surface
        waits = (surface.show_waiting, surface.show_in_line)
        return Platform(surface, self.directory, *waits, surface.leave)


def _on_call(roles: SlackRoleDirectory, people: PersonNames) -> OnCallOf:
    """The names of those on call in that workspace."""

    async def now() -> OnCallNow:
        found = await roles.on_call()
        return {
            role: None
            if users is None
            else [await people.name(UserId(one)) for one in sorted(users)]
            for role, users in found.items()
        }

    return now


async def open_workspace(
    base: Base,
    engine: Engine,
    session: aiohttp.ClientSession,
    identity: SlackIdentity,
    token: str,
    rates: Rates,
    stack: AsyncExitStack,
) -> SlackWorkspace:
    """Asks Slack nothing. It edits and tells as long as the stack is open."""
    tenant = base.in_force.tenant_of(identity.team)
    access = WatchedCalls(create_api(token, base.settings.slack.api_base_url, session))
    redacted = RedactedCalls(CountedCalls(access, base.metrics), base.redactor.redact_for_people)
    scheduler = await stack.enter_async_context(EditScheduler(rates).running())
    api = LookupCalls(redacted, scheduler)
    unhurried = LookupCalls(redacted, scheduler, rates.person_reserve)
    outbox = Outbox(api, scheduler, identity.bot_user)
    surface = await slack_surface(base, api, outbox, engine, identity, session, stack)
    held = base.in_force.roles_of(tenant)
    roles = SlackRoleDirectory(api, identity.team, held, time.monotonic)
    channels, people = Channels(api, time.monotonic), PersonNames(unhurried, time.monotonic)
    names = SlackChannelNames(channels, base.stores.names)
    files = SlackFiles(api, session, token, base.settings.slack.api_base_url, base.redactor.redact)
    paced = (scheduler.read_permit, scheduler.rate_limited)

    directory = Directory(
        people.name,
        names,
        roles,
        people.zone,
        ChannelReaders(channels).of,
        files,
        SlackThreads(api, people, identity.bot_user, identity.site, *paced),
        files.picture if base.settings.llm.privacy.send_images else withheld,
        _on_call(roles, people),
    )
    admins = AdminMessages(outbox, roles, identity.team, base.in_force.admin_roles_of(tenant))
    return SlackWorkspace(
        identity,
        tenant,
        access,
        api,
        scheduler,
        outbox,
        surface,
        names,
        roles,
        directory,
        admins,
    )
