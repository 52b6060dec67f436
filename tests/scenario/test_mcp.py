"""An MCP server from kortex.toml to an answer in the channel, and what happens when it misbehaves."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.mcp.definition import Definition
from bot.cli.check.parts import examine
from bot.cli.check.tools import mcp_report
from bot.settings.model import Settings
from tests.fakes import mcp_server, plugin_bridge
from tests.fakes.mcp_http import TOOL, McpHttp
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_http import serving
from tests.fixtures_service import Start, stage
from tests.kortex_command import run
from tests.stage import results

__all__ = ["stage"]

SERVER = str(Path(mcp_server.__file__))
SEARCH = "mcp__tickets__ticket_search"


async def accepted(*names: str) -> dict[str, Any]:
    """The entries that `kortex check` would have printed."""
    announced = await mcp_server.create().list_tools()
    definitions = [Definition(t.name, t.description or "", t.input_schema) for t in announced]
    return {
        d.name: {"sha256": d.sha256(), "effect": "read"} for d in definitions if d.name in names
    }


async def configured(*names: str) -> dict[str, Any]:
    server = {
        "command": [sys.executable, SERVER],
        "env": {"TICKETS_TOKEN": mcp_server.TOKEN},
        "tools": await accepted(*names),
    }
    return {"mcp": {"servers": {"tickets": server}}}


def calling(name: str) -> Callable[[Recorded], Round]:
    def script(request: Recorded) -> Round:
        if results(request):
            return Round(text=("That is what the tickets say [1].",))
        return Round(calls=(Call(name, {"product": "checkout"}),))

    return script


async def test_an_accepted_tool_answers_and_its_crash_is_a_result(stage: Start) -> None:
    def script(request: Recorded) -> Round:
        asked = str(request.body["messages"])
        return calling("mcp__tickets__crash" if "end it now" in asked else SEARCH)(request)

    async with stage(script, await configured("ticket_search", "crash")) as running:
        await running.service.base.mcp.supervisors[0].first_try.wait()
        answer = await running.answered("@kortex are there tickets?")
        (found,) = results(running.models.requests[-1])
        offered = str(running.models.requests[-1].body["tools"])
        base = running.service.base
        rows = {row.part: row for row in await mcp_report(base.mcp, base.redactor)}
        after = await running.answered("@kortex end it now")
        failed = results(running.models.requests[-1])[-1]
        sent = running.sent() + running.rows() + running.log.getvalue()

    assert "That is what the tickets say" in answer
    assert "checkout-2" in found
    assert mcp_server.TOKEN not in found + sent
    assert set(json.loads(found)["result"]["data"]) <= {"tickets", "TICKETS_TOKEN", "LC_CTYPE"}
    assert "mcp__tickets__change" not in offered
    assert rows["mcp tickets"].ok
    assert rows["mcp__tickets__change"].detail == (
        "refused: it looks as if it changes something: its name says 'change'"
    )
    assert "That is what the tickets say" in after
    assert json.loads(failed)["result"]["error"] == "unavailable"


async def test_a_tool_removed_from_the_configuration_disappears_after_a_reload(
    stage: Start,
) -> None:
    definition = Definition(TOOL["name"], TOOL["description"], TOOL["inputSchema"])
    entry = {"sha256": definition.sha256(), "effect": "read"}
    async with serving(McpHttp().handle) as url:
        wiki = {"url": url, "networks": ["127.0.0.0/8"]}
        accepted = {"servers": {"wiki": {**wiki, "tools": {"find": entry}}}}
        async with stage(calling("mcp__wiki__find"), {"mcp": accepted}) as running:
            await running.answered("@kortex what does the wiki say?")
            (before,) = results(running.models.requests[-1])
            assert await running.reload(mcp={"servers": {"wiki": wiki, "new": {"command": ["x"]}}})
            await running.answered("@kortex and now?")
            after = results(running.models.requests[-1])[-1]
            ((row,),) = running.query("SELECT body FROM audit WHERE kind = 'config.reloaded'")

    assert json.loads(before)["result"] == {"text": "Restart it."}
    assert json.loads(after)["result"]["error"] == "policy_denied"
    assert json.loads(row)["parts"]["mcp"] == {"needs_restart": ["new"]}


async def test_foreign_tools_get_the_products_of_other_channels(
    stage: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host, a word of a list, a product beside an own one: none reaches the plugin or the server."""
    asked: tuple[dict[str, str], ...] = (
        {"product": "checkout", "text": "host ledger.prod.svc.cluster.local"},
        {"product": "checkout", "text": "checkout,ledger"},
        {"product": "checkout", "text": "slow since the ledger-related deploy"},
    )
    tool = {
        **TOOL,
        "inputSchema": {
            "type": "object",
            "properties": {"product": {"type": "string"}, "text": {"type": "string"}},
        },
    }

    def script(request: Recorded) -> Round:
        names = (plugin_bridge.NAME, "mcp__wiki__find")
        if results(request):
            return Round(text=("That is all [1].",))
        return Round(calls=tuple(Call(name, each) for name in names for each in asked))

    monkeypatch.setenv("BRIDGE_TOKEN", plugin_bridge.TOKEN)
    entry = {
        "sha256": Definition("find", "Find runbooks.", tool["inputSchema"]).sha256(),
        "effect": "read",
    }
    bridge, wiki = plugin_bridge.Bridge(), McpHttp(tool=tool)
    async with serving(bridge.handle) as plugin_url, serving(wiki.handle) as url:
        (tmp_path / "tickets.yaml").write_text(plugin_bridge.manifest(plugin_url))
        settings = {
            "plugins": {"folder": str(tmp_path)},
            "mcp": {
                "servers": {
                    "wiki": {"url": url, "networks": ["127.0.0.0/8"], "tools": {"find": entry}}
                }
            },
            "channels": [
                {"match": "incident-*", "session": "{channel}", "products": ["checkout"]},
                {"match": "books-*", "products": ["ledger"]},
            ],
        }
        async with stage(script, settings) as running:
            await running.service.base.mcp.supervisors[0].first_try.wait()
            await running.answered("@kortex is anything known?")
            told = [json.loads(each)["result"] for each in results(running.models.requests[-1])]

    assert [each.get("error") for each in told] == ["policy_denied", "policy_denied", None] * 2
    assert len(bridge.asked) == 1
    assert [method for method, _ in wiki.asked].count("tools/call") == 1


def test_check_reports_a_server_that_cannot_be_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    config = tmp_path / "kortex.toml"
    config.write_text(
        f'[database]\nurl = "sqlite+aiosqlite:///{tmp_path}/kortex.db"\n'
        '[mcp.servers.gone]\ncommand = ["/no/such/program"]\n'
    )

    code = run("check", "--config", str(config))

    (line,) = [row for row in capsys.readouterr().out.splitlines() if "mcp gone" in row]
    assert code == 1
    assert line.startswith("FAILED")
    assert line.endswith("/no/such/program cannot be started: No such file or directory")


def test_mcp_servers_without_the_client_package_are_refused_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue("_nothing_blocks_the_loop").deactivate()
    monkeypatch.delitem(sys.modules, "adapters.mcp.session", raising=False)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    tree = {
        "mcp": {"servers": {"gone": {"command": ["/no/such/program"]}}},
        "database": {"url": f"sqlite+aiosqlite:///{tmp_path}/kortex.db"},
    }

    found = {f.part: f for f in asyncio.run(examine(Settings.model_validate(tree)))}

    assert "kortex[mcp]" in found["mcp"].detail
