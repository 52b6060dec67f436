"""The composition root: which concrete parts a running Kortex is made of.

Only `bot.app` names concrete classes (docs/adr/0008)."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

import httpx

from adapters.http.egress import confined_to
from adapters.llm.port import Provider
from bot.actions.catalog import ActionCatalog
from bot.actions.freeze import FreezeJudge
from bot.app import rules
from bot.app.audit import calls_audit
from bot.app.backend_kinds import Cluster, bound, open_cluster
from bot.app.backend_selection import (
    NO_PLAYBACK,
    ObservedIn,
    Playback,
    RecordedWorld,
    SystemClock,
    make_observed,
)
from bot.app.http_access import orders_client
from bot.app.live_config import LiveConfig
from bot.app.operator_tools import McpServers, Plugins, open_mcp, open_plugins
from bot.app.providers import asked_in_order, check_edited, local_hosts, make_providers, models_of
from bot.app.stores import Stores, open_freezes, open_redactor, open_stores
from bot.chat.redacted_rounds import RedactedRounds
from bot.chat.rounds import Rounds
from bot.chat.turn_budget import Budget, Tenants
from bot.privacy.redactor import TextRedactor
from bot.privacy.session_memory import Placeholders
from bot.settings.model import Settings
from bot.telemetry.metrics import Metrics
from tools.capabilities import Clock


@dataclass(frozen=True, slots=True)
class Base:
    """The parts that every surface shares."""

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


async def build_base(
    settings: Settings,
    stack: AsyncExitStack,
    *,
    playback: Playback = NO_PLAYBACK,
    world: RecordedWorld | None = None,
) -> Base:
    """Open what every surface needs. Raises ConfigurationError, StorageUnavailable.

    Tools read `world` instead of the backends.
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
