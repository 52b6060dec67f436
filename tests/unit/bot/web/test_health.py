"""Probes and metrics are true, hold no secret, and stay small."""

import asyncio
import resource
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path

import pytest
import sqlalchemy as sa
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from bot.ports.failures import StorageUnavailable
from bot.store import schema
from bot.store.database import Database
from bot.store.schema import migrate
from bot.telemetry.metrics import MAX_VALUES, Metrics
from bot.web import health
from bot.web.server import MAX_BODY_BYTES, create_web_app
from tests.fixtures_database import postgres_url
from tests.held_connection import writing
from tools.errors import ToolErrorCode
from tools.records import ToolInvocationRecord

__all__ = ["postgres_url"]

Client = TestClient[web.Request, web.Application]


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    url = f"sqlite+aiosqlite:///{tmp_path}/kortex.db"
    await migrate(url)
    opened = await Database.open(url)
    yield opened
    await opened.close()


@pytest.fixture
async def client_of() -> AsyncIterator[Callable[[web.Application], Awaitable[Client]]]:
    clients: list[Client] = []

    async def made(app: web.Application) -> Client:
        client = TestClient(TestServer(app))
        clients.append(client)
        await client.start_server()
        return client

    yield made
    for client in clients:
        await client.close()


Made = Callable[[web.Application], Awaitable[Client]]


def probed(**checks: health.Check) -> web.Application:
    app = web.Application()
    app.router.add_get("/readyz", health.readyz(checks))
    return app


async def works() -> str | None:
    return None


async def hangs() -> str | None:
    await asyncio.Event().wait()
    return None


async def loses_storage() -> str | None:
    raise StorageUnavailable("postgresql://user:canary@db/kortex")


async def breaks() -> str | None:
    raise ValueError("token=canary")


async def disconnected() -> str | None:
    return "not connected: Slack refuses the app's token (invalid_auth)"


async def echo(request: web.Request) -> web.StreamResponse:
    return web.Response(body=await request.read())


async def test_a_replaced_database_file_is_reported(database: Database, client_of: Made) -> None:
    database.refuse("kortex.db was replaced")
    ready = await (await client_of(create_web_app(database=database, slack_connected=works))).get(
        "/readyz"
    )
    assert ready.status == 503
    assert (await ready.json())["parts"]["database"]["detail"] == "kortex.db was replaced"


async def test_a_working_process_is_up_and_ready(database: Database, client_of: Made) -> None:
    client = await client_of(create_web_app(database=database, slack_connected=works))

    up, ready = await client.get("/healthz"), await client.get("/readyz")

    assert (up.status, ready.status) == (200, 200)
    assert (await ready.json())["parts"].keys() == {"database", "schema", "slack"}


async def test_a_stalled_audit_sink_is_named_and_keeps_the_replica_ready(
    database: Database, client_of: Made
) -> None:
    async def stalled() -> health.Note:
        return health.Note("http is 466 rows behind")

    ready = await (await client_of(create_web_app(database=database, audit_sinks=stalled))).get(
        "/readyz"
    )

    assert ready.status == 200
    assert (await ready.json())["parts"]["audit sinks"]["detail"] == "http is 466 rows behind"


async def test_the_shared_port_of_workers_has_no_metrics_and_says_where_they_are(
    database: Database, client_of: Made
) -> None:
    client = await client_of(create_web_app(database=database, metrics_port=3001))

    answer = await client.get("/metrics")

    assert answer.status == 404
    assert "this worker has 3001" in await answer.text()


async def test_a_part_with_a_note_is_ready(client_of: Made) -> None:
    async def noted() -> health.Note:
        return health.Note("cannot be reached now")

    ready = await (await client_of(probed(slack=noted))).get("/readyz")

    assert ready.status == 200
    assert (await ready.json())["parts"]["slack"] == {"ok": True, "detail": "cannot be reached now"}


async def test_a_slack_refusal_is_not_ready_but_up(database: Database, client_of: Made) -> None:
    client = await client_of(create_web_app(database=database, slack_connected=disconnected))

    up, ready = await client.get("/healthz"), await client.get("/readyz")

    said = await ready.json()
    assert (up.status, ready.status) == (200, 503)
    assert not said["parts"]["slack"]["ok"]
    assert "invalid_auth" in said["parts"]["slack"]["detail"]
    assert said["parts"]["database"]["ok"]


async def test_without_a_connection_slack_is_not_a_part(
    database: Database, client_of: Made
) -> None:
    client = await client_of(create_web_app(database=database))

    assert "slack" not in (await (await client.get("/readyz")).json())["parts"]


async def test_an_old_schema_is_not_ready_and_says_what_to_run(
    tmp_path: Path, client_of: Made
) -> None:
    empty = await Database.open(f"sqlite+aiosqlite:///{tmp_path}/empty.db")
    client = await client_of(create_web_app(database=empty))

    ready = await client.get("/readyz")
    said = await ready.json()
    await empty.close()

    assert ready.status == 503
    assert "kortex migrate" in said["parts"]["schema"]["detail"]


@contextmanager
def no_file_may_grow(folder: Path) -> Iterator[None]:
    """As on a full disk: nothing can be written behind what the write-ahead log has now."""
    most = (folder / "kortex.db-wal").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_full_disk_is_not_ready_until_it_has_room_again(
    database: Database, tmp_path: Path, client_of: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "ASKED_AGAIN_S", 0.0)
    client = await client_of(create_web_app(database=database))
    before = await client.get("/readyz")
    with no_file_may_grow(tmp_path):
        full = await client.get("/readyz")
        up = await client.get("/healthz")
    after = await client.get("/readyz")

    assert [r.status for r in (before, full, up, after)] == [200, 503, 200, 200]
    assert "disk full" in (await full.json())["parts"]["database"]["detail"]


