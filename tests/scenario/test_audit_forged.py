"""A database writer without a key: verify, check and a restart all notice any change."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from pydantic import SecretStr

from bot.app.stores import open_stores
from bot.audit.chain import AuditKeys, ChainRow
from bot.audit.checkpoint import sign
from bot.cli.check.storage import check_audit, verified
from bot.domain.audit import AuditEvent, AuditKind
from bot.settings.database import DatabaseSettings
from bot.settings.model import AuditSettings, Settings
from bot.settings.reading import ConfigurationError
from bot.store.audit import StoredAudit
from bot.store.audit_by_hand import erase, seal
from bot.store.audit_reading import StoredAuditReader, verify, verify_end
from bot.store.database import Database
from bot.store.schema import migrate
from bot.store.sealing import Sealing
from tests.fixtures_audit import verdict
from tests.fixtures_forgery import COLUMNS, FORGERIES, GUARDS, Forgery

KEY = "the audit key of this test, long enough"
KEYS = AuditKeys("1", {"1": KEY.encode()})
A_SESSION = (
    "INSERT INTO sessions (id, team, channel, thread_ts, name, created_at, active_at) "
    "VALUES ('session:1', 'T', 'C', '1.0', 'incident', {at}, {at})"
)


FOR_ALL = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
MANY, FEW = settings(FOR_ALL, max_examples=400), settings(FOR_ALL, max_examples=15)


pytestmark = pytest.mark.may_block_the_loop


class AuditFile:
    """A database file with a whole audit log, and its rows as they were before the erasure."""

    def __init__(self, file: bytes, rows: list[ChainRow], earlier: list[ChainRow]) -> None:
        self.file = file
        self.rows = rows
        self.earlier = earlier


@pytest.fixture(scope="module")
def audit_log(tmp_path_factory: pytest.TempPathFactory) -> AuditFile:
    """Written by the product's own parts."""
    file = tmp_path_factory.mktemp("audit_log") / "kortex.db"
    rows, earlier = asyncio.run(_write(f"sqlite+aiosqlite:///{file}"))
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    return AuditFile(file.read_bytes(), rows, earlier)


async def _write(url: str) -> tuple[list[ChainRow], list[ChainRow]]:
    await migrate(url)
    without = await Database.open(url)
    await _events(without, 4)
    await without.close()
    database = await Database.open(url, sealing=Sealing(KEYS))
    kept = StoredAuditReader(database)
    await seal(database, await verify(kept, KEYS), by="cli:root", reason="there was no key")
    await _events(database, 16)
    earlier = [row._replace(tip=None) for row in await kept.last_rows(100)]
    await erase(database, by="cli:root", reason="asked for", person="U1")
    await _events(database, 2)
    newest = await kept.newest()
    assert newest is not None
    await kept.keep_checkpoint(sign(KEYS, newest.seq, newest.mac, await database.now()))
    rows = list(await kept.last_rows(100))
    await database.close()
    return rows, earlier


async def _events(database: Database, count: int) -> None:
    for n in range(count):
        event = AuditEvent(AuditKind.TOOL_CALL, f"U{n % 3}", {"n": n}, "session:1")
        await StoredAudit(database).append(event)


def _forge(file: Path, forgeries: Sequence[Forgery], earlier: list[ChainRow]) -> bool:
    """Whether the rows are other ones now."""
    connection = sqlite3.connect(file)
    for trigger in GUARDS:
        connection.execute(f"DROP TRIGGER {trigger}")
    selected = f"SELECT {', '.join(COLUMNS)} FROM audit ORDER BY seq"  # noqa: S608 - our own names
    before = [ChainRow._make(row) for row in connection.execute(selected)]
    rows = before
    for each in forgeries:
        rows = each.do(rows, earlier)
    connection.execute("DELETE FROM audit")
    connection.execute("DELETE FROM audit_checkpoints")
    places = ", ".join("?" * len(COLUMNS))
    connection.executemany(
        f"INSERT OR IGNORE INTO audit ({', '.join(COLUMNS)}) VALUES ({places})",  # noqa: S608
        rows,
    )
    after = [ChainRow._make(row) for row in connection.execute(selected)]
    connection.execute(A_SESSION.format(at=before[0].at_us))
    connection.commit()
    connection.close()
    return after != before


