"""Other people's MCP servers, as released: two from PyPI, one from npm over both transports.

`make test-backends` installs them into build/mcp-servers.
"""

import json
import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Set
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from adapters.mcp.definition import ToolState
from bot.app.operator_tools import McpServers, open_mcp
from bot.settings.model import Settings
from tests.fakes.tools import Bench, bench
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy

pytestmark = [pytest.mark.backends, pytest.mark.timeout(120)]

INSTALLED = Path(__file__).parents[2] / "build" / "mcp-servers"
SECRET = "secret-of-kortex-Hn52KsRwq8"


def program(name: str) -> str:
    """The path of an installed server. Fails the test, saying what to run, when it is missing."""
    found = [INSTALLED / place / name for place in ("venv/bin", "node_modules/.bin")]
    path = next((each for each in found if each.exists()), None)
    if path is None:
        pytest.fail(f"{name} is not installed; run make test-backends")
    return str(path)


@asynccontextmanager
async def opened(folder: Path, server: dict[str, Any]) -> AsyncIterator[McpServers]:
    tree = {"definitions": str(folder / "definitions.json"), "servers": {"real": server}}
    async with AsyncExitStack() as stack:
        yield await open_mcp(Settings.model_validate({"mcp": tree}), stack)


@asynccontextmanager
async def accepted(
    folder: Path, server: dict[str, Any], *names: str, seem_to_write: Set[str] = frozenset()
) -> AsyncIterator[Bench]:
    """A runner with those tools, accepted as an operator would: from what was announced.

    `seem_to_write` are exactly the tools that are refused as announced.
    """
    async with opened(folder, server) as servers:
        (supervisor,) = servers.supervisors
        found = {each.name: each.definition for each in supervisor.judged}
        refused = {each.name for each in supervisor.judged if each.state is ToolState.REFUSED}
        states = {each.state for each in supervisor.judged}
    assert states <= {ToolState.NEW, ToolState.REFUSED}
    assert refused == seem_to_write
    entries = {
        name: {"sha256": found[name].sha256(), "effect": "read", "because": "it was tried"}  # type: ignore[union-attr]
        for name in names
    }
    async with opened(folder, {**server, "tools": entries}) as servers:
        ids = tuple(tool.contract.id for tool in servers.tools)
        assert len(ids) == len(names)
        yield bench(servers.tools, ToolPolicy({"investigate": ids}))


async def result_of(running: Bench, tool: str, **arguments: Any) -> dict[str, Any]:
    outcome = await running.run(json.dumps(arguments), f"mcp__real__{tool}")
    value: dict[str, Any] = json.loads(outcome.content)
    return value


async def test_the_time_server_of_pypi(tmp_path: Path) -> None:
    server = {"command": [program("mcp-server-time"), "--local-timezone", "UTC"]}
    async with accepted(tmp_path, server, "convert_time", "get_current_time") as running:
        good = await result_of(
            running,
            "convert_time",
            source_timezone="UTC",
            time="12:00",
            target_timezone="Asia/Tokyo",
        )
        wrong = await result_of(
            running, "convert_time", source_timezone="UTC", time="noon", target_timezone="UTC"
        )
        missing = await result_of(running, "convert_time", time="12:00")

    assert good["data"]["target"]["datetime"].endswith("T21:00:00+09:00")
    assert wrong["error"] == "upstream"
    assert missing["error"] == "validation"


GIT_WRITES = {"git_add", "git_checkout", "git_commit", "git_create_branch", "git_reset"}


@pytest.fixture
def repository(tmp_path: Path) -> str:
    folder = tmp_path / "shop"
    folder.mkdir()
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    commit = [*who, "commit", "-q", "--allow-empty", "-m", "Raise the pool"]
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", *commit], cwd=folder, check=True)
    return str(folder)


async def test_the_git_server_of_pypi(tmp_path: Path, repository: str) -> None:
    server = {
        "command": [program("mcp-server-git"), "--repository", repository],
        "inherit": ["PATH", "HOME"],
    }
    async with accepted(tmp_path, server, "git_log", seem_to_write=GIT_WRITES) as running:
        log = await result_of(running, "git_log", repo_path=repository, max_count=3)
        elsewhere = await result_of(running, "git_log", repo_path="/etc")

    assert "Raise the pool" in json.dumps(log)
    assert elsewhere["error"] == "upstream"


EVERYTHING = ("echo", "get-sum", "get-env", "get-tiny-image", "get-structured-content",
              "trigger-long-running-operation")  # fmt: skip
SEEM = {"gzip-file-as-resource", "simulate-research-query", "toggle-simulated-logging",
        "toggle-subscriber-updates", "trigger-long-running-operation"}  # fmt: skip


async def test_the_everything_server_of_npm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KORTEX_SECRET", SECRET)
    server = {
        "command": [program("mcp-server-everything")],
        "env": {"GIVEN": "given-to-the-child"},
        "inherit": ["PATH"],
    }
    async with accepted(tmp_path, server, *EVERYTHING, seem_to_write=SEEM) as running:
        echo = await result_of(running, "echo", message="hello")
        total = await result_of(running, "get_sum", a=2, b=3)
        environment = await result_of(running, "get_env")
        image = await result_of(running, "get_tiny_image")
        structured = await result_of(running, "get_structured_content", location="Chicago")
        long = await running.run(
            '{"duration": 1, "steps": 1}', "mcp__real__trigger_long_running_operation"
        )
        after = await result_of(running, "echo", message="still there")

    assert echo == {"text": "Echo: hello"}
    assert "5" in total["text"]
    assert environment["data"].keys() == {"GIVEN", "PATH"}
    assert "1 image left out" in image["note"]
    assert structured["data"]["conditions"]
    assert long.record.ok
    assert after == {"text": "Echo: still there"}


@pytest.fixture
def everything_url(tmp_path: Path) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    log = (tmp_path / "server.log").open("wb")
    with log, subprocess.Popen(
        [program("mcp-server-everything"), "streamableHttp"],
        env={"PORT": str(port), "PATH": os.environ["PATH"]},
        stdout=log, stderr=log,
    ) as process:  # fmt: skip
        _wait_until_open(port)
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


def _wait_until_open(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail("the server did not start")


async def test_the_everything_server_over_http(tmp_path: Path, everything_url: str) -> None:
    server = {"url": everything_url, "networks": ["127.0.0.0/8"], "timeout": "2s"}
    async with accepted(tmp_path, server, *EVERYTHING, seem_to_write=SEEM) as running:
        echo = await result_of(running, "echo", message="hello")
        slow = await running.run(
            '{"duration": 30, "steps": 5}', "mcp__real__trigger_long_running_operation"
        )
        after = await result_of(running, "echo", message="still there")

    assert echo == {"text": "Echo: hello"}
    assert slow.record.error_code is ToolErrorCode.TOOL_TIMEOUT
    assert after == {"text": "Echo: still there"}
