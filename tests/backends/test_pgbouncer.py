"""A real PgBouncer in transaction mode before PostgreSQL: questions, migrations, `kortex check`."""

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from adapters.fault import Fault
from bot.cli.check.storage import check_database
from bot.settings.model import Settings
from bot.store import schema
from bot.store.database import Database
from bot.store.replicas import Replicas
from tests.backends.metric_servers import binary, free_port
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_database import new_database
from tests.fixtures_service import on_stage
from tests.held_connection import writing
from tests.stage import results

pytestmark = [pytest.mark.backends, pytest.mark.may_block_the_loop]

# Fewer connections of the server than the bot has: each transaction may get another one. What the
# bot may not send is refused, as by PgBouncer's own defaults.
CONFIG = """
[databases]
{name} = host={host} user={user} dbname={name}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = {auth}
auth_file = {users}
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 200
ignore_startup_parameters = {ignored}
"""
QUESTIONS = 4
LIMITS = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")


@contextmanager
def pgbouncer(
    folder: Path,
    url: str,
    ignored: str = "extra_float_digits",
    *,
    mode: str = "transaction",
    size: int = 6,
    auth: str = "any",
    port: int = 0,
) -> Iterator[str]:
    """The address of that database through it, without `?pgbouncer=true`."""
    direct, port = sa.make_url(url), port or free_port()
    config, users = folder / "pgbouncer.ini", folder / "users.txt"
    users.write_text('"kortex" "another"\n')
    config.write_text(
        CONFIG.format(
            name=direct.database,
            user=direct.username,
            host=direct.query["host"],
            port=port,
            ignored=ignored,
            mode=mode,
            size=size,
            auth=auth,
            users=users,
        )
    )
    folder.chmod(0o755)
    # It refuses to run as root. PostgreSQL's own user may use its socket.
    owner = Path(str(direct.query["host"]), ".s.PGSQL.5432").owner()
    command = [binary("pgbouncer"), *(["-u", owner] if os.geteuid() == 0 else []), str(config)]
    with (
        (folder / "pgbouncer.log").open("wb") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            _wait_until_it_listens(port)
            yield f"postgresql://kortex:unused@127.0.0.1:{port}/{direct.database}"
        finally:
            process.terminate()


def _wait_until_it_listens(port: int) -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("PgBouncer does not listen")


@pytest.fixture
async def postgres(tmp_path: Path) -> AsyncIterator[str]:
    async with new_database("postgresql", tmp_path) as url:
        yield url


@pytest.fixture
def pooled(tmp_path: Path, postgres: str) -> Iterator[str]:
    with pgbouncer(tmp_path, postgres) as url:
        yield f"{url}?pgbouncer=true"


LOGS = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m"})


def looked_and_answered(request: Recorded) -> Round:
    return Round(text=("The new version leaks.",)) if results(request) else Round(calls=(LOGS,))


async def test_concurrent_questions_are_answered(pooled: str, tmp_path: Path) -> None:
    async with on_stage(tmp_path, looked_and_answered, {"database": {"url": pooled}}) as stage:
        for _ in range(3):
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(stage.answered(f"@kortex why is checkout slow, {n}"))
                    for n in range(QUESTIONS)
                ]
            assert ["The new version leaks." in each.result() for each in asked] == [
                True
            ] * QUESTIONS


async def test_six_questions_are_answered_over_two_connections(
    postgres: str, tmp_path: Path
) -> None:
    with pgbouncer(tmp_path, postgres, size=2) as url:
        settings = {"database": {"url": f"{url}?pgbouncer=true"}}
        async with on_stage(tmp_path, looked_and_answered, settings) as stage:
            asks = [stage.answered(f"@kortex why is checkout slow, {n}") for n in range(6)]
            answers = await asyncio.wait_for(asyncio.gather(*asks), 60)
    assert all("The new version leaks." in each for each in answers)


async def test_a_question_is_answered_in_session_mode(postgres: str, tmp_path: Path) -> None:
    with pgbouncer(tmp_path, postgres, mode="session", size=30) as url:
        settings = {"database": {"url": f"{url}?pgbouncer=true"}}
        async with on_stage(tmp_path, looked_and_answered, settings) as stage:
            assert "The new version leaks." in await stage.answered("@kortex why is checkout slow")