def _settings(file: Path) -> Settings:
    return Settings(
        database=DatabaseSettings(url=SecretStr(f"sqlite+aiosqlite:///{file}")),
        audit=AuditSettings(key=SecretStr(KEY)),
    )


async def _refusal(chosen: Settings) -> str:
    """What a start says."""
    async with AsyncExitStack() as stack:
        try:
            await open_stores(chosen, stack)
        except ConfigurationError as error:
            return str(error)
    return "started"


def test_an_untouched_audit_log_is_continued(audit_log: AuditFile, tmp_path: Path) -> None:
    file = tmp_path / "kortex.db"
    file.write_bytes(audit_log.file)
    found = asyncio.run(verified(_settings(file)))
    assert found is not None
    assert (found.bad, found.sealed, found.rows) == (None, 4, 24)
    assert asyncio.run(check_audit(_settings(file))).ok
    assert asyncio.run(_refusal(_settings(file))) == "started"


@MANY
@given(forgeries=FORGERIES)
def test_a_log_forged_without_the_key_does_not_verify(
    audit_log: AuditFile, forgeries: list[Forgery]
) -> None:
    rows = audit_log.rows
    for each in forgeries:
        rows = each.do(rows, audit_log.earlier)
    assume(rows and rows != audit_log.rows)
    assert verdict(rows, KEYS).bad is not None


@FEW
@given(forgeries=FORGERIES)
def test_a_log_forged_without_the_key_fails_check_and_start(
    audit_log: AuditFile, tmp_path: Path, forgeries: list[Forgery]
) -> None:
    file = tmp_path / "kortex.db"
    file.write_bytes(audit_log.file)
    assume(_forge(file, forgeries, audit_log.earlier))
    chosen = _settings(file)
    finding = asyncio.run(check_audit(chosen))
    assert (finding.ok, "is not valid at row" in finding.detail) == (False, True)
    assert asyncio.run(_refusal(chosen)).startswith("audit: the audit log is not valid at row")


@pytest.mark.parametrize("tip", ["", "0" * 64, "tip"])
def test_moving_the_tip_to_the_last_sealed_row_is_noticed(audit_log: AuditFile, tip: str) -> None:
    rows = [row._replace(tip=tip) if row.seq == 4 else row for row in audit_log.rows]
    assert verdict(rows, KEYS).bad is not None


def test_emptying_the_audit_log_is_noticed(audit_log: AuditFile, tmp_path: Path) -> None:
    file = tmp_path / "kortex.db"
    file.write_bytes(audit_log.file)
    _forge(file, [Forgery("all gone", lambda _rows, _earlier: [])], [])
    assert "the audit log is empty" in asyncio.run(check_audit(_settings(file))).detail
    assert "the audit log is empty" in asyncio.run(_refusal(_settings(file)))


def test_the_start_verifies_the_end_of_a_long_audit_log(
    audit_log: AuditFile, tmp_path: Path
) -> None:
    file = tmp_path / "kortex.db"
    file.write_bytes(audit_log.file)
    _forge(file, [Forgery("its middle", lambda rows, _: [*rows[:7], *rows[8:]])], [])

    async def verdicts() -> list[bool]:
        database = await Database.open(f"sqlite+aiosqlite:///{file}")
        audit_log = StoredAuditReader(database)
        found = [(await verify_end(audit_log, KEYS, rows=rows)).bad is None for rows in (10, 100)]
        await database.close()
        return found

    assert asyncio.run(verdicts()) == [True, False]
