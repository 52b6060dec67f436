"""Callers over HTTP on both databases: the rights of a token, their duration and their owner."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.domain.audit import AuditKind
from bot.domain.callers import CallerKind, KnownCaller, caller_id
from bot.domain.ids import API, Person, TeamId, UserId
from bot.store.access_tables import caller_tokens, callers
from bot.store.audit_reading import StoredAuditReader
from bot.store.callers import CallerDiffers, StoredCallers
from bot.store.database import Database
from tests.fixtures_database import new_database
from tests.held_connection import reading, writing

ALICE = KnownCaller(
    caller_id(CallerKind.PERSON, "alice"), CallerKind.PERSON, "alice", frozenset({"responder"})
)


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    async with new_database(request.param, tmp_path) as url:
        opened = await Database.open(url)
        yield opened
        await opened.close()


async def _end(database: Database, table: sa.Table, column: str) -> None:
    async with writing(database) as connection:
        past = await database.now() - timedelta(seconds=1)
        await connection.execute(table.update().values({column: past}))


async def test_a_token_belongs_to_its_caller_until_it_is_revoked(database: Database) -> None:
    stored, elsewhere = StoredCallers(database), StoredCallers(database)
    made = await stored.create(ALICE, None, "cli:op")

    shown = await elsewhere.shown(made.token)
    assert shown is not None
    assert (shown.id, shown.caller) == (made.id, ALICE)
    (entry,) = await stored.tokens()
    assert entry.is_live
    assert entry.last_used_at is not None
    assert await elsewhere.known(ALICE.user) == ALICE

    assert await stored.revoke(made.id, "cli:op")
    assert await elsewhere.shown(made.token) is None
    assert await elsewhere.known(ALICE.user) is None
    assert await elsewhere.name(ALICE.user) == "alice"
    assert not await stored.revoke(made.id, "cli:op")
    kinds = [entry.kind for entry in await StoredAuditReader(database).entries()]
    assert kinds == [AuditKind.CALLER_ADMITTED, AuditKind.CALLER_REVOKED]


async def test_neither_the_database_nor_the_audit_log_contains_a_token(database: Database) -> None:
    stored = StoredCallers(database)
    made = await stored.create(ALICE, timedelta(hours=1), "cli:op")

    async with reading(database) as connection:
        rows = [tuple(row) for row in await connection.execute(sa.select(caller_tokens))]
    told = f"{rows} {await StoredAuditReader(database).entries()}"
    assert made.token not in told
    assert made.token.removeprefix("kortex_") not in told
    assert made.id in told


@pytest.mark.parametrize("guess", ["", "kortex_", "\ud800", "x" * 100_000, "{made}x", "'"])
async def test_an_invalid_token_belongs_to_no_caller(database: Database, guess: str) -> None:
    stored = StoredCallers(database)
    made = await stored.create(ALICE, None, "cli:op")

    assert await stored.shown(guess.format(made=made.token)) is None


async def test_an_expired_token_is_refused_by_the_databases_clock(database: Database) -> None:
    stored = StoredCallers(database)
    made = await stored.create(ALICE, timedelta(days=1), "cli:op")
    assert await stored.shown(made.token) is not None

    await _end(database, caller_tokens, "expires_at")

    assert await stored.shown(made.token) is None
    assert await stored.known(ALICE.user) is None
    assert [entry.is_live for entry in await stored.tokens()] == [False]


async def test_all_live_tokens_of_a_person_have_the_same_rights(database: Database) -> None:
    stored = StoredCallers(database)
    first = await stored.create(ALICE, None, "cli:op")
    await stored.create(ALICE, None, "cli:op")
    more = KnownCaller(ALICE.user, ALICE.kind, "alice", frozenset({"lead"}))

    with pytest.raises(CallerDiffers, match="responder"):
        await stored.create(more, None, "cli:op")

    for entry in await stored.tokens():
        await stored.revoke(entry.id, "cli:op")
    newer = await stored.create(more, None, "cli:op")
    shown = await stored.shown(newer.token)
    assert shown is not None
    assert shown.caller.roles == {"lead"}
    assert await stored.shown(first.token) is None


async def test_a_caller_from_an_identity_provider_is_known_until_the_expiry(
    database: Database,
) -> None:
    stored = StoredCallers(database)
    until = await database.now() + timedelta(minutes=5)
    await stored.told_of(ALICE, until)
    await stored.told_of(ALICE, until)
    assert await stored.known(ALICE.user) == ALICE

    await _end(database, callers, "known_until")

    assert await stored.known(ALICE.user) is None


@pytest.mark.parametrize(
    ("account", "person"),
    [
        ("", Person(API, ALICE.user)),
        ("U7", Person(TeamId("T1"), UserId("U7"))),
        ("T9/U7", Person(TeamId("T9"), UserId("U7"))),
    ],
)
def test_a_caller_with_an_account_is_that_person(account: str, person: Person) -> None:
    caller = KnownCaller(ALICE.user, ALICE.kind, "alice", account=account)

    assert caller.person(TeamId("T1")) == person
