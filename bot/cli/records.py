"""`kortex records`: export or delete all data of one session or one person."""

from contextlib import AsyncExitStack

import click
from pydantic import JsonValue

from bot.app import rules
from bot.cli.database import opened
from bot.cli.display import print_json_line
from bot.cli.exit_codes import OK
from bot.cli.invocation import configured, operator
from bot.cli.options import exactly_one, person_option, reason_option, session_option
from bot.domain.audit import AuditEvent, AuditKind
from bot.engine.records import EngineRecords
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.address import is_behind_pgbouncer
from bot.store.audit import StoredAudit
from bot.store.audit_by_hand import erase
from bot.store.audit_reading import StoredAuditReader
from bot.store.data_export import StillOpen, Subject, SubjectRecords
from bot.store.database import Database
from bot.store.person import UnknownWorkspace

PAGE_ROWS = 1_000


@click.group()
def records() -> None:
    """Export or delete all data of one session or person."""


@records.command()
@session_option
@person_option
@configured
async def export(settings: Settings, session: str, person: str) -> int:
    """Print all data of one session or person, one JSON object a line."""
    exactly_one(session=session, person=person)
    subject = Subject(session, person)
    async with AsyncExitStack() as stack:
        database = await opened(settings, stack)
        found = SubjectRecords(database, subject)
        await _check_workspace(found)
        body: dict[str, JsonValue] = {"of": subject.kind, "id": session or person}
        await _on_record(database, AuditKind.RECORDS_EXPORTED, body)
        async for row in found.rows():
            print_json_line(row)
        await _export_audit_rows(StoredAuditReader(database), found)
    return OK


@records.command()
@session_option
@person_option
@reason_option
@configured
async def delete(settings: Settings, session: str, person: str, reason: str) -> int:
    """Delete all data of one session or person, and the content of their audit rows."""
    exactly_one(session=session, person=person)
    subject = Subject(session, person)
    async with AsyncExitStack() as stack:
        database = await opened(settings, stack)
        url = settings.database.url.get_secret_value()
        engine = EngineRecords(rules.engine_database(url), pgbouncer=is_behind_pgbouncer(url))
        found = SubjectRecords(database, subject)
        await _check_workspace(found)
        try:
            await found.check_closed()
        except StillOpen as error:
            raise ConfigurationError(f"{error}. Nothing was deleted") from error
        # A person's id would be kept by the row that says it was deleted.
        body: dict[str, JsonValue] = {"of": subject.kind, "id": session, "reason": reason}
        await _on_record(database, AuditKind.RECORDS_DELETED, body)
        # First: found by rows that are deleted next.
        names = frozenset(await found.names())
        user, others = await found.user()
        workflows = await engine.delete(await engine.naming(names, user, others))
        erased = await erase(
            database, by=operator(), reason=reason, person=person, session=session, named=True
        )
        rows = await found.delete()
    print(
        f"deleted {rows} rows and {workflows} records of the engine, and erased the content of "
        f"{erased} rows of the audit log. The chain stays valid. Delete copies elsewhere "
        f"yourself (backups, logs, events, the chat)."
    )
    return OK


async def _check_workspace(found: SubjectRecords) -> None:
    try:
        await found.check_workspace()
    except UnknownWorkspace as error:
        raise ConfigurationError(f"{error}. Nothing was done") from error


async def _export_audit_rows(audit_log: StoredAuditReader, found: SubjectRecords) -> None:
    after = 0
    while page := await audit_log.entries(after=after, of=found.audit_rows, limit=PAGE_ROWS):
        for entry in page:
            print_json_line({"table": "audit", **entry.as_json()})
        after = page[-1].seq


async def _on_record(database: Database, kind: AuditKind, body: dict[str, JsonValue]) -> None:
    await StoredAudit(database).append(AuditEvent(kind, operator(), body))
