"""A plugin's tool against a server on loopback, through the runner."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.plugins.manifest import checked
from adapters.plugins.yaml_source import parse_yaml
from bot.app.operator_tools import open_plugin, open_plugins, plugin_secrets
from bot.settings.model import Settings
from tests.fakes.plugin_bridge import NAME, TOKEN, Bridge, manifest
from tests.fakes.tools import Bench, bench
from tests.fixtures_http import serving
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy

POLICY = ToolPolicy(toolsets={"investigate": ("plugin__*",)}, sessions={NAME: ("incident-*",)})


@pytest.fixture
def bridge() -> Bridge:
    return Bridge()


@pytest.fixture
async def url(bridge: Bridge) -> AsyncIterator[str]:
    async with serving(bridge.handle) as address:
        yield address


@pytest.fixture
async def opened(
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[Callable[[str], Bench]]:
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    async with AsyncExitStack() as stack:

        def make(text: str) -> Bench:
            read = checked(parse_yaml(text, "ticket.yaml"))
            return bench([open_plugin(read, stack)], POLICY)

        yield make


async def test_a_plugin_calls_its_server_and_shows_the_declared_fields(
    opened: Callable[[str], Bench], bridge: Bridge, url: str
) -> None:
    outcome = await opened(manifest(url)).run('{"product": "a/b?x#y", "text": "1&admin=1#x"}', NAME)

    assert json.loads(outcome.content)["data"] == {"tickets": [{"key": "OPS-1"}]}
    assert bridge.asked == [("/tickets/a%2Fb%3Fx%23y?text=1%26admin%3D1%23x&limit=3", TOKEN)]


async def test_a_plugin_exists_only_in_its_sessions(
    opened: Callable[[str], Bench], bridge: Bridge, url: str
) -> None:
    outcome = await opened(manifest(url)).run(
        '{"product": "checkout"}', NAME, session_name="watercooler"
    )

    assert outcome.record.error_code is ToolErrorCode.POLICY_DENIED
    assert bridge.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_undeclared_network_is_not_contacted(
    opened: Callable[[str], Bench], bridge: Bridge, url: str, host: str
) -> None:
    text = manifest(url.replace("127.0.0.1", host), "10.0.0.0/8")
    outcome = await opened(text).run('{"product": "checkout"}', NAME)

    assert outcome.record.error_code is ToolErrorCode.UPSTREAM
    assert "not a public address" in outcome.content
    assert bridge.asked == []


ANSWERS: dict[str, tuple[Callable[[], web.Response], bool, str]] = {
    "a redirect": (lambda: web.Response(status=302, headers={"Location": "/x"}), False, "redirect"),
    "a refusal": (lambda: web.Response(status=403, text="no scope"), False, "403 no scope"),
    "a bomb": (
        lambda: web.Response(
            body=gzip.compress(b"0" * 3_000_000), headers={"Content-Encoding": "gzip"}
        ),
        False,
        "more than",
    ),
    "a page": (lambda: web.Response(text="<html>sign in</html>"), True, "not JSON"),
    "not UTF-8": (lambda: web.Response(body=b"\xff\xfe\xff"), True, "not JSON"),
    "nothing": (lambda: web.Response(status=204), True, "not JSON"),
    "NaN": (lambda: web.Response(text='{"tickets": NaN}'), True, "not JSON"),
    "depth": (lambda: web.Response(text="[" * 150 + "]" * 150), False, "nested too deep"),
}


@pytest.mark.parametrize("case", ANSWERS)
async def test_an_answer_of_any_kind_is_a_result(
    opened: Callable[[str], Bench], bridge: Bridge, url: str, case: str
) -> None:
    bridge.answer, ok, words = ANSWERS[case]
    outcome = await opened(manifest(url)).run('{"product": "checkout"}', NAME)

    assert outcome.record.ok is ok
    assert words in outcome.content
    assert len(bridge.asked) == 1


def settings_of(folder: Path) -> Settings:
    return Settings.model_validate({"plugins": {"folder": str(folder)}})


async def test_bad_plugins_are_named_and_the_others_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    good = manifest("http://bridge.internal")
    files: dict[str, Any] = {
        "a.yaml": good,
        "b.yaml": good,
        "c.yml": good.replace("ticket_search", "get_logs"),
        "d.yaml": good.replace("BRIDGE_TOKEN", "NOT_SET_ANYWHERE").replace("ticket_", "other_"),
        "e.yaml": "name: [",
        "notes.txt": "not read",
    }
    for name, text in files.items():
        await asyncio.to_thread((tmp_path / name).write_text, text)
    async with AsyncExitStack() as stack:
        plugins = await asyncio.to_thread(open_plugins, settings_of(tmp_path), stack)

    assert [tool.contract.id for tool in plugins.tools] == [NAME]
    said = "\n".join(map(str, plugins.problems))
    for words in ("another plugin", "built-in tool", "NOT_SET_ANYWHERE is not set", "e.yaml"):
        assert words in said
    assert await asyncio.to_thread(plugin_secrets, settings_of(tmp_path)) == {TOKEN}


async def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        plugins = await asyncio.to_thread(open_plugins, settings_of(tmp_path / "none"), stack)

    assert ["not a folder" in str(problem) for problem in plugins.problems] == [True]
