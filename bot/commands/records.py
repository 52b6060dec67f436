"""What `kortex records` does: export or delete all that is kept of a session or a person."""

import getpass
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import orjson
from pydantic import JsonValue

from bot.commands.as_it_is import opened
from bot.commands.ending import OK
from bot.commands.verbs import guarded, loaded
from bot.domain.audit import AuditEvent, AuditKind
from bot.engine.records import EngineRecords
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from bot.store.audit import StoredAudit
from bot.store.audit_by_hand import erase
from bot.store.audit_reading import StoredTrail
from bot.store.database import Database
from bot.store.person import UnknownWorkspace
from bot.store.subject import StillOpen, Subject, SubjectRecords
from bot.wiring import rules

PAGE_ROWS = 1_000


def export(config: Path, session: str, person: str) -> int:
    """`kortex records export`: one JSON object a line, on standard output."""
    subject = Subject(session, person)

    async def work(settings: Settings) -> int:
        async with AsyncExitStack() as stack:
            database = await opened(settings, stack)
            records = SubjectRecords(database, subject)
            await _check_workspace(records)
            body: dict[str, JsonValue] = {"of": subject.kind, "id": session or person}
            await _on_record(database, AuditKind.RECORDS_EXPORTED, body)
            async for row in records.rows():
                _print(row)
            await _export_trail(StoredTrail(database), records)
        return OK

    return guarded(lambda: work(loaded(config)))


def delete(config: Path, session: str, person: str, reason: str) -> int:
    """`kortex records delete`: rows go, content of the trail is erased, and the chain stays."""
    subject = Subject(session, person)

    async def work(settings: Settings) -> int:
        async with AsyncExitStack() as stack:
            database = await opened(settings, stack)
            url = settings.database.url.get_secret_value()
            engine = EngineRecords(rules.engine_database(url))
            records = SubjectRecords(database, subject)
            await _check_workspace(records)
            try:
                await records.check_closed()
            except StillOpen as error:
                raise ConfigurationError(f"{error}. Nothing was deleted") from error
            # A person's id would be kept by the row that says it was deleted.
            body: dict[str, JsonValue] = {"of": subject.kind, "id": session, "reason": reason}
            await _on_record(database, AuditKind.RECORDS_DELETED, body)
            # First: found by rows that are deleted next.
            names = frozenset(await records.names())
            user, others = await records.user()
            workflows = await engine.delete(await engine.naming(names, user, others))
            erased = await erase(
                database, by=_operator(), reason=reason, person=person, session=session, named=True
            )
            rows = await records.delete()
        print(
            f"deleted {rows} rows and {workflows} records of the engine, and erased the content of "
            f"{erased} rows of the trail, whose chain stays. Copies elsewhere (backups, logs, "
            "events, the chat itself) are yours to delete."
        )
        return OK

    return guarded(lambda: work(loaded(config)))


async def _check_workspace(records: SubjectRecords) -> None:
    try:
        await records.check_workspace()
    except UnknownWorkspace as error:
        raise ConfigurationError(f"{error}. Nothing was done") from error


async def _export_trail(trail: StoredTrail, records: SubjectRecords) -> None:
    after = 0
    while page := await trail.entries(after=after, of=records.trail, limit=PAGE_ROWS):
        for entry in page:
            _print({"table": "audit", **entry.as_json()})
        after = page[-1].seq


async def _on_record(database: Database, kind: AuditKind, body: dict[str, JsonValue]) -> None:
    await StoredAudit(database).append(AuditEvent(kind, _operator(), body))


def _operator() -> str:
    return f"cli:{getpass.getuser()}"


def _print(row: dict[str, JsonValue]) -> None:
    sys.stdout.write(orjson.dumps(row).decode() + "\n")
