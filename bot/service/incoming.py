"""What Slack sends of one workspace, put together: a Bolt app over that workspace's own parts and rows."""

import time
from collections.abc import Sequence
from functools import partial

from slack_bolt.async_app import AsyncApp

from bot.actions.revise import Revisions
from bot.app import Base, Conversation
from bot.domain.tenancy import HOME
from bot.engine.engine import Engine
from bot.service.cards import card_pressed, channel_reached
from bot.service.charting import Charting
from bot.service.listening import providers_report, tools_report
from bot.service.others_switch import OthersSwitch
from bot.service.own_audit import audit_of
from bot.service.sweeping import limits_of
from bot.service.workspace import SlackWorkspace
from bot.slack.listeners.background_tasks import BackgroundTasks
from bot.slack.listeners.bolt_app import Removed, create_bolt, log_removed
from bot.slack.listeners.ports import IngressPorts, IngressSettings
from bot.slack.roles.channel_access import ChannelAccess
from bot.store.audit_reading import StoredTrail
from bot.store.feedback import StoredFeedback
from bot.store.ledger import StoredLedger
from bot.store.overview import StoredOverview
from bot.wiring.audit_outlets import sinks_behind
from bot.wiring.chosen import evidence_links


def incoming(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    workspace: SlackWorkspace,
    errands: BackgroundTasks,
    removed: Removed = log_removed,
) -> AsyncApp:
    """It opens no connection of its own. What it tells people is of their own workspace."""
    settings = ingress_settings(base, workspace)
    ports = _ports(base, conversation, engine, workspace, errands)
    return create_bolt(settings, ports, errands, workspace.roles.forget_group, removed)


def ingress_settings(base: Base, workspace: SlackWorkspace) -> IngressSettings:
    """As they are when the workspace is opened, and live where a reload may change them."""
    settings, in_force, tenant = base.settings, base.in_force, workspace.tenant
    return IngressSettings(
        identity=workspace.identity,
        signing_secret=settings.slack.signing_secret.get_secret_value(),
        follow_up=settings.slack.follow_up,
        admin_roles=in_force.admin_roles_of(tenant),
        channels=in_force.channels_of(tenant),
        budget=limits_of(base, tenant),
        evidence_links=evidence_links(settings.observe, in_force.channels_at),
        may_freeze=tenant == HOME,
    )


async def _audit_behind(base: Base, tenant: str) -> Sequence[str]:
    """The trail is the operators' own: other workspaces see nothing of its sinks."""
    return await sinks_behind(base.settings, base.stores.database) if tenant == HOME else ()


def _ports(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    workspace: SlackWorkspace,
    errands: BackgroundTasks,
) -> IngressPorts:
    stores, surface, tenant = base.stores, workspace.surface, workspace.tenant
    database = stores.database
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
        trail=StoredTrail(database, tenant),
        ledger=StoredLedger(database, tenant),
        feedback=StoredFeedback(database, retain=stores.feedback.keeps_reasons, scope=tenant),
        overview=StoredOverview(database, tenant),
        channel_access=ChannelAccess(workspace.api, workspace.team, time.monotonic),
        freezes=base.freezes,
        revisions=Revisions(base.actions, base.redactor, surface.traits),
        switch=base.freezes.switch if tenant == HOME else OthersSwitch(base.freezes.switch),
        providers=providers_report(base),
        tools=tools_report(base, conversation),
        chart=Charting(base, conversation).chart,
        api=workspace.api,
    )
