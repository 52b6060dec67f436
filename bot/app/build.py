"""The composition root: which concrete parts a running Kortex is made of.

Only `bot.app` names concrete classes (docs/adr/0008)."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

import httpx

from adapters.control_plane.orders import Executors
from adapters.control_plane.probe import HttpProbe
from adapters.http.egress import confined_to
from adapters.llm.port import Provider
from bot.actions.catalog import ActionCatalog, OfferedOperations
from bot.actions.decide import Decide
from bot.actions.dispatch import Dispatch
from bot.actions.display import CALL_TIMEOUT_S, ProposalDisplay
from bot.actions.freeze import FreezeJudge
from bot.actions.guards import GuardLine
from bot.actions.notes import proposal_notes
from bot.actions.propose import ProposalDesk
from bot.actions.target import Target, placed, rehearsed
from bot.alerts.words import note as alert_note
from bot.app import rules
from bot.app.audit import calls_audit
from bot.app.backend_kinds import Cluster, bound, open_cluster
from bot.app.backend_selection import (
    NO_PLAYBACK,
    Observed,
    ObservedIn,
    Playback,
    RecordedWorld,
    SystemClock,
    make_observed,
)
from bot.app.http_access import make_executors, orders_client
from bot.app.live_config import LiveConfig
from bot.app.operator_tools import McpServers, Plugins, open_mcp, open_plugins
from bot.app.platforms import ChannelLookup, Directory
from bot.app.providers import (
    asked_in_order,
    check_edited,
    installation_key,
    local_hosts,
    make_providers,
    models_of,
)
from bot.app.stores import Stores, open_freezes, open_redactor, open_stores
from bot.app.toolboxes import Toolboxes
from bot.chat.display_names import NamesAt
from bot.chat.recap import Recaps
from bot.chat.redacted_rounds import RedactedRounds
from bot.chat.rounds import Rounds
from bot.chat.tool_calls import Toolbox, ToolDesk, record_calls
from bot.chat.turn import Turns
from bot.chat.turn_budget import Budget, Tenants
from bot.chat.turn_permissions import RolesOf, authority
from bot.domain.channel import Channel, ChannelNow
from bot.domain.ids import Person, Place, TeamId, session_at
from bot.domain.proposal import Proposal
from bot.domain.roles import NO_ROLES, HeldRoles
from bot.domain.tenancy import HOME
from bot.ports.durability import Stops
from bot.ports.platform import ChatSurface, NameAt, People
from bot.privacy.redactor import TextRedactor
from bot.privacy.session_memory import Placeholders
from bot.reports.one_page import one_page
from bot.settings.model import (
    Settings,
)
from bot.store.dossiers import Dossiers
from bot.telemetry.metrics import Metrics
from tools.capabilities import Capabilities, Clock
from tools.catalog import ToolCatalog
from tools.contract import AnyTool
from tools.core.all import core_tools
from tools.core.read_attachment import ATTACHMENTS, Attachments
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy
from tools.runner import RunnerHooks, ToolRunner


@dataclass(frozen=True, slots=True)
class Base:
    """What everything else stands on."""

    settings: Settings
    stores: Stores
    clock: Clock
    observed_in: ObservedIn
    own_adapters: Mapping[str, object]
    orders: httpx.AsyncClient
    redactor: TextRedactor
    placeholders: Placeholders
    providers: Mapping[str, Provider]
    rounds: Rounds
    budget: Budget
    actions: ActionCatalog
    live_config: LiveConfig
    metrics: Metrics
    freezes: FreezeJudge
    cluster: Cluster | None
    mcp: McpServers
    plugins: Plugins


@dataclass(frozen=True, slots=True)
class Conversation:
    """What answers asks and carries decisions through, over one surface."""

    turns: Turns
    decide: Decide
    desk: ProposalDesk
    tools: ToolDesk
    executors: Executors
    toolboxes: Toolboxes
    channel_now: ChannelNow
    roles_of: RolesOf
    display: ProposalDisplay


async def build_base(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    playback: Playback = NO_PLAYBACK,
    world: RecordedWorld | None = None,
) -> Base:
    """Open what is needed whatever the surface. Raises ConfigurationError, StorageUnavailable.

    `world` is looked at instead of the backends.
    """
    stores = await open_stores(settings, stack)
    providers = make_providers(settings.llm, stack, triage_pace_s=playback.pace_s)
    if settings.llm.is_local_only:
        stack.enter_context(confined_to(local_hosts(settings, providers)))
    placeholders = Placeholders()
    redactor = open_redactor(settings, placeholders.remember)
    rounds = RedactedRounds(asked_in_order(settings.llm, providers), redactor)
    metrics = Metrics()
    live_config = await asyncio.to_thread(
        LiveConfig, settings, partial(check_edited, settings, providers)
    )
    clock = world.clock if world else SystemClock()
    labels = settings.observe.product_labels
    cluster = await open_cluster(settings.kubernetes, stack, labels)
    sources = (clock, stores.deploys, stores.incidents)
    seen = partial(make_observed, settings, *sources, stack, cluster, playback.incidents)
    return Base(
        settings=settings,
        stores=stores,
        clock=clock,
        observed_in=(lambda *_: world.observed) if world else await asyncio.to_thread(seen),
        own_adapters=await asyncio.to_thread(bound, settings, stack),
        orders=await asyncio.to_thread(orders_client, settings.control_plane, stack),
        redactor=redactor,
        placeholders=placeholders,
        providers=providers,
        rounds=rounds,
        budget=_budget(settings, stores, live_config, rounds, providers, metrics),
        actions=live_config.actions,
        live_config=live_config,
        metrics=metrics,
        freezes=await open_freezes(
            stores.database, live_config.actions, rules.freeze_marker(settings), live_config.windows
        ),
        cluster=cluster,
        mcp=await open_mcp(settings, stack),
        plugins=await asyncio.to_thread(open_plugins, settings, stack),
    )


def _budget(
    settings: Settings,
    stores: Stores,
    live_config: LiveConfig,
    rounds: Rounds,
    providers: Mapping[str, Provider],
    metrics: Metrics,
) -> Budget:
    return Budget(
        rounds,
        stores.ledger,
        calls_audit(stores.audit, every_call=settings.llm.privacy.audit_every_call),
        rules.budget_limits(settings),
        metrics,
        models_of(settings.llm, providers),
        Tenants(live_config.tenant_of, live_config.daily_usd_micros),
    )


def build_conversation(
    base: Base,
    surface: ChatSurface,
    stops: Stops,
    directory: Directory,
    *,
    card_call_s: float = CALL_TIMEOUT_S,
) -> Conversation:
    """Put together what answers asks on that surface; a try to show a card takes `card_call_s`."""
    live_config = base.live_config
    channel_lookup = ChannelLookup(
        live_config.channels_at, directory.channels, base.stores.sessions
    )
    probe = HttpProbe(base.orders, rules.revealed(live_config.reading_tokens))
    target = Target(probe, base.redactor, surface.traits)
    display = ProposalDisplay(base.stores.cards, surface, call_timeout_s=card_call_s)
    desk = _desk(base, display, channel_lookup, target)
    toolboxes = _toolboxes(base, desk, directory.attachments)
    tools = ToolDesk(toolboxes.choose, base.clock)

    async def roles_of(place: Place, person: Person) -> HeldRoles:
        named = toolboxes.roles_named if person.is_somebody else ()
        return await directory.held_at(place, person, named) if named else NO_ROLES

    people = NamesAt(directory.name_at)
    turns = Turns(
        config=live_config.turn_config(base.settings),
        sessions=base.stores.sessions,
        channels=directory.channels,
        roles_of=roles_of,
        zone_of=directory.zone_of,
        readers_of=directory.readers_of,
        picture_at=directory.picture_at,
        surface=surface,
        undelivered=base.stores.undelivered,
        proposals_of=base.stores.proposals.of_session,
        budget=base.budget,
        tools=tools,
        stops=stops,
        clock=base.clock,
        redactor=base.redactor,
        placeholders=base.placeholders,
        notes=partial(_notes, base, people, directory),
        people=people,
        metrics=base.metrics,
        recaps=_recaps(base, directory),
    )
    executors = make_executors(rules.revealed(live_config.order_tokens), base.orders)
    decide = _decide(base, display, directory.name_at, executors, target, channel_lookup.now)
    return Conversation(
        turns, decide, desk, tools, executors, toolboxes, channel_lookup.now, roles_of, display
    )


async def _notes(
    base: Base, people: People, directory: Directory, place: Place, channel: Channel, question: str
) -> Sequence[str]:
    told = await proposal_notes(base.stores.proposals, session_at(place), place, channel, people)
    # Alerts open threads at home alone, whose ids may be another workspace's too.
    asks = bool(base.live_config.alerts) and base.live_config.tenant_of(place.team) == HOME
    alerts = await base.stores.alerts.at(place) if asks else None
    return [
        *await directory.on_call_notes(place, question),
        *told,
        *([alert_note(alerts)] if alerts else []),
    ]


def _recaps(base: Base, directory: Directory) -> Recaps | None:
    threads, records = directory.threads, Dossiers(base.stores.database)
    return Recaps(threads, records, base.redactor, one_page) if threads else None


def _desk(
    base: Base, display: ProposalDisplay, channel_lookup: ChannelLookup, target: Target
) -> ProposalDesk:
    return ProposalDesk(
        base.actions,
        base.stores.proposals,
        display,
        channel_lookup.of_call,
        target,
        base.freezes,
        base.stores.watches,
        max_open=base.settings.proposals.max_open,
        on_state=base.metrics.proposal_became,
    )


def _toolboxes(base: Base, desk: ProposalDesk, attachments: Attachments | None) -> Toolboxes:
    files = {} if attachments is None else {ATTACHMENTS.name: attachments}
    more = {**base.own_adapters, **files}

    def bind(observed: Observed) -> Capabilities:
        known = observed.capabilities(base.clock, OfferedOperations(base.actions), desk)
        return replace(known, more=more)

    def make(tools: Sequence[AnyTool], policy: ToolPolicy, caps: Capabilities) -> Toolbox:
        catalog = ToolCatalog(tools, policy, caps)
        runner = ToolRunner(
            catalog,
            policy,
            caps,
            base.redactor,
            base.clock,
            timeouts=base.live_config.tool_timeouts,
            hooks=RunnerHooks(
                authority(policy),
                record_calls(base.budget.audit, base.metrics),
                base.metrics.tool_broke,
            ),
        )
        return Toolbox(catalog, runner)

    built_in = core_tools(CursorSigner(installation_key(base.settings)))

    def observed(team: TeamId, channel: str) -> Observed:
        return base.observed_in(base.live_config.channels_at(team), channel)

    return Toolboxes(base.settings, built_in, (base.plugins, base.mcp), observed, bind, make)


def _decide(
    base: Base,
    display: ProposalDisplay,
    name_at: NameAt,
    executors: Executors,
    target: Target,
    channel_now: ChannelNow,
) -> Decide:
    proposals = base.stores.proposals
    dispatch = Dispatch(
        base.actions,
        proposals,
        executors,
        GuardLine(base.actions, proposals, base.stores.audit, target, base.freezes, channel_now),
        base.redactor,
        base.stores.watches,
        on_state=base.metrics.proposal_became,
    )

    async def rehearse(row: Proposal) -> Proposal:
        row = placed(row, await channel_now(row.place))
        return await rehearsed(target, base.actions.find(row.action, row.product), row)

    return Decide(
        proposals,
        base.stores.audit,
        display,
        dispatch,
        name_at,
        rehearse,
        watches=base.stores.watches,
        on_state=base.metrics.proposal_became,
    )
