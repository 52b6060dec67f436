"""From settings to the repositories over one database, and the redactor that every one of them writes through."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from bot.actions.catalog import ActionCatalog
from bot.actions.freeze import FreezeJudge
from bot.app import rules
from bot.app.audit import check_audit_log
from bot.app.operator_tools import plugin_secrets
from bot.app.providers import installation_key
from bot.domain.freeze import FreezeWindow
from bot.privacy.redactor import Remember, TextRedactor
from bot.privacy.token_seal import SealUnavailable, TokenSeal
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store import schema
from bot.store.alerts import StoredAlerts
from bot.store.audit import StoredAudit
from bot.store.audit_reading import StoredAuditReader
from bot.store.callers import StoredCallers
from bot.store.channel_names import StoredNames
from bot.store.chats import StoredChats
from bot.store.database import Database
from bot.store.feedback import StoredFeedback
from bot.store.incidents import StoredIncidents
from bot.store.ingested_events import StoredDeploys, StoredEvents
from bot.store.installations import StoredInstallations
from bot.store.kill_switch import StoredKillSwitch
from bot.store.ledger import StoredLedger
from bot.store.proposal_rows import StoredCards
from bot.store.proposals import StoredProposals
from bot.store.restore_guard import RestoreGuard, mark_of
from bot.store.sealing import Sealing
from bot.store.sessions import StoredSessions
from bot.store.undelivered import StoredUndelivered
from bot.store.watches import StoredWatches


@dataclass(frozen=True, slots=True)
class Stores:
    database: Database
    sessions: StoredSessions
    names: StoredNames
    proposals: StoredProposals
    cards: StoredCards
    undelivered: StoredUndelivered
    watches: StoredWatches
    alerts: StoredAlerts
    audit: StoredAudit
    audit_reader: StoredAuditReader
    ledger: StoredLedger
    events: StoredEvents
    deploys: StoredDeploys
    incidents: StoredIncidents
    feedback: StoredFeedback
    callers: StoredCallers
    restore_guard: RestoreGuard
    chats: StoredChats


async def open_stores(settings: Settings, stack: AsyncExitStack) -> Stores:
    """Open the database; the embedded SQLite default migrates itself.

    Raises ConfigurationError for an invalid URL or an old schema, StorageUnavailable.
    """
    url = settings.database.url.get_secret_value()
    try:
        embedded = sa.make_url(url).drivername.startswith("sqlite")
        if embedded:
            await schema.migrate(url)
        elif problem := (await schema.schema_state_of(url)).problem:
            raise ConfigurationError(f"database.url: {problem}")
        redactor = await asyncio.to_thread(open_redactor, settings)  # reads the plugins' folder
        sealing = Sealing(rules.audit_keys(settings), redactor)
        database = await Database.open(url, sealing=sealing)
    except (ValueError, sa.exc.ArgumentError, schema.SchemaUnserved) as error:
        raise ConfigurationError(f"database.url: {error}") from error
    stack.push_async_callback(database.close)
    guard = open_restore_guard(settings, database)
    stack.push_async_callback(guard.note)
    audit_reader = StoredAuditReader(database)
    await check_audit_log(settings, audit_reader, sealing.keys)
    retain = not settings.llm.privacy.do_not_retain_default
    return Stores(
        database=database,
        sessions=StoredSessions(database, settings.llm.session_idle_ttl, retain=retain),
        names=StoredNames(database),
        proposals=StoredProposals(database, guard.mark),
        cards=StoredCards(database),
        undelivered=StoredUndelivered(database),
        watches=StoredWatches(database),
        alerts=StoredAlerts(database),
        audit=StoredAudit(database),
        audit_reader=audit_reader,
        ledger=StoredLedger(database),
        events=StoredEvents(database),
        deploys=StoredDeploys(database),
        incidents=StoredIncidents(database),
        feedback=StoredFeedback(database, retain=retain),
        callers=StoredCallers(database),
        restore_guard=guard,
        chats=StoredChats(database),
    )


def open_restore_guard(settings: Settings, database: Database) -> RestoreGuard:
    file = rules.sqlite_file(settings)
    return RestoreGuard(database, mark_of(file) if file else None)


def open_redactor(settings: Settings, remember: Remember | None = None) -> TextRedactor:
    """The one redactor of every sink: providers, Slack, logs, rows."""
    return TextRedactor(
        settings.secrets() | plugin_secrets(settings),
        installation_key(settings),
        pii=settings.llm.privacy.redact_pii,
        remember=remember,
        known={name for channel in settings.channels for name in channel.products},
    )


async def open_installations(settings: Settings, database: Database) -> StoredInstallations | None:
    """None without `[slack] client_id`. What an older key sealed is sealed by the first one.

    Raises ConfigurationError without the extra, StorageUnavailable.
    """
    if not settings.slack.client_id:
        return None
    try:
        seal = TokenSeal(settings.slack.seal_keys)
    except SealUnavailable as error:
        raise ConfigurationError(f"slack.client_id: {error}") from error
    installations = StoredInstallations(database, seal)
    await installations.reseal()
    return installations


async def open_freezes(
    database: Database, actions: ActionCatalog, marker: Path | None, windows: Sequence[FreezeWindow]
) -> FreezeJudge:
    """The kill switch and the windows; a freeze that an earlier process could not store holds."""
    switch = StoredKillSwitch(database, marker)
    await switch.sync()
    return FreezeJudge(switch, actions, windows)
