"""`kortex run` and `kortex check` with what operators get wrong: a clear sentence and exit 2."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from bot import cli
from bot.database_lock import take_lock
from bot.workspace.app import serving
from bot.workspace.state import Workspace
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


async def ran(*arguments: str) -> int:
    """The exit code of `kortex …`, on a thread and a loop of its own."""

    def main() -> int:
        with pytest.raises(SystemExit) as ended:
            cli.main(arguments)
        return int(str(ended.value.code))

    return await asyncio.to_thread(main)


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
          "url = 'http://127.0.0.1:9'"}, "recorded backends stand alone"),
    ],
)  # fmt: skip
async def test_what_cannot_work_ends_the_start_with_a_sentence_and_exit_2(
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
async def test_check_tells_each_part_and_its_exit_code_tells_the_whole(
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
