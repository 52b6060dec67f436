"""`kortex run` and `kortex check` with what operators get wrong: a clear sentence and exit 2."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from blockbuster import BlockBuster
from pydantic import JsonValue

from bot.demo.workspace.app import serving
from bot.demo.workspace.state import Workspace
from bot.engine.config import lock_when_free, take_lock
from tests.fixtures_http import serving as rota_serving
from tests.kortex_command import ran
from tests.plain_logging import logging_put_back

CONFIG = """
[slack]
mode = "{mode}"
bot_token = "{bot}"
app_token = "{app}"
signing_secret = "{secret}"
api_base_url = "{url}/api/"
[http]
port = 0
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
{more}
"""


@pytest.fixture(autouse=True)
def _a_process_of_its_own(_nothing_blocks_the_loop: BlockBuster) -> Iterator[None]:
    _nothing_blocks_the_loop.deactivate()
    with logging_put_back():
        yield


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    workspace = Workspace()
    async with serving(workspace):
        yield workspace


def config(folder: Path, workspace: Workspace, **changes: str) -> Path:
    values = {
        "mode": "socket",
        "bot": workspace.bot_token,
        "app": workspace.app_token,
        "secret": workspace.signing_secret,
        "url": workspace.origin,
        "folder": str(folder),
        "more": "",
    }
    path = folder / "kortex.toml"
    path.write_text(CONFIG.format(**{**values, **changes}))
    return path


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"bot": "xoxb-wrong-token"}, "slack.bot_token: Slack refused it in auth.test"),
        ({"bot": ""}, "slack.bot_token: is empty"),
        ({"app": "xapp-wrong-token"}, "slack.app_token: Slack refused it"),
        ({"mode": "http", "secret": ""}, "slack.signing_secret: is empty"),
        ({"url": "http://127.0.0.1:9"}, "slack.api_base_url: auth.test got no usable answer"),
        ({"more": "[llm]\nmax_tool_dept = 8"}, "kortex.toml:13: llm.max_tool_dept: unknown key"),
        ({"more": "[llm]\ndefault_provider = 'gpt'"}, "gpt"),
        ({"more": "[observe.logs]\nkind = 'recorded'\n[observe.metrics]\nkind = 'prometheus'\n"
          "url = 'http://127.0.0.1:9'"}, "recorded backends cannot be mixed"),
    ],
)  # fmt: skip
async def test_an_unusable_configuration_ends_the_start_with_exit_2(
    tmp_path: Path,
    workspace: Workspace,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
    words: str,
) -> None:
    code = await ran("run", "--config", str(config(tmp_path, workspace, **changes)))

    told = capsys.readouterr().err
    assert code == 2
    assert words in told
    assert "Traceback" not in told
    assert "wrong-token" not in told


async def test_a_restart_waits_for_the_process_before_it_to_exit(tmp_path: Path) -> None:
    held = take_lock(tmp_path / "kortex.db")
    asyncio.get_running_loop().call_later(0.3, held.close)

    with await lock_when_free(tmp_path / "kortex.db") as lock:
        assert not lock.closed


async def test_a_second_process_on_one_sqlite_file_is_refused(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, workspace)
    with take_lock(tmp_path / "kortex.db"):
        code = await ran("run", "--config", str(path))

    assert code == 2
    assert "in use by another kortex process" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "code", "slack_works"), [({}, 0, True), ({"bot": "xoxb-wrong-token"}, 1, False)]
)
async def test_check_shows_each_part_and_its_exit_code_covers_all(
    tmp_path: Path,
    workspace: Workspace,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, str],
    code: int,
    slack_works: bool,
) -> None:
    path = config(tmp_path, workspace, **changes)

    assert await ran("check", "--json", "--config", str(path)) == code

    parts = {row["part"]: row["ok"] for row in json.loads(capsys.readouterr().out)}
    assert parts["slack"] is slack_works
    assert parts["database"] is True
    assert parts["provider triage"] is True


ROLES = """
[roles.responder]
usergroups = ["S0RESPOND1"]
[roles.lead]
users = ["U0MEMBER01"]
[roles.nobody]
usergroups = ["S0GONE0001"]
[workspaces.T0ACME0001]
[roles.of-acme]
workspace = "T0ACME0001"
usergroups = ["S0ACME0001"]
[roles.on-call.oncall]
kind = "json"
url = "{rota}"
path = "[]"
[[channels]]
match = "incident-*"
products = ["checkout"]
confirm = ["responder"]
[[channels]]
match = "payments-*"
products = ["payments"]
confirm = ["lead"]
"""
ACTION = """
[[actions]]
name = "{name}"
description = "d"
products = ["{product}"]
endpoint = {{ kind = "rehearsal" }}
confirm = [{confirm}]
approvals = {approvals}
"""


async def rows_of_check(
    path: Path, capsys: pytest.CaptureFixture[str], code: int
) -> dict[str, dict[str, JsonValue]]:
    assert await ran("check", "--json", "--config", str(path)) == code
    return {row["part"]: row for row in json.loads(capsys.readouterr().out)}


async def test_check_warns_of_an_action_with_too_few_approvers(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    actions = [
        ACTION.format(name=name, product=product, confirm=confirm, approvals=approvals)
        for name, product, confirm, approvals in (
            ("apart", "checkout", '"lead"', 1),
            ("elsewhere", "payments", '"lead"', 1),
            ("fine", "checkout", '"on-call"', 1),
            ("two-on-call", "checkout", '"on-call"', 2),
            ("three", "*", "", 3),
        )
    ]
    async with rota_of(["mira@example.com", "ghost@example.com"]) as rota:
        roles = ROLES.format(rota=rota).replace("S0GONE0001", "S0RESPOND1")
        path = config(tmp_path, workspace, more=roles + "".join(actions))
        rows = await rows_of_check(path, capsys, 0)

    warned = {part: row["detail"] for part, row in rows.items() if row["warning"]}
    assert warned == {
        "on call on-call": "2 on call now, 1 without a Slack account",
        "action apart": "no one can confirm it in channels incident-*: "
        "no one is in responder and also in lead now",
        "action two-on-call": "it needs 2 people in channels incident-*, "
        "but only 1 in responder and also in on-call can confirm it now",
        "action three": "it needs 3 people in channels payments-*, "
        "but only 1 in lead can confirm it now",
        "actions of triage": "triage proposes only rollback-deploy, but no action has that name",
    }


async def test_check_fails_on_unreadable_roles(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    path = config(tmp_path, workspace, more=ROLES.format(rota="http://127.0.0.1:9/"))

    rows = await rows_of_check(path, capsys, 1)

    failed = {
        part: row["detail"] for part, row in rows.items() if not row["ok"] and row["configured"]
    }
    assert set(failed) == {"on call on-call", "role nobody"}
    assert "cannot be reached" in str(failed["on call on-call"])
    assert failed["role nobody"] == "Slack does not list the members of S0GONE0001"


async def test_check_tries_a_rota_without_slack(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    async with rota_of(["mira@example.com"]) as rota:
        more = ROLES.format(rota=rota)
        path = config(tmp_path, workspace, bot="xoxb-wrong-token", more=more)
        rows = await rows_of_check(path, capsys, 1)

    assert rows["on call on-call"]["detail"] == "1 on call now"


@asynccontextmanager
async def rota_of(names: list[str]) -> AsyncIterator[str]:
    async def told(_request: web.Request) -> web.StreamResponse:
        return web.json_response(names)

    async with rota_serving(told) as url:
        yield url
