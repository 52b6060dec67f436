"""A plugin from its file to an answer in the channel, and the command that tries one."""

import asyncio
import json
import socket
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import generate_latest

from bot.app.operator_tools import Plugins
from bot.cli.check.parts import examine
from bot.cli.check.tools import check_plugins
from bot.cli.status import tools_report_of
from bot.demo.workspace.seeds import CHECKOUT, RESPONDER
from bot.settings.model import Settings
from bot.settings.policy import PolicySettings
from tests.fakes.model_server import Call, Recorded, Round
from tests.fakes.plugin_bridge import NAME, TOKEN, Bridge, manifest
from tests.fixtures_http import serving
from tests.fixtures_service import Start, stage
from tests.kortex_command import ran
from tests.stage import results

__all__ = ["stage"]


def script(request: Recorded) -> Round:
    if results(request):
        return Round(text=("A ticket is open [1].",))
    return Round(calls=(Call(NAME, {"product": "checkout"}),))


async def test_a_plugin_answers_through_the_bot(
    stage: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    folder = tmp_path / "plugins"
    folder.mkdir()
    bridge = Bridge()
    bridge.answer = lambda: web.json_response({"tickets": [{"key": f"OPS-1 {TOKEN}"}]})
    async with serving(bridge.handle) as url:
        (folder / "tickets.yaml").write_text(manifest(url))
        (folder / "broken.yaml").write_text("name: [")
        async with stage(script, {"plugins": {"folder": str(folder)}}) as running:
            answer = await running.answered("@kortex are there tickets?")
            (result,) = results(running.models.requests[-1])
            log = running.log.getvalue()

    assert "A ticket is open" in answer
    assert "OPS-1" in result
    assert TOKEN not in result
    assert TOKEN not in log
    assert "plugin_not_loaded" in log
    assert bridge.asked == [("/tickets/checkout?limit=3", TOKEN)]


OTHER = "plugin__other_search"


def asks_both(request: Recorded) -> Round:
    found = results(request)
    if found:
        return Round(text=("OTHER" if "OPS-1" in found[1] else "NONE",))
    return Round(calls=tuple(Call(name, {"product": "checkout"}) for name in (NAME, OTHER)))


async def test_a_reload_rereads_the_folder_and_reports_bad_plugins_everywhere(
    stage: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    monkeypatch.setenv("NEW_TOKEN", "never-seen-before-81723")
    bridge = Bridge()
    async with serving(bridge.handle) as url:
        good = manifest(url)
        (tmp_path / "a.yaml").write_text(good)
        settings = {"plugins": {"folder": str(tmp_path)}, "admins": {"roles": ["responder"]}}
        async with stage(asks_both, settings) as running:
            assert "NONE" in await running.answered("@kortex tickets?")

            (tmp_path / "a.yaml").write_text(good.replace("timeout: 2s", "timeout: 2h"))
            (tmp_path / "b.yaml").write_text(good.replace("ticket_search", "other_search"))
            (tmp_path / "c.yaml").write_text(
                good.replace("ticket_search", "third").replace("BRIDGE_TOKEN", "NEW_TOKEN")
            )
            assert await running.reload()
            assert "OTHER" in await running.answered("@kortex tickets?")
            rows = running.query("SELECT body FROM audit WHERE kind = 'config.reloaded'")
            told_in_slack = await running.private_reply(
                RESPONDER, running.workspace.command(RESPONDER, CHECKOUT, "tools")
            )
            http = running.settings.http.model_copy(update={"port": running.service.http_port})
            asking = running.settings.model_copy(update={"http": http})
            report, live = await tools_report_of(asking)
            scraped = generate_latest(running.service.base.metrics.registry).decode()

            assert await running.reload(policy={"denied": ["plugin__*"]})
            assert "NONE" in await running.answered("@kortex tickets?")
            refused = await running.reload(policy={"toolsets": {"mine": {}}})
            log = running.log.getvalue()

    ((body,), *_) = rows
    told = json.loads(body)["parts"]["plugins"]
    assert told["loaded"] == [OTHER]
    assert [line.split(": ", 1)[0].rpartition("/")[2] for line in told["not_loaded"]] == [
        "a.yaml:12",
        "c.yaml:10",
    ]
    assert (list(report.notes), live) == (told["not_loaded"], True)
    calls = {each.id: each.health.outcomes for each in report.tools}
    assert (calls[OTHER], calls["unknown"]) == ({"ok": 1}, {"policy_denied": 2})
    assert f"`{OTHER}` investigate: 1 call, half under" in told_in_slack
    assert all(line in told_in_slack for line in told["not_loaded"])
    assert f'kortex_tool_calls_total{{outcome="ok",tool="{OTHER}"}} 1.0' in scraped
    assert "restart Kortex to mask it" in log
    assert "never-seen-before-81723" not in log
    assert not refused
    assert "policy.toolsets.mine: names no tools" in log


async def test_check_tries_a_plugin_and_names_its_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    bridge = Bridge()
    file = tmp_path / "tickets.yaml"

    async def check(text: str) -> int:
        await asyncio.to_thread(file.write_text, text)
        none = str(tmp_path / "none.toml")
        return await ran("check", "--plugin", str(file), "--config", none)

    async with serving(bridge.handle) as url:
        good = await check(manifest(url))
        unreachable = await check(manifest(url, "10.0.0.0/8"))
        wrong = await check(manifest(url).replace("timeout: 2s", "timeout: 2h"))

    written = capsys.readouterr()
    assert (good, unreachable, wrong) == (0, 1, 2)
    assert bridge.asked == [("/tickets/checkout?limit=3", TOKEN)]
    assert "valid, as plugin__ticket_search" in written.out
    assert "OPS-1" in written.out
    assert "not a public address" in written.out
    assert "timeout: " in written.err


async def test_check_reaches_a_plugins_host_without_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    seen: list[tuple[str, str, bool]] = []

    async def bridge(request: web.Request) -> web.Response:
        seen.append((request.method, request.path, "authorization" in request.headers))
        return web.Response(status=405)

    async with serving(bridge) as url:
        settings = Settings.model_validate({"plugins": {"folder": str(tmp_path)}})
        await asyncio.to_thread((tmp_path / "good.yaml").write_text, manifest(url))
        plugins = await asyncio.to_thread(Plugins, settings)
        (found,) = await check_plugins(plugins, settings)
        await plugins.aclose()
    assert (found.ok, "is there" in found.detail) == (True, True)
    assert seen == [("OPTIONS", "/", False)]


FOUNDERS = """
name: jira_search
description: |
  Search Jira tickets matching a JQL query.
parameters:
  query:
    type: string
endpoint:
  method: POST
  url: http://bridge.example:8080/jira/search
allowed_sessions:
  - "production"
  - "incident-*"
timeout: 10s
"""


@pytest.mark.parametrize(
    ("text", "notes"),
    [
        (FOUNDERS, "endpoint: a plugin only reads: with method POST, add `read_only: true` below"),
        (FOUNDERS.replace("method: POST", "method: POST\n  read_only: true"), ""),
    ],
)
async def test_a_plugin_with_a_post_request_gets_a_hint(
    tmp_path: Path, text: str, notes: str
) -> None:
    await asyncio.to_thread((tmp_path / "jira.yaml").write_text, text)
    settings = Settings.model_validate({"plugins": {"folder": str(tmp_path)}})
    plugins = await asyncio.to_thread(Plugins, settings)
    await plugins.aclose()
    assert notes in "".join(plugins.notes)
    assert len(plugins.tools) == (not notes)


def test_check_lists_the_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    monkeypatch.setenv("BRIDGE_TOKEN", TOKEN)
    with socket.create_server(("127.0.0.1", 0)) as away:
        (tmp_path / "good.yaml").write_text(manifest(f"http://127.0.0.1:{away.getsockname()[1]}"))
    (tmp_path / "bad.yaml").write_text("name: [")
    settings = Settings.model_validate(
        {
            "plugins": {"folder": str(tmp_path)},
            "database": {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"},
        }
    )

    found = {f.part: f for f in asyncio.run(examine(settings))}

    assert not found["plugin ticket_search"].ok
    assert ": unreachable, " in found["plugin ticket_search"].detail
    assert not found["plugin bad.yaml"].ok
    assert "bad.yaml:" in found["plugin bad.yaml"].detail
    assert "tokens in every request" in found["toolset investigate"].detail

    wrong = settings.model_copy(update={"policy": PolicySettings(toolsets={"mine": {}})})
    found = {f.part: f for f in asyncio.run(examine(wrong))}

    assert (found["policy"].ok, "mine: names no tools" in found["policy"].detail) == (False, True)
