"""`kortex check` on the database, the audit log and the places where its events go.

No event is written anywhere.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import sqlalchemy as sa

from adapters.errors import AdapterError
from adapters.fault import Fault, fault_of
from bot.app import rules
from bot.app.audit import audit_http, audit_nats, outside_checkpoints, sinks_behind
from bot.app.stores import open_stores
from bot.audit.verify import Summary
from bot.cli.check import time_budget
from bot.cli.check.backends import reached
from bot.cli.check.installation import InstallationProbe
from bot.cli.check.slack import postable, slack_calls
from bot.cli.check.time_budget import probed
from bot.ports.failures import StorageUnavailable
from bot.reports.finding import Finding
from bot.settings.model import AuditSettings, Settings
from bot.settings.reading import ConfigurationError
from bot.store import schema
from bot.store.address import POSTGRESQL, addressed, is_behind_pgbouncer
from bot.store.audit_reading import StoredAuditReader, verify
from bot.store.database import Database
from bot.store.engines import CONNECT_TIMEOUT_S

_MEND_BEHIND = (
    "Nothing is lost: `kortex run` delivers these rows. If the number does not fall while it runs, "
    "see docs/runbook.md#audit-sink-behind."
)

# What PostgreSQL answers who wants to come in, in words: libpq has no codes there.
_REFUSALS: Final = (
    ("authentication failed", Fault.CREDENTIAL),
    ("role ", Fault.CREDENTIAL),
    ("does not exist", Fault.ABSENT),
)


async def check_database(settings: Settings) -> Sequence[Finding]:
    """Whether it serves, and sinks of the audit log that are behind. An embedded one is brought to its schema."""
    try:
        async with (
            asyncio.timeout(time_budget.within(time_budget.SHARED_S)),
            AsyncExitStack() as stack,
        ):
            await _is_there(settings.database.url.get_secret_value())
            database = (await open_stores(settings, stack)).database
            at = await schema.schema_state(database)
            behind = await check_behind(settings, database)
            pooler = await check_pooler(settings.database.url.get_secret_value(), database)
    except TimeoutError:
        return [time_budget.silent("database", time_budget.SHARED_S)]
    except (ConfigurationError, StorageUnavailable) as error:
        mend = next((mend for words, mend in _MEND_POOLER.items() if words in str(error)), "")
        fault = fault_of(error) or _said(error)
        return [Finding("database", False, str(error), mend=mend, fault=fault)]
    newer = f"schema {at.revision}, expanded by a newer version and compatible with this one"
    said = "schema current" if at.revision == at.newest else newer
    return [Finding("database", True, f"{database.dialect}, {said}"), *pooler, *behind]


async def _is_there(url: str) -> None:
    """Try to connect once, so that the error names its reason. Raises StorageUnavailable."""
    if addressed(url).drivername != POSTGRESQL:
        return
    database = await Database.open(url, patience_s=())
    try:
        await database.ping()
    except StorageUnavailable as error:
        raise error from await _why(addressed(url))
    finally:
        await database.close()


async def _why(address: sa.URL) -> OSError | None:
    """The error of a plain connection; libpq has error texts only."""
    if not address.host:
        return None
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT_S):
            _, writer = await asyncio.open_connection(address.host, address.port or 5432)
    except OSError as error:
        return error
    writer.close()
    return None


def _said(error: Exception) -> Fault | None:
    return next((fault for words, fault in _REFUSALS if words in str(error)), None)


async def check_audit(settings: Settings, *, readable: bool = True) -> Finding:
    """The key, and whether all that was written so far holds, where the database is `readable`."""
    keys = rules.audit_keys(settings)
    if not keys.keyed:
        weak = "no [audit] key: anyone who can write to the database can forge the audit log"
        return Finding("audit", False, weak, configured=False)
    detail = f"sealed with key {settings.audit.key_id!r}"
    if not readable:
        words = f"{detail}; the audit log cannot be read without the database"
        return Finding("audit", False, words, mend="Fix the database first.")
    try:
        found = await verified(settings)
    except (ConfigurationError, StorageUnavailable) as error:
        words = f"{detail}; the audit log could not be read: {error}"
        return Finding("audit", False, words, mend="Fix the database first.")
    if found is None:
        return Finding("audit", True, f"{detail}; the audit log is empty")
    if found.bad is not None:
        what = f"the audit log is not valid at row {found.bad.seq}: {found.bad.reason}"
        return Finding("audit", False, f"{what}; see `kortex audit verify`")
    return Finding("audit", True, f"{detail}; {found.rows} rows, all valid")


async def check_outlets(asked: InstallationProbe) -> Sequence[Finding]:
    settings = asked.of.settings
    audit = settings.audit
    part, questions = "audit checkpoints", []
    if url := audit.checkpoint_url:
        ask = partial(reached, audit.checkpoint_route, url, "audit.checkpoint_url")
        questions.append(probed(part, ask))
    if audit.checkpoint_file:
        questions.append(asyncio.to_thread(_file, Path(audit.checkpoint_file)))
    sinks, channels, others = await asyncio.gather(
        check_sinks(settings, time_budget.within(time_budget.PROBE_S)),
        _channels(asked),
        asyncio.gather(*questions),
    )
    return [*sinks, *channels, *others]


def _file(path: Path) -> Finding:
    there = path if path.exists() else path.parent
    if not os.access(there, os.W_OK) or path.is_dir():
        words = f"{path} cannot be written by this user"
        mend = "Let this user write there, or set another [audit] checkpoint_file."
        return Finding("audit checkpoints", False, words, mend=mend)
    return Finding("audit checkpoints", True, f"appended to {path}")


async def _channels(asked: InstallationProbe) -> Sequence[Finding]:
    settings = asked.of.settings
    if not settings.audit.checkpoint_channel or (await asked.slack())[1] is None:
        return []
    async with slack_calls(settings) as api:
        name = await postable("audit checkpoints", settings.audit.checkpoint_channel, api)
    if isinstance(name, Finding):
        return [name]
    return [Finding("audit checkpoints", True, f"posted in #{name}")]


if TYPE_CHECKING:
    import psycopg

# The limit of the role, regardless of this transaction.
_IDLE_LIMIT: Final = sa.text(
    "SELECT reset_val FROM pg_settings WHERE name = 'idle_in_transaction_session_timeout'"
)
SET_PGBOUNCER: Final = (
    "add pgbouncer=true behind the ? of [database] url, or connect to PostgreSQL itself"
)
_MEND_POOLER: Final = {
    "startup parameter": SET_PGBOUNCER,
    "statement pooling mode": "set pool_mode = transaction in PgBouncer",
}
_SET_LIMIT: Final = "run ALTER ROLE … SET idle_in_transaction_session_timeout = '6s' in PostgreSQL"


async def check_pooler(url: str, database: Database) -> Sequence[Finding]:
    """Nothing without a pooler. PgBouncer gives its clients another process number than the server's."""
    if database.dialect == "sqlite":
        return ()
    async with database.read() as connection:
        raw = await connection.get_raw_connection()
        told = cast("psycopg.AsyncConnection[Any]", raw.driver_connection).info.backend_pid
        server = await connection.scalar(sa.select(sa.func.pg_backend_pid()))
        limit = await connection.scalar(_IDLE_LIMIT)
    if told == server:
        return ()
    if not is_behind_pgbouncer(url):
        said = "there is a connection pooler; in its transaction mode, concurrent questions fail"
        return [Finding("pgbouncer", False, said, warning=True, mend=SET_PGBOUNCER)]
    if limit == "0":
        said = "the database role has no idle limit, so a frozen replica keeps its locks"
        return [Finding("pgbouncer", False, said, warning=True, mend=_SET_LIMIT)]
    return [Finding("pgbouncer", True, "behind pgbouncer, in transaction mode")]


