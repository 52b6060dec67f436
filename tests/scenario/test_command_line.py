"""`kortex` as people type it: pipes that close, busy ports, slips in words, and completion."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from blockbuster import BlockBuster

from bot.cli import main as cli
from tests.kortex_command import run
from tests.plain_logging import logging_put_back

KORTEX = [sys.executable, "-m", "bot"]
EXAMPLE = Path(__file__).parents[2] / "docs" / "kortex.example.toml"


@pytest.fixture(autouse=True)
def _a_process_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _nothing_blocks_the_loop: BlockBuster
) -> Iterator[None]:
    _nothing_blocks_the_loop.deactivate()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with logging_put_back():
        yield


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    "command", [["completion", "bash"], ["--help"], ["tools", "--config", str(EXAMPLE)]]
)
def test_a_closed_output_pipe_ends_a_command_silently(command: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [*KORTEX, *command], stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60
        )
    finally:
        os.close(writing)

    assert done.stderr == b""
    assert done.returncode in (0, 141)


def test_an_unwritable_output_is_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*KORTEX, "completion", "bash"],
            stdout=full, stderr=subprocess.PIPE, check=False, timeout=60,
        )  # fmt: skip

    assert done.returncode == 1
    assert done.stderr.startswith(b"kortex: cannot write: No space left")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--port", "80000"], "'--port': 80000 is not in the range 0<=x<=65535"),
        (["--port", "-1"], "'--port': -1 is not in the range"),
        (["--port", "http"], "'--port': 'http' is not a valid integer"),
        (["--ask", ""], "Invalid value for '--ask': is empty"),
        (["--ask", " \u200b\u2060\u00a0"], "Invalid value for '--ask': is empty"),
        (["--channel", "incident-quiet"], "--channel needs --ask"),
        (["--json"], "--json needs --ask"),
        (["--ask", "why?", "--port", "8420"], "--port is an option of the page"),
        (["--ask", "why?", "--host", "0.0.0.0"], "--host is an option of the page"),
        (["--host", "192.0.2.1"], "'192.0.2.1' is not one of '127.0.0.1', '0.0.0.0'"),
        (["--ask", "why?", "--workspace"], "--workspace is an option of the page"),
        (["--ask", "why?", "--channel", "incident-chekout"], "incident-checkout"),
    ],
)
def test_conflicting_options_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("demo", *arguments) == 2
    assert words in capsys.readouterr().err


def test_a_busy_page_port_is_reported(taken_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("demo", "--port", str(taken_port)) == 2

    told = capsys.readouterr().err
    assert f"--port: port {taken_port} of 127.0.0.1 is in use" in told
    assert "0 is any free one" in told


MISTAKES = """
[slak]
mode = "socket"
[llm]
max_tool_dept = 8
[llm.provider.openai]
api_key = "k"
[budget]
alert_at_pct = 80
[roles.responder]
usergroups = ["@sre"]
users = ["mira@example.com"]
[platform.connections.mira]
users = ["@mira"]
[audit]
checkpoint_channel = "#audit"
[[channels]]
match = "incident-*"
[[channels]]
match = "#payments-*"
[[channels]]
match = "C0123ABCDEF"
[[channels]]
match = "@sre"
confrim = ["responder"]
[[policy.channels]]
match = "#web"
tools = ["*"]
"""


def test_configuration_typos_are_reported_by_line_with_suggestions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kortex.toml"
    path.write_text(MISTAKES)

    assert run("tools", "--config", str(path)) == 2

    told = capsys.readouterr().err.removeprefix("kortex: ").replace(f"{path}:", "").splitlines()
    beginnings = [
        "2: slak: unknown key; did you mean [slack]?",
        "5: llm.max_tool_dept: unknown key; did you mean max_tool_depth?",
        "6: llm.provider: unknown key; did you mean [llm.providers]?",
        "8: budget: unknown key; did you mean [llm.budget] or [policy.budget]",
        "11: roles.responder.usergroups.0: '@sre' is not the id of a user group",
        "12: roles.responder.users.0: 'mira@example.com' is not the id of a person",
        "14: platform.connections.mira.users.0: '@mira' is not the id of a person",
        "16: audit.checkpoint_channel: '#audit' is not the id of a channel",
        "20: channels.1.match: names are compared without #: write 'payments-*'",
        "22: channels.2.match: 'C0123ABCDEF' is a channel's id",
        "24: channels.3.match: '@sre': only @direct",
        "25: channels.3.confrim: unknown key; did you mean confirm?",
        "27: policy.channels.0.match: names are compared without #: write 'web'",
    ]
    assert [
        line[: len(wanted)] for line, wanted in zip(told, beginnings, strict=True)
    ] == beginnings


SLACK = """
[slack]
bot_token = "{bot}"
app_token = "{app}"
api_base_url = "http://127.0.0.1:9/"
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[llm.providers.openai]
api_key = "${{OPENAI_API_KEY}}"
[observe.logs]
kind = "loki"
url = "http://127.0.0.1:9"
"""


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-1")
    monkeypatch.setenv("SLACK_APP_TOKEN", "xapp-1")
    return monkeypatch


@pytest.mark.parametrize(
    ("bot", "app", "words"),
    [
        ("xapp-1", "xoxb-1", "slack.bot_token: holds an app-level token; it and slack.app_token are swapped"),
        ("xoxb-1", "xoxb-1", "slack.app_token: holds a bot token; that belongs in slack.bot_token"),
        ("xoxp-1", "xapp-1", "slack.bot_token: holds a person's token. Use the Bot User OAuth Token"),
        (
            "${SLACK_BOT_TOKN}", "${SLACK_APP_TOKEN}",
            "slack.bot_token: is empty: the environment has no SLACK_BOT_TOKN "
            "(SLACK_BOT_TOKEN is set: did you mean that?). Use",
        ),
        (
            "${SLACK_BOT_TOKEN}", "${NOWHERE_SET}",
            "slack.app_token: is empty: the environment has no NOWHERE_SET. Use",
        ),
        ("", "xapp-1", "slack.bot_token: is empty. Use the Bot User OAuth Token (xoxb-…)"),
    ],
)  # fmt: skip
def test_swapped_tokens_are_recognised_without_asking_slack(
    tmp_path: Path,
    variables: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    bot: str,
    app: str,
    words: str,
) -> None:
    path = tmp_path / "kortex.toml"
    path.write_text(SLACK.format(bot=bot, app=app, folder=tmp_path))

    assert run("run", "--config", str(path)) == 2
    assert words in capsys.readouterr().err


def test_check_prints_failures_first_and_logs_elsewhere(
    tmp_path: Path, variables: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kortex.toml"
    path.write_text(SLACK.format(bot="${SLACK_BOT_TOKN}", app="xapp-1", folder=tmp_path))

    assert run("check", "--config", str(path)) == 1

    table = capsys.readouterr().out.splitlines()
    marks = [line[:7].strip() for line in table if line[:7].strip()]
    ranks = [("FAILED", "WARNING", "ok", "not set").index(mark) for mark in marks]
    assert ranks == sorted(ranks)
    assert {"FAILED", "WARNING", "ok", "not set"} == set(marks)
    warned = next(line for line in table if line.startswith("WARNING  environment"))
    assert "slack.bot_token: the environment has no SLACK_BOT_TOKN" in warned
    unset = next(line for line in table if line.startswith("not set  environment"))
    assert "OPENAI_API_KEY (llm.providers.openai.api_key)" in unset


def test_a_busy_service_port_is_reported(
    tmp_path: Path, taken_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    async def both() -> int:
        from bot.demo.workspace.app import serving
        from bot.demo.workspace.state import Workspace

        workspace = Workspace()
        async with serving(workspace):
            path = tmp_path / "kortex.toml"
            text = SLACK.format(bot=workspace.bot_token, app=workspace.app_token, folder=tmp_path)
            text = text.replace("http://127.0.0.1:9/", f"{workspace.origin}/api/")
            path.write_text(f"{text}[http]\nport = {taken_port}\n")
            return await asyncio.to_thread(run, "run", "--config", str(path))

    assert asyncio.run(both()) == 2
    told = capsys.readouterr().err
    assert f"http.port: port {taken_port} of 127.0.0.1 is in use" in told
    assert "Traceback" not in told


ASK = """
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[llm]
default_provider = "{first}"
[llm.providers.openai]
api_key = "k"
base_url = "http://127.0.0.1:9"
model = "m"
"""


@pytest.mark.parametrize(("first", "code"), [("openai", 1), ("triage", 0)])
def test_an_answer_without_the_requested_model_exits_1(
    tmp_path: Path, first: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kortex.toml"
    path.write_text(ASK.format(folder=tmp_path, first=first))

    assert run("ask", "why is checkout slow?", "--config", str(path)) == code
    assert ("no model answered" in capsys.readouterr().err) is bool(code)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["ask"], "Missing argument 'QUESTION'"),
        (["ask", ""], "is empty"),
        (["ask", "why?", "--sesion", "x"], "'--session'"),
        (["chek"], "Did you mean 'check'?"),
        (["frobnicate"], "No such command 'frobnicate'"),
        (["audit", "verfy"], "Did you mean 'verify'?"),
        (["audit", "export"], "Give --session or --since"),
        (["audit", "export", "--session", "s", "--since", "1h"], "only one of them"),
        (["audit", "export", "--since", "yesterday"], 'yesterday: write "24h"'),
        (["ask", "why?", "--time-zone", "Mars"], 'Mars: write a name such as "Europe/Berlin"'),
        (["records", "delete", "--session", "s"], "Missing option '--reason'"),
        (["incident", "report"], "Missing argument 'SESSION'"),
        (["incident", "report", "--demo", "--post"], "cannot be combined with --demo"),
        (["eval"], "Missing argument 'PACK...'"),
        (["eval", "pack", "--limit", "0"], "0 is not in the range x>=1"),
    ],
)
def test_a_usage_error_exits_2_with_usage_and_a_suggestion(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kortex.toml").write_text("")

    assert run(*arguments) == 2

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Usage: kortex ")
    assert words in told.err


def test_help_lists_every_command_and_imports_none() -> None:
    program = (
        "import sys; from bot.cli import main as cli\n"
        "try: cli.main(['--help'])\n"
        "except SystemExit as ended: code = ended.code\n"
        "print(code, *(n for n in sys.modules if n.startswith('bot.cli.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )

    assert all(f"\n  {name} " in done.stdout for name in cli.TABLE)
    assert done.stdout.splitlines()[-1] == "0 bot.cli.exit_codes bot.cli.main"


def test_each_command_of_the_table_exists_under_its_name() -> None:
    context = click.Context(cli.kortex)

    found = {name: cli.kortex.get_command(context, name) for name in cli.TABLE}

    assert {name: command.name for name, command in found.items() if command} == {
        name: name for name in cli.TABLE
    }


def completed(*words: str) -> list[str]:
    """The values that click offers a shell for the last of these words."""
    done = subprocess.run(
        KORTEX,
        env={
            **os.environ,
            "_KORTEX_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(words),
            "COMP_CWORD": str(len(words) - 1),
        },
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


def test_a_shell_completes_commands_options_and_their_values() -> None:
    assert completed("kortex", "mi") == ["migrate"]
    assert completed("kortex", "audit", "ve") == ["verify"]
    assert completed("kortex", "audit", "verify", "--ch") == ["--checkpoint"]
    assert completed("kortex", "demo", "--channel", "incident-q") == ["incident-quiet"]
    assert completed("kortex", "completion", "") == ["bash", "zsh", "fish"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_clicks_own(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("completion", shell) == 0

    assert f"_KORTEX_COMPLETE={shell}_complete" in capsys.readouterr().out


def test_bash_accepts_the_completion_script(capsys: pytest.CaptureFixture[str]) -> None:
    run("completion", "bash")
    script = capsys.readouterr().out.encode()

    assert subprocess.run(["bash", "-n"], input=script, check=False, timeout=60).returncode == 0


POSTGRESQL = """
[slack]
mode = "{mode}"
edits_per_minute = 20
[database]
url = "postgresql+asyncpg://nobody:x@127.0.0.1:9/kortex"
[http]
port = {port}
"""


@pytest.mark.parametrize(
    ("count", "mode", "why"),
    [
        (2, "http", "http.port: port {port} of 127.0.0.1 is in use"),
        (11, "socket", "--workers 11: Slack gives an app 10 connections of Socket Mode"),
        (11, "http", "[slack] edits_per_minute = 20, and needs 2. Use at most 10 workers"),
    ],
)
def test_settings_that_workers_cannot_share_are_refused_before_any_worker_starts(
    tmp_path: Path,
    taken_port: int,
    capsys: pytest.CaptureFixture[str],
    count: int,
    mode: str,
    why: str,
) -> None:
    path = tmp_path / "kortex.toml"
    path.write_text(POSTGRESQL.format(mode=mode, port=taken_port))

    assert run("run", "--workers", str(count), "--config", str(path)) == 2
    told = capsys.readouterr().err
    assert why.format(port=taken_port) in told
    assert told.count("kortex: ") == 1


def test_several_workers_on_sqlite_are_refused_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "kortex.toml"
    path.write_text(f'[database]\nurl = "sqlite+aiosqlite:///{tmp_path}/kortex.db"\n')

    assert run("run", "--workers", "2", "--config", str(path)) == 2
    told = capsys.readouterr().err
    assert "kortex: --workers 2 needs PostgreSQL: SQLite has one writer" in told
    assert "set [database] url" in told
    assert not (tmp_path / "kortex.db").exists()


@pytest.mark.parametrize("count", ["0", "-1", "two", "1000", "²"])
def test_the_number_of_workers_must_be_a_number(
    count: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", "--workers", count) == 2

    assert "Invalid value for '--workers'" in capsys.readouterr().err