async def test_a_read_only_database_is_not_ready(postgres_url: str, client_of: Made) -> None:
    name = sa.make_url(postgres_url).database
    database = await Database.open(postgres_url)
    async with writing(database) as connection:
        await connection.execute(
            sa.text(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        )
    await database.close()
    database = await Database.open(postgres_url)
    ready = await (await client_of(create_web_app(database=database))).get("/readyz")
    async with writing(database) as connection:
        await connection.execute(sa.text("SET TRANSACTION READ WRITE"))
        await connection.execute(sa.text(f"ALTER DATABASE {name} RESET ALL"))
    await database.close()

    assert ready.status == 503
    assert "read-only" in (await ready.json())["parts"]["database"]["detail"]


async def test_probes_do_not_each_write(
    database: Database, tmp_path: Path, client_of: Made
) -> None:
    client = await client_of(create_web_app(database=database))
    await client.get("/readyz")
    written = (tmp_path / "kortex.db-wal").stat().st_size
    for _ in range(5):
        assert (await client.get("/readyz")).status == 200
    assert (tmp_path / "kortex.db-wal").stat().st_size == written


async def test_a_database_with_many_writers_is_busy_and_not_full(
    database: Database, client_of: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "PATIENCE_S", 0.02)
    client = await client_of(create_web_app(database=database))
    async with writing(database):
        ready = await client.get("/readyz")

    assert ready.status == 200


@pytest.mark.parametrize("check", [loses_storage, breaks])
async def test_a_broken_part_is_named_without_its_details(
    client_of: Made, check: health.Check
) -> None:
    client = await client_of(probed(good=works, bad=check))

    answer = await client.get("/readyz")

    assert answer.status == 503
    assert (await answer.json())["parts"]["good"]["ok"]
    assert "canary" not in await answer.text()


async def test_a_hanging_part_does_not_block_the_probe(
    client_of: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "CHECK_TIMEOUT_S", 0.02)
    client = await client_of(probed(slow=hangs))

    answer = await client.get("/readyz")

    assert answer.status == 503
    assert "no answer" in (await answer.json())["parts"]["slow"]["detail"]


async def test_missing_handlers_have_no_route(database: Database, client_of: Made) -> None:
    client = await client_of(create_web_app(database=database))

    assert (await client.post("/slack/events")).status == 404
    assert (await client.post("/ingest/v1/events")).status == 404


@pytest.mark.parametrize("path", ["/slack/events", "/ingest/v1/events"])
@pytest.mark.parametrize(("size", "status"), [(10, 200), (MAX_BODY_BYTES + 1, 413)])
async def test_bodies_are_capped_for_every_handler(
    database: Database, client_of: Made, path: str, size: int, status: int
) -> None:
    client = await client_of(create_web_app(database=database, slack_events=echo, ingest=echo))

    answer = await client.post(path, data=BytesIO(b"x" * size))

    assert answer.status == status


async def test_a_body_of_unknown_length_is_capped_while_it_is_read(
    database: Database, client_of: Made
) -> None:
    client = await client_of(create_web_app(database=database, ingest=echo))

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * (MAX_BODY_BYTES // 10)

    answer = await client.post("/ingest/v1/events", data=chunks())

    assert answer.status == 413


def record(name: str, *, ok: bool = True) -> ToolInvocationRecord:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    code = None if ok else ToolErrorCode.UPSTREAM
    return ToolInvocationRecord("c1", name, {}, ok, code, "", at, at, 0, False)


async def test_metrics_are_served_in_prometheus_format(database: Database, client_of: Made) -> None:
    counted = Metrics()
    counted.turn_ended("answered")
    counted.round_ended("anthropic", "end_turn")
    counted.tool_called(record("core__get_logs", ok=False))
    counted.proposal_became("confirmed")
    counted.spent("anthropic", 1500)
    counted.edited()
    counted.rate_limited()
    client = await client_of(create_web_app(database=database, metrics=counted))

    answer = await client.get("/metrics")
    lines = (await answer.text()).splitlines()

    assert answer.content_type == "text/plain"
    assert 'kortex_turns_total{end="answered"} 1.0' in lines
    assert 'kortex_rounds_total{outcome="end_turn",provider="anthropic"} 1.0' in lines
    assert 'kortex_tool_calls_total{outcome="upstream",tool="core__get_logs"} 1.0' in lines
    assert 'kortex_tool_seconds_count{tool="core__get_logs"} 1.0' in lines
    assert 'kortex_proposals_total{state="confirmed"} 1.0' in lines
    assert 'kortex_spent_usd_micros_total{provider="anthropic"} 1500.0' in lines
    assert "kortex_slack_edits_total 1.0" in lines
    assert "kortex_slack_rate_limited_total 1.0" in lines


def test_invented_names_cannot_grow_the_metrics_without_limit() -> None:
    counted = Metrics()

    for number in range(10 * MAX_VALUES):
        counted.tool_called(record(f"tool-{number}"))
    counted.tool_called(record("x" * 10_000))

    samples = [s for m in counted.registry.collect() for s in m.samples]
    tools = {s.labels["tool"] for s in samples if s.name == "kortex_tool_calls_total"}
    assert len(tools) == MAX_VALUES + 1
    assert max(map(len, tools)) < 100
