"""One Slack workspace: its client, pace, people and channels, and the Bolt app that takes its events."""

import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

import aiohttp
from slack_bolt.async_app import AsyncApp

from bot.actions.display import CardSweep
from bot.actions.revise import Revisions
from bot.actions.versions import VersionCheck
from bot.app import rules
from bot.app.audit import sinks_behind
from bot.app.backend_selection import evidence_links
from bot.app.build import Base
from bot.app.conversation import Conversation
from bot.app.platforms import Directory, Platform
from bot.chat.attachments import withheld
from bot.chat.chart_answer import ChartAnswers
from bot.domain.audit import AuditEvent
from bot.domain.budget import BudgetLimits
from bot.domain.freeze import Freeze
from bot.domain.ids import ChannelId, MessageTs, ProposalId, SessionId, TeamId, UserId
from bot.domain.proposal import Proposal
from bot.domain.tenancy import HOME
from bot.domain.tool_status import ToolReport
from bot.engine.engine import Engine
from bot.ports.audit_log import AuditLog
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import OnCallNow, OnCallOf
from bot.ports.proposals import KillSwitch
from bot.reports.provider_report import provider_report
from bot.slack.api.calls import RedactedCalls, SlackCalls, WatchedCalls
from bot.slack.api.channels import ChannelReaders, Channels, SlackChannelNames
from bot.slack.api.files import SlackFiles
from bot.slack.api.users import PersonNames
from bot.slack.api.web_api import create_api
from bot.slack.delivery.agent_sessions import AgentSessions
from bot.slack.delivery.chart_files import ChartFiles, uploader
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.pacing import Rates
from bot.slack.delivery.scheduler import EditScheduler, LookupCalls
from bot.slack.delivery.streams import Streams
from bot.slack.ingress.payloads import SlackIdentity
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.bolt_app import Removed, create_bolt, log_removed
from bot.slack.listeners.ports import (
    CardPressed,
    ChannelReached,
    IngressPorts,
    IngressSettings,
    ProvidersReport,
)
from bot.slack.roles.channel_access import ChannelAccess
from bot.slack.roles.directory import Paging, SlackRoleDirectory
from bot.slack.text.links import LinkPolicy
from bot.slack.views.charts import described, painter
from bot.slack.views.surface import AdminMessages, SlackSurface
from bot.slack.views.threads import SlackThreads
from bot.store.audit_reading import StoredAuditReader
from bot.store.feedback import StoredFeedback
from bot.store.ledger import StoredLedger
from bot.store.overview import StoredOverview
from tools.capabilities import Deploys


@dataclass(frozen=True, slots=True)
class SlackWorkspace:
    """One workspace. `tenant` is home, or another workspace's team.

    Slack's limits and data belong to one workspace, so workspaces share nothing here.
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
        return self.identity.team

    @property
    def platform(self) -> Platform:
        surface = self.surface
        waits = (surface.show_waiting, surface.show_in_line)
        return Platform(surface, self.directory, *waits, surface.stop_edits)


def _on_call(roles: SlackRoleDirectory, people: PersonNames) -> OnCallOf:
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
    """Open the workspace without a call to Slack. It edits and posts until the stack closes."""
    tenant = base.live_config.tenant_of(identity.team)
    client = create_api(token, base.settings.slack.api_base_url, session)
    access = WatchedCalls(client, base.metrics)
    redacted = RedactedCalls(access, base.redactor.redact_for_people)
    scheduler = await stack.enter_async_context(EditScheduler(rates).running())
    api = LookupCalls(redacted, scheduler)
    unhurried = LookupCalls(redacted, scheduler, rates.person_reserve)
    outbox = Outbox(api, scheduler, identity.bot_user)
    surface = await slack_surface(base, api, outbox, engine, identity, session, stack)
    held = base.live_config.roles_of(tenant)
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
    admins = AdminMessages(outbox, roles, identity.team, base.live_config.admin_roles_of(tenant))
    return SlackWorkspace(
        identity, tenant, access, api, scheduler, outbox, surface, names, roles, directory, admins
    )


async def slack_surface(
    base: Base,
    api: SlackCalls,
    outbox: Outbox,
    engine: Engine,
    identity: SlackIdentity,
    session: aiohttp.ClientSession,
    stack: AsyncExitStack,
) -> SlackSurface:
    """The surface; its agent sessions are active until the stack closes."""
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
    channels = base.live_config.channels_at(proposal.place.team)
    return base.observed_in(channels, proposal.channel_name).deploys


def _chart_files(
    api: SlackCalls, outbox: Outbox, session: aiohttp.ClientSession
) -> ChartFiles | None:
    """Sent where blocks are refused; None without the extra `kortex[charts]`, which draws them."""
    paint = painter()
    return ChartFiles(api, outbox, paint, described, uploader(session)) if paint else None


def providers_report(base: Base) -> ProvidersReport:
    models = {name: own.model for name, own in base.settings.llm.providers.items()}
    return provider_report(base.providers, base.rounds, models)


def tools_report(base: Base, conversation: Conversation) -> Callable[[], ToolReport]:
    return lambda: conversation.toolboxes.report(base.metrics.tool_health())


def limits_of(base: Base, tenant: str) -> BudgetLimits:
    """The limits that a workspace's admins see: its own, or all of them at home."""
    limits = rules.budget_limits(base.settings)
    if tenant == HOME:
        return limits
    return BudgetLimits(base.live_config.daily_usd_micros(tenant), limits.alert_at_pct)


