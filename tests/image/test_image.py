"""`make image-check`: what the image is made of, and that it runs confined as it is deployed."""

import asyncio
import signal
import stat
import sys
import tomllib
from asyncio import StreamReader, StreamWriter
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
import sqlalchemy as sa

from bot.demo.workspace.app import serving
from bot.demo.workspace.state import Workspace
from tests.fixtures_database import new_database
from tests.image.conftest import CHECKOUT, Image, Start

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(600)]

MOST_BYTES = 150_000_000
KORTEX = "/opt/kortex/bin/kortex"
# PEP 552: bytecode of a hash that is not compared with its source.
UNCHECKED = (1).to_bytes(4, "little")
HEALTHY = ("/opt/kortex/bin/python", "-ISE", "/opt/kortex/healthy.py")
CONFIG = """
[slack]
bot_token = "{bot}"
app_token = "{app}"
api_base_url = "{origin}/api/"
[http]
host = "0.0.0.0"
port = {port}
[database]
url = "{database}"
[audit]
key = "${{KORTEX_AUDIT_KEY}}"
[llm]
default_provider = "triage"
[observe.logs]
kind = "recorded"
[observe.metrics]
kind = "recorded"
[observe.traces]
kind = "recorded"
"""


def test_the_image_is_small(image: Image) -> None:
    sys.stdout.write(f"\nthe image: {image.size / 1e6:.1f} MB\n")
    assert image.size <= MOST_BYTES


def test_the_image_has_labels_and_runs_as_an_unprivileged_user(image: Image) -> None:
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"]
    told = image.config["Labels"]
    assert image.config["User"] == "65532:65532"
    assert image.config["Entrypoint"] == [KORTEX]
    assert image.config["Healthcheck"]["Test"] == ["CMD", *HEALTHY]
    assert told["org.opencontainers.image.version"] == version
    assert told["org.opencontainers.image.revision"] == "checked"
    assert told["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_the_image_has_no_shell_no_setuid_file_and_nothing_writable(
    image: Image,
) -> None:
    files = [path for path in image.root.rglob("*") if not path.is_symlink()]
    programs = {path.name for path in files if path.parent.name in ("bin", "sbin")}
    modes = {path: path.lstat() for path in files}
    own = {path.relative_to(image.root) for path, mode in modes.items() if mode.st_uid == 65532}
    assert not programs & {"sh", "dash", "bash", "busybox", "perl", "apt", "dpkg", "pip"}
    assert not [
        path for path, mode in modes.items() if mode.st_mode & (stat.S_ISUID | stat.S_ISGID)
    ]
    assert own == {Path("var/lib/kortex")}
    assert {
        path.relative_to(image.root)
        for path, mode in modes.items()
        if mode.st_mode & stat.S_IWOTH and not path.is_socket()
    } <= {Path("tmp"), Path("var/tmp"), Path("var/lock")}


def test_the_modules_are_precompiled(image: Image) -> None:
    packages = image.root / "opt/kortex/lib/python3.13/site-packages"
    compiled = {
        source: source.parent / "__pycache__" / f"{source.stem}.cpython-313.pyc"
        for name in ("bot", "adapters", "tools", "dbos", "attr", "slack_bolt")
        for source in (packages / name).rglob("*.py")
    }

    assert packages / "bot/cli/main.py" in compiled
    assert [source for source, path in compiled.items() if not path.is_file()] == []
    assert {path.read_bytes()[4:8] for path in packages.rglob("*.pyc")} == {UNCHECKED}


async def test_the_image_prints_its_version_on_a_read_only_root(
    image: Image, started: Start
) -> None:
    async with started(KORTEX, "--version") as program:
        told, _ = await program.communicate()
    assert told.decode() == f"kortex {image.config['Labels']['org.opencontainers.image.version']}\n"


async def test_the_image_answers_a_question(started: Start) -> None:
    async with started(KORTEX, "demo", "--ask", "why is checkout slow?", "--json") as program:
        told, _ = await program.communicate()
    assert program.returncode == 0
    assert orjson.loads(told)["verdict"] == "cause"


async def test_the_demo_runs_on_postgresql_as_compose_runs_it(
    started: Start, tmp_path_factory: pytest.TempPathFactory, unused_tcp_port: int
) -> None:
    async with postgresql(tmp_path_factory.mktemp("database")) as url:
        about = {"KORTEX_DEMO_DATABASE_URL": url, "KORTEX_DEMO_AUDIT_KEY": "5d" * 32}
        page = ("demo", "--host", "0.0.0.0", "--port", str(unused_tcp_port))
        async with started(KORTEX, *page, **about) as demo:
            await _said(demo, b"Open http://127.0.0.1")
            assert await _healthy(started, f"http://127.0.0.1:{unused_tcp_port}/")
            assert await _ended(demo) == 0
    assert not await _healthy(started, f"http://127.0.0.1:{unused_tcp_port}/")


async def test_the_image_serves_a_workspace_from_postgresql(
    started: Start,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    unused_tcp_port: int,
) -> None:
    workspace = Workspace()
    key = {"KORTEX_AUDIT_KEY": "5d" * 32}
    asked = f"http://127.0.0.1:{unused_tcp_port}"
    async with (
        postgresql(tmp_path_factory.mktemp("database")) as url,
        serving(workspace) as origin,
    ):
        config = CONFIG.format(
            bot=workspace.bot_token, app=workspace.app_token, origin=origin,
            port=unused_tcp_port, database=url,
        )  # fmt: skip
        await asyncio.to_thread((tmp_path / "kortex.toml").write_text, config)
        of_file = ("--config", "/etc/kortex/kortex.toml")
        async with started(KORTEX, "migrate", *of_file, **key) as migrating:
            assert await migrating.wait() == 0
        async with started(**key) as serving_program:
            while not await _healthy(started, f"{asked}/readyz"):
                assert serving_program.returncode is None
            assert await _healthy(started, f"{asked}/healthz")
            assert await _ended(serving_program) == 0


@asynccontextmanager
async def postgresql(folder: Path) -> AsyncIterator[str]:
    """The URL of an empty database over TCP: the tests' own server listens on a socket of its user."""
    async with new_database("postgresql", folder, migrated=False) as at_socket:
        url = sa.make_url(at_socket)
        socket = f"{url.query['host']}/.s.PGSQL.{url.query.get('port', 5432)}"

        async def relay(reader: StreamReader, writer: StreamWriter) -> None:
            theirs, ours = await asyncio.open_unix_connection(socket)
            async with asyncio.TaskGroup() as both:
                both.create_task(_passed_on(reader, ours))
                both.create_task(_passed_on(theirs, writer))

        server = await asyncio.start_server(relay, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        over_tcp = url.set(query={}, host=host, port=port)
        async with server:
            yield over_tcp.render_as_string(hide_password=False)


async def _passed_on(reader: StreamReader, writer: StreamWriter) -> None:
    while some := await reader.read(65536):
        writer.write(some)
        await writer.drain()
    writer.close()


async def _said(program: Process, words: bytes) -> None:
    assert program.stdout is not None
    async for line in program.stdout:
        if words in line:
            return
    assert program.stderr is not None
    pytest.fail((await program.stderr.read()).decode())


async def _healthy(started: Start, address: str) -> bool:
    async with started(*HEALTHY, address) as check:
        await check.communicate()
    return check.returncode == 0


async def _ended(program: Process) -> int:
    """The exit code after SIGTERM, within the 30 s that an orchestrator waits."""
    program.send_signal(signal.SIGTERM)
    async with asyncio.timeout(30):
        _, complained = await program.communicate()
    assert b"Warning" not in complained
    return program.returncode or 0
