"""Jobs by the clock: sweeps, retention, budget alerts, probes, deploy feeds, levels for `/metrics`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import orjson

from adapters.deploys.feed import DeployFeed
from adapters.llm.messages import ToolCall
from bot.actions.decide import ExpirySweep
from bot.actions.display import CardSweep
from bot.actions.effect import Deviation, EffectCheck, compared, rollback_context
from bot.actions.propose import ProposalScope
from bot.actions.stranded import StrandedSweep
from bot.actions.watch import WatchSweep
from bot.app import rules
from bot.app.audit import sinks_of
from bot.app.backend_kinds import make_feeds
from bot.app.build import Base
from bot.app.conversation import Conversation
from bot.app.http_server import Alerting
from bot.app.worker import Times
from bot.app.workspace import SlackWorkspace, audit_of, limits_of, providers_report
from bot.app.workspaces import Workspaces
from bot.chat.budget_report import BudgetAlert
from bot.chat.delivery import Delivery, Redelivery
from bot.chat.stopping import Signal
from bot.domain.charted import charts_of
from bot.domain.ids import TeamId
from bot.domain.proposal import Proposal
from bot.domain.tenancy import HOME
from bot.domain.turn_events import Evidence
from bot.engine.dbos_setup import forget_ended
from bot.engine.engine import Engine
from bot.ports.failures import StorageUnavailable
from bot.ports.platform import AnswerSurface
from bot.settings.model import Settings
from bot.slack.api.calls import WatchedCalls
from bot.store.ledger import StoredAlertDays, StoredLedger
from bot.store.levels import StoredLevels
from bot.store.retention import StoredRetention
from bot.store.stranded import StrandedProposals
from bot.telemetry.levels import Levels
from bot.upkeep.deploy_feeds import TICK_S, FeedRound, FeedSweep
from bot.upkeep.jobs import Job
from bot.upkeep.retention import RECORDS_S, SWEEP_S, RecordsSweep, RetentionPeriods, RetentionSweep
from tools.capabilities import CallContext
from tools.operation import ProposalDraft, ProposalReceipt

STRANDED_S = 30.0
IDLE_S = 60.0
LEVELS_S = 15.0  # twice within the shortest `for` of deploy/alerts.yaml
LOOK_S = 10.0  # a database that takes longer counts as lost: the next look is due soon
COMPARE = "core__compare_to_baseline"
Connected = Callable[[], Awaitable[bool]]


async def due_jobs(
    base: Base,
    conversation: Conversation,
    engine: Engine,
    workspaces: Workspaces,
    surface: AnswerSurface,
    alerts: Alerting,
    *,
    connected: Connected | None,
    times: Times,
    stack: AsyncExitStack,
) -> Mapping[str, Job]:
    """Every scheduled job of this replica. Raises ConfigurationError.

    `connected` is None if Slack connects to us.
    """
    stores, display, tick_s = base.stores, conversation.display, times.tick_s
    became, kept, served = base.metrics.proposal_became, _kept_for(base.settings), workspaces.all
    stranded = StrandedProposals(stores.database).find
    levels = LevelsLook(base, workspaces.home.access, connected)

    async def tell_of_budget() -> None:
        for each in served():
            await _budget_alert(base, each).run()

    async def probe() -> None:
        await asyncio.gather(*(each.access.probe(times.probe_s) for each in served()))

    return {
        "freeze": Job(tick_s, base.freezes.switch.sync),
        "origin": Job(tick_s, stores.restore_guard.note),
        "idle sessions": Job(IDLE_S, stores.sessions.close_idle),
        "stranded": Job(
            STRANDED_S, StrandedSweep(stranded, stores.proposals, display, on_state=became).run
        ),
        "retention": Job(SWEEP_S, RetentionSweep(StoredRetention(stores.database), kept).run),
        "records": Job(RECORDS_S, RecordsSweep(forget_ended, kept).run),
        "workspaces": Job(tick_s, workspaces.sync),
        "probe": Job(tick_s, probe),
        "budget alert": Job(tick_s, tell_of_budget),
        "holds": Job(IDLE_S, stores.ledger.forget_dead),
        "levels": Job(LEVELS_S, levels.run),
        **await _feed_jobs(base, stack),
        "cards": Job(tick_s, CardSweep(stores.cards, display).run),
        "expiry": Job(tick_s, ExpirySweep(stores.proposals, engine).run),
        "watches": Job(tick_s, _watch_sweep(base, conversation).run),
        "alerts": Job(tick_s, alerts.show),
        "delivery": Job(tick_s, _redelivery(base, served, surface).run),
        "threads": Job(tick_s, engine.look_after_threads),
    }


def _kept_for(settings: Settings) -> RetentionPeriods:
    days, nothing = settings.retention, settings.llm.privacy.do_not_retain_default
    return RetentionPeriods(days.messages_days, days.results_days, nothing)


def _budget_alert(base: Base, workspace: SlackWorkspace) -> BudgetAlert:
    stores, tenant = base.stores, workspace.tenant
    own = stores.ledger if tenant == HOME else StoredLedger(stores.database, tenant)
    days, audit = StoredAlertDays(stores.database), audit_of(stores.audit, tenant)
    limits, tell = limits_of(base, tenant), workspace.admins.tell
    return BudgetAlert(own, days, audit, limits, tell, tenant)


def _redelivery(
    base: Base, served: Callable[[], Sequence[SlackWorkspace]], surface: AnswerSurface
) -> Redelivery:
    """Active while any of `served` is open: home and the workspaces open beside it."""

    async def tell(team: TeamId, text: str) -> int:
        tenant = base.live_config.tenant_of(team)
        found = [each for each in served() if each.tenant == tenant]
        return await found[0].admins.tell(text) if found else 0

    stores = base.stores
    delivery = Delivery(surface, stores.sessions, stores.undelivered, stores.proposals.of_session)
    return Redelivery(
        delivery, stores.audit, tell, lambda: any(each.access.is_open for each in served())
    )


async def _feed_jobs(base: Base, stack: AsyncExitStack) -> Mapping[str, Job]:
    feeds = await asyncio.to_thread(make_feeds, base.settings, base.cluster, stack)
    return {
        f"deploys.{name}": Job(TICK_S, _round(base, name, of).run) for name, of in feeds.items()
    }


def _round(base: Base, table: str, feeds: Mapping[str, DeployFeed]) -> FeedRound:
    every_s = base.settings.deploys[table].every.total_seconds()
    events, states = base.stores.events, base.stores.deploys.feeds
    return FeedRound(
        [
            FeedSweep(f"{table}, {name}", feed, events, base.clock, every_s, states)
            for name, feed in feeds.items()
        ]
    )


def _watch_sweep(base: Base, conversation: Conversation) -> WatchSweep:
    display = conversation.display

    async def context(row: Proposal) -> CallContext:
        channel = await conversation.channel_now(row.place)
        roles = await conversation.roles_of(row.place, row.asked_by)
        return rollback_context(row, channel, roles.held, base.clock)

    async def measure(row: Proposal, metric: str, time_range: str) -> Deviation | None:
        arguments = {"product": row.product, "metric_name": metric, "time_range": time_range}
        call = ToolCall(f"effect:{row.id}", COMPARE, orjson.dumps(arguments).decode())
        outcome = await conversation.tools.run(
            call, await context(row), lambda _event: None, Signal()
        )
        found = compared(outcome.content, outcome.summary) if outcome.record.ok else None
        charts = charts_of(Evidence.of(0, outcome), outcome.record.arguments)
        return found and replace(found, chart=charts[0] if charts else None)

    async def propose(row: Proposal, draft: ProposalDraft) -> ProposalReceipt:
        venue = ProposalScope(row.place, await conversation.channel_now(row.place))
        return await conversation.proposal_intake.propose_at(draft, await context(row), venue)

    effect = EffectCheck(base.actions, measure, propose, display, base.stores.audit, base.clock)
    return WatchSweep(
        base.stores.watches,
        base.stores.proposals,
        base.actions,
        conversation.executors,
        display,
        base.redactor,
        effect,
        on_state=base.metrics.proposal_became,
    )


class LevelsLook:
    """Sets every level in one look; a failure leaves only its own level unset."""

    def __init__(self, base: Base, access: WatchedCalls, connected: Connected | None) -> None:
        self._base = base
        self._access = access
        self._connected = connected
        self._levels = Levels(base.metrics.registry)
        self._stored = StoredLevels(base.stores.database)
        self._providers = providers_report(base)
        self._sinks = sinks_of(base.settings.audit)

    async def run(self) -> None:
        """Look once. Raises nothing of the database's."""
        told = await self._providers()
        self._levels.providers({each.name: each.available for each in told if each.turn})
        self._levels.slack_refused(not self._access.is_open)
        if self._connected is not None:
            await self._look_at_connection(self._connected)
        try:
            async with asyncio.timeout(LOOK_S):
                await self._look_at_database()
        except (StorageUnavailable, TimeoutError):
            self._levels.database_lost()

    async def _look_at_connection(self, connected: Connected) -> None:
        try:
            async with asyncio.timeout(LOOK_S):
                self._levels.slack_connected(await connected())
        except TimeoutError:
            self._levels.slack_connection_lost()

    async def _look_at_database(self) -> None:
        begun = time.monotonic()
        await self._stored.touch()
        took_s = time.monotonic() - begun
        limit = rules.budget_limits(self._base.settings).daily_usd_micros
        today = await self._base.stores.ledger.today()
        self._levels.budget_used(today.used_usd_micros / limit if limit else 0.0)
        for sink, behind in (await self._stored.behind(self._sinks)).items():
            self._levels.audit_behind(sink, behind.rows, behind.seconds)
        self._levels.proposals_stuck(await self._stored.stuck_s())
        self._levels.database_answered(took_s)
