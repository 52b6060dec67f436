"""The audit log in a stream of a real nats-server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from adapters.audit.nats import AuditNats, NatsLogin
from adapters.errors import BadAnswer, Refused, Unreachable
from tests.backends.metric_servers import binary, free_port
from tests.fixtures_tls import certificate

pytestmark = [pytest.mark.backends]

PASSWORD = "nats-password-Vb71Lq"
START_S = 20.0
ROWS: list[dict[str, JsonValue]] = [
    {"seq": n, "at": "2026-11-21T12:00:00+00:00", "kind": "tool.call", "mac": f"{n:064x}",
     "body": {"n": n}}
    for n in range(1, 201)
]  # fmt: skip
LOGIN = NatsLogin("kortex", PASSWORD)


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """A server with JetStream, without a stream yet."""
    free = free_port()
    async with serving(free, tmp_path):
        yield free


@asynccontextmanager
async def serving(free: int, folder: Path) -> AsyncIterator[None]:
    """A server whose streams are files in the folder, until the block ends."""
    login = ("--user", "kortex", "--pass", PASSWORD)
    async with serving_with(free, "-js", "-sd", str(folder), *login):
        yield


@asynccontextmanager
async def serving_with(free: int, *options: str) -> AsyncIterator[None]:
    """A server that listens, until the block ends."""
    command = [binary("nats-server"), "-a", "127.0.0.1", "-p", str(free), *options]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        await listening(free)
        yield
    finally:
        process.terminate()
        await process.wait()


async def listening(port: int) -> None:
    """Until something listens."""
    async with asyncio.timeout(START_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


async def ask(port: int, subject: str, body: dict[str, Any]) -> dict[str, Any]:
    """One request of JetStream's API."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await reader.readline()
        login = json.dumps({"user": "kortex", "pass": PASSWORD, "verbose": False})
        said = json.dumps(body).encode()
        writer.write(f"CONNECT {login}\r\nSUB inbox 1\r\n".encode())
        writer.write(b"PUB %s inbox %d\r\n%s\r\n" % (subject.encode(), len(said), said))
        await writer.drain()
        line = await reader.readline()
        answer: dict[str, Any] = json.loads(await reader.readexactly(int(line.split()[-1])))
        return answer
    finally:
        writer.close()


async def make_stream(port: int) -> None:
    config = {"name": "AUDIT", "subjects": ["koder.admin.action"], "storage": "file"}
    assert "error" not in await ask(port, "$JS.API.STREAM.CREATE.AUDIT", config)


async def test_a_stream_stores_every_row_once_after_repeated_sends(port: int) -> None:
    await make_stream(port)
    sink = AuditNats(f"nats://127.0.0.1:{port}", login=LOGIN)

    await sink.send_events(ROWS)
    await sink.send_events(ROWS)

    found = await ask(port, "$JS.API.STREAM.INFO.AUDIT", {})
    assert found["state"]["messages"] == len(ROWS)
    last = await ask(port, "$JS.API.STREAM.MSG.GET.AUDIT", {"seq": len(ROWS)})
    assert last["message"]["subject"] == "koder.admin.action"


async def test_after_an_outage_a_batch_that_failed_is_delivered_once(tmp_path: Path) -> None:
    free = free_port()
    sink = AuditNats(f"nats://127.0.0.1:{free}", login=LOGIN)
    async with serving(free, tmp_path):
        await make_stream(free)
        await sink.send_events(ROWS[:90])

    with pytest.raises(Unreachable):
        await sink.send_events(ROWS)

    async with serving(free, tmp_path):
        await sink.send_events(ROWS)
        found = await ask(free, "$JS.API.STREAM.INFO.AUDIT", {})
    assert found["state"]["messages"] == len(ROWS)


async def test_a_subject_without_permission_is_refused_at_once(
    tmp_path: Path,
) -> None:
    free, config = free_port(), tmp_path / "nats.conf"
    config.write_text(
        'authorization { users = [{ user: "kortex", password: "p", '
        'permissions: { publish: "other", subscribe: ">" } }] }'
    )
    async with serving_with(free, "-c", str(config)):
        sink = AuditNats(f"nats://127.0.0.1:{free}", login=NatsLogin("kortex", "p"))
        with pytest.raises(Refused, match=r"(?i)permissions violation"):
            await sink.send_events(ROWS)


async def test_rows_and_login_go_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free, proof = free_port(), str(certificate(tmp_path, "localhost"))
    monkeypatch.setenv("SSL_CERT_FILE", proof)
    tls = ("--tls", "--tlscert", proof, "--tlskey", proof)
    async with serving_with(free, *tls, "--user", "kortex", "--pass", PASSWORD):
        sink = AuditNats(f"tls://localhost:{free}", login=LOGIN, acknowledged=False)
        await sink.send_events(ROWS)


async def test_a_missing_stream_fails_the_batch_and_is_named(port: int) -> None:
    with pytest.raises(BadAnswer, match="no JetStream stream"):
        await AuditNats(f"nats://127.0.0.1:{port}", login=LOGIN).send_events(ROWS)


async def test_an_unacknowledged_send_without_a_stream_is_accepted(port: int) -> None:
    sink = AuditNats(f"nats://127.0.0.1:{port}", login=LOGIN, acknowledged=False)
    await sink.send_events(ROWS)


async def test_a_wrong_password_is_refused(port: int) -> None:
    with pytest.raises(Refused, match=r"(?i)authorization"):
        await AuditNats(f"nats://127.0.0.1:{port}", login=NatsLogin("kortex", "guess")).send_events(
            ROWS
        )