def audit_of(audit: AuditLog, tenant: str) -> AuditLog:
    """The audit log of a workspace; rows of home carry no mark."""
    return audit if tenant == HOME else _WorkspaceAudit(audit, SessionId(f"session:{tenant}::"))


@dataclass(frozen=True, slots=True)
class _WorkspaceAudit:
    """`AuditLog`; `session` names the workspace, as the ids of its conversations do."""

    audit: AuditLog
    session: SessionId

    async def append(self, event: AuditEvent) -> None:
        await self.audit.append(self._marked(event))

    async def append_with_step(self, event: AuditEvent) -> None:
        await self.audit.append_with_step(self._marked(event))

    def _marked(self, event: AuditEvent) -> AuditEvent:
        return event if event.session_id else replace(event, session_id=self.session)


class ReadonlySwitch:
    """`KillSwitch`, which is home's to set: `/kortex freeze` is refused before it comes here."""

    def __init__(self, switch: KillSwitch) -> None:
        self._switch = switch

    async def freeze(self, by: str, reason: str) -> bool:  # noqa: ARG002 - the port's
        return False

    async def lift(self, by: str) -> None:  # noqa: ARG002 - the port's
        """Raises StorageUnavailable: it stays as it is."""
        raise StorageUnavailable("only home's admins lift a freeze")

    async def sync(self) -> bool:
        """Always true: this view stores nothing."""
        return True

    async def state(self) -> Freeze:
        return replace(await self._switch.state(), by="an operator", reason="")


def paging(base: Base, api: SlackCalls, team: TeamId) -> Paging | None:
    """Who a card mentions; None where cards mention no one.

    It has a directory of its own, so that a press is never judged by a cached look-up of the card.
    """
    if not base.settings.proposals.mention:
        return None
    roles = base.live_config.roles_of(base.live_config.tenant_of(team))
    return Paging(roles, SlackRoleDirectory(api, team, roles, time.monotonic))


def card_pressed(base: Base, conversation: Conversation) -> CardPressed:
    """A press shows which message is the card, and that it can be reached."""

    async def pressed(proposal_id: ProposalId, ts: MessageTs) -> None:
        await base.stores.cards.pressed(proposal_id, ts)
        await conversation.display.refresh(proposal_id, ())

    return pressed


def channel_reached(
    base: Base, conversation: Conversation, errands: BackgroundTasks
) -> ChannelReached:
    """Cards in a channel that became reachable: recorded first, then shown in the background."""
    sweep = CardSweep(base.stores.cards, conversation.display)

    async def reached(team: TeamId, channel: ChannelId) -> None:
        if dead := await sweep.in_reach(team, channel):
            errands.run("cards in reach", sweep.paint(dead))

    return reached


def incoming(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    workspace: SlackWorkspace,
    errands: BackgroundTasks,
    removed: Removed = log_removed,
) -> AsyncApp:
    """The Bolt app of one workspace. It opens no connection, and shows that workspace's data only."""
    settings = ingress_settings(base, workspace)
    ports = _ports(base, conversation, engine, workspace, errands)
    return create_bolt(settings, ports, errands, workspace.roles.forget_group, removed)


def ingress_settings(base: Base, workspace: SlackWorkspace) -> IngressSettings:
    """The settings of the listeners; reloadable ones are live views."""
    settings, live_config, tenant = base.settings, base.live_config, workspace.tenant
    return IngressSettings(
        identity=workspace.identity,
        signing_secret=settings.slack.signing_secret.get_secret_value(),
        follow_up=settings.slack.follow_up,
        admin_roles=live_config.admin_roles_of(tenant),
        channels=live_config.channels_of(tenant),
        budget=limits_of(base, tenant),
        evidence_links=evidence_links(settings.observe, live_config.channels_at),
        may_freeze=tenant == HOME,
    )


async def _audit_behind(base: Base, tenant: str) -> Sequence[str]:
    """The audit log is the operators' own: other workspaces see nothing of its sinks."""
    return await sinks_behind(base.settings, base.stores.database) if tenant == HOME else ()


def _ports(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    workspace: SlackWorkspace,
    errands: BackgroundTasks,
) -> IngressPorts:
    stores, surface, tenant = base.stores, workspace.surface, workspace.tenant
    database, talk = stores.database, conversation
    charts = ChartAnswers(
        talk.tools, talk.channel_now, talk.roles_of, base.live_config.tenant_of, base.clock
    )
    return IngressPorts(
        workflows=engine,
        redactor=base.redactor,
        placeholders=base.placeholders,
        sessions=stores.sessions,
        proposals=stores.proposals,
        roles=workspace.roles,
        action_roles=base.actions.roles_of,
        card_pressed=card_pressed(base, conversation),
        channel_now=conversation.channel_now,
        channel_renamed=workspace.names.renamed,
        channel_reached=channel_reached(base, conversation, errands),
        surface=surface,
        stops=engine,
        audit=audit_of(stores.audit, tenant),
        audit_behind=partial(_audit_behind, base, tenant),
        audit_reader=StoredAuditReader(database, tenant),
        ledger=StoredLedger(database, tenant),
        feedback=StoredFeedback(database, retain=stores.feedback.keeps_reasons, scope=tenant),
        overview=StoredOverview(database, tenant),
        channel_access=ChannelAccess(workspace.api, workspace.team, time.monotonic),
        freezes=base.freezes,
        revisions=Revisions(base.actions, base.redactor, surface.traits),
        switch=base.freezes.switch if tenant == HOME else ReadonlySwitch(base.freezes.switch),
        providers=providers_report(base),
        tools=tools_report(base, conversation),
        chart=charts.chart,
        api=workspace.api,
    )