async def verified(settings: Settings) -> Summary | None:
    """The whole audit log, as `kortex audit verify` reads it; nothing for a database without tables.

    Raises ConfigurationError, StorageUnavailable.
    """
    keys = rules.audit_keys(settings)
    try:
        database = await Database.open(settings.database.url.get_secret_value())
    except ValueError as error:
        raise ConfigurationError(f"database.url: {error}") from error
    try:
        if await database.schema_head() is None:
            return None
        witnesses = await asyncio.to_thread(outside_checkpoints, settings)
        return await verify(StoredAuditReader(database), keys, witnesses)
    finally:
        await database.close()


async def check_behind(settings: Settings, database: Database) -> list[Finding]:
    """A warning for each sink that is stalled or far behind. Raises StorageUnavailable."""
    return [
        Finding("audit events", False, words, warning=True, mend=_MEND_BEHIND)
        for words in await sinks_behind(settings, database)
    ]


async def check_sinks(settings: Settings, within_s: float) -> list[Finding]:
    """Whether each sink that is configured lets this process in, all at once. No row is sent."""
    audit, asked = settings.audit, []
    if audit.events_url:
        where = f"to {urlsplit(audit.events_url).hostname}, tried with no event"
        asked.append(_sink(where, partial(_http_in, audit), within_s))
    if audit.events_nats:
        where = f"to {audit.events_nats}, on {audit.events_nats_subject}"
        asked.append(_sink(where, partial(_nats_in, audit), within_s))
    return await asyncio.gather(*asked)


async def _sink(where: str, ask: Callable[[], Awaitable[None]], within_s: float) -> Finding:
    try:
        async with asyncio.timeout(within_s):
            await ask()
    except TimeoutError:
        words = f"{where}: no answer within {within_s:g} s"
        return Finding("audit events", False, words, fault=Fault.SILENT)
    except (ConfigurationError, AdapterError) as error:
        return Finding("audit events", False, str(error), fault=fault_of(error))
    return Finding("audit events", True, where)


async def _http_in(audit: AuditSettings) -> None:
    http = await asyncio.to_thread(audit_http, "audit.events", audit.events_url, audit.events_route)
    try:
        await http.send_events([])
    finally:
        await http.aclose()


async def _nats_in(audit: AuditSettings) -> None:
    await audit_nats(audit).reach()