async def test_a_question_is_answered_though_the_pooler_restarts_in_its_turn(
    postgres: str, tmp_path: Path
) -> None:
    port = free_port()
    with ExitStack() as first, ExitStack() as second:
        url = first.enter_context(pgbouncer(tmp_path, postgres, port=port))

        def restarts(request: Recorded) -> Round:
            if not results(request):
                first.close()
                second.enter_context(pgbouncer(tmp_path, postgres, port=port))
            return looked_and_answered(request)

        settings = {"database": {"url": f"{url}?pgbouncer=true"}}
        async with on_stage(tmp_path, restarts, settings) as stage:
            assert "The new version leaks." in await stage.answered("@kortex why is checkout slow")


async def test_a_transaction_sets_its_limits_and_leaves_none(pooled: str, postgres: str) -> None:
    behind = await Database.open(pooled)
    async with writing(behind) as connection:
        limits = [await connection.scalar(sa.text(f"SHOW {each}")) for each in LIMITS]
    await behind.close()
    engine = create_async_engine(pooled.partition("?")[0].replace("://", "+psycopg://"))
    async with engine.connect() as connection:
        left = [await connection.scalar(sa.text(f"SHOW {each}")) for each in LIMITS]
    await engine.dispose()
    assert (limits, left) == (["15s", "10s", "6s"], ["0", "0", "0"])


async def test_an_empty_database_is_migrated(tmp_path: Path) -> None:
    async with new_database("postgresql", tmp_path, migrated=False) as url:
        with pgbouncer(tmp_path, url) as pooled:
            assert await schema.migrate(f"{pooled}?pgbouncer=true") == schema.head()


async def test_a_silent_replica_is_taken_over_after_its_lease(pooled: str) -> None:
    database = await Database.open(pooled)
    leases = Replicas(database)
    presence = leases.presence("a", timeout_s=5)
    assert not await presence.beat()
    await asyncio.sleep(0.02)
    assert list(await leases.silent(0.01)) == ["a"]
    assert await leases.claim("a", 0.01) is not None
    await presence.close()
    await database.close()


def settings(url: str) -> Settings:
    return Settings.model_validate({"database": {"url": url}})


async def test_check_asks_for_the_setting_behind_a_pooler(postgres: str, tmp_path: Path) -> None:
    with pgbouncer(tmp_path, postgres, "options,extra_float_digits") as url:
        found = {each.part: each for each in await check_database(settings(url))}
    assert found["database"].ok
    assert found["pgbouncer"].warning
    assert "pgbouncer=true" in found["pgbouncer"].mend


async def test_check_asks_for_the_setting_when_the_pooler_refuses_the_connection(
    postgres: str, tmp_path: Path
) -> None:
    with pgbouncer(tmp_path, postgres) as url:
        (refused,) = await check_database(settings(url))
    assert refused.fails
    assert "pgbouncer=true" in refused.mend


async def test_check_names_a_password_that_the_pooler_does_not_take(
    postgres: str, tmp_path: Path
) -> None:
    with pgbouncer(tmp_path, postgres, auth="plain") as url:
        (refused,) = await check_database(settings(f"{url}?pgbouncer=true"))
    assert refused.fault is Fault.CREDENTIAL
    assert "unused" not in refused.detail


async def test_check_asks_for_another_mode_than_that_of_single_statements(
    postgres: str, tmp_path: Path
) -> None:
    with pgbouncer(tmp_path, postgres, mode="statement") as url:
        (refused,) = await check_database(settings(f"{url}?pgbouncer=true"))
    assert refused.fails
    assert "pool_mode = transaction" in refused.mend


async def test_check_asks_for_an_idle_limit_of_the_role(pooled: str) -> None:
    found = {each.part: each for each in await check_database(settings(pooled))}
    assert found["pgbouncer"].warning
    assert "idle_in_transaction_session_timeout" in found["pgbouncer"].mend


async def test_check_passes_with_the_setting_and_the_limit(postgres: str, tmp_path: Path) -> None:
    direct, name = await Database.open(postgres), sa.make_url(postgres).database
    async with direct.read() as connection:
        await connection.execute(sa.text(f"ALTER DATABASE {name} SET {LIMITS[-1]} = '6s'"))
    with pgbouncer(tmp_path, postgres) as url:
        found = await check_database(settings(f"{url}?pgbouncer=true"))
    async with direct.read() as connection:
        await connection.execute(sa.text(f"ALTER DATABASE {name} RESET ALL"))
    await direct.close()
    assert [(each.part, each.ok) for each in found] == [("database", True), ("pgbouncer", True)]


async def test_check_reports_nothing_for_a_plain_connection(postgres: str) -> None:
    assert [each.part for each in await check_database(settings(postgres))] == ["database"]
