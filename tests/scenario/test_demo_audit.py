"""`kortex audit verify --demo` and `incident report --demo`: what a demo leaves, and who can read it."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from bot.cli.demo_state import DIRECTORY, kept, on_demo
from bot.cli.main import main
from bot.demo.setup import demo_text, write_private
from bot.settings.reading import load
from tests.plain_logging import logging_put_back

VERIFY = ("audit", "verify", "--demo")
REPORT = ("incident", "report", "--demo", "--output", "-")
VALUES = {
    "KORTEX_DEMO_BOT_TOKEN": "xoxb-of-the-demo",
    "KORTEX_DEMO_APP_TOKEN": "xapp-of-the-demo",
    "KORTEX_DEMO_SIGNING_SECRET": "signing-of-the-demo",
    "KORTEX_DEMO_API_BASE_URL": "http://127.0.0.1:9/api/",
    "KORTEX_DEMO_CONTROL_PLANE": "http://127.0.0.1:9",
    "KORTEX_DEMO_CONTROL_PLANE_TOKEN": "orders-anything",
    "KORTEX_DEMO_CONTROL_PLANE_READ_TOKEN": "reads-anything",
    "KORTEX_DEMO_ON_CALL": "http://127.0.0.1:9/on-call",
    "KORTEX_DEMO_AUDIT_KEY": "5d" * 32,
}


@pytest.fixture(autouse=True)
def state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _nothing_blocks_the_loop: BlockBuster
) -> Iterator[Path]:
    """Where this user's demos are; a command may block its own loop."""
    _nothing_blocks_the_loop.deactivate()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with logging_put_back():
        yield tmp_path / "state" / "kortex" / "demo"


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a demo has in its folder after one question."""
    folder = tmp_path_factory.mktemp("answered")
    write_private(folder / "kortex.toml", demo_text(VALUES))
    config = folder / "here.toml"
    config.write_text(demo_text(VALUES).replace(DIRECTORY, str(folder)), encoding="utf-8")
    question = ("ask", "why is checkout slow?", "--session", "incident-checkout", "--json")
    assert ran(*question, "--config", str(config)) == 0
    return folder


def ran(*arguments: str) -> int:
    """The exit code of `kortex ...`."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return int(str(ended.value.code))


def fill(folder: Path, answered: Path) -> Path:
    """As if the question had been asked in that demo."""
    shutil.copy(answered / "kortex.toml", folder)
    shutil.copy(answered / "kortex.db", folder)
    return folder


def changed(folder: Path) -> None:
    """As the database's owner would, who can take the triggers away."""
    with closing(sqlite3.connect(folder / "kortex.db")) as connection:
        connection.execute("DROP TRIGGER audit_no_update")
        connection.execute("UPDATE audit SET actor = 'somebody else' WHERE seq = 2")
        connection.commit()


@pytest.mark.parametrize("command", [VERIFY, REPORT])
def test_without_a_demo_both_commands_say_so(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(*command) == 2
    assert "there is no demo yet. Start `kortex demo`" in capsys.readouterr().err


def test_a_demo_is_verified_and_reported_while_it_writes(
    answered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept() as folder, closing(sqlite3.connect(fill(folder, answered) / "kortex.db")) as demo:
        demo.execute("BEGIN IMMEDIATE")
        demo.execute("CREATE TABLE being_written (a)")
        assert ran(*VERIFY) == 0
        assert capsys.readouterr().out.startswith("ok ")
        assert ran(*REPORT) == 0
        assert "# Incident report: incident-checkout" in capsys.readouterr().out
        demo.rollback()
        kept_checkpoints = demo.execute("SELECT count(*) FROM audit_checkpoints").fetchone()
        assert kept_checkpoints == (0,)  # the report made one, in its copy


def test_a_changed_row_is_reported(answered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with kept() as folder:
        changed(fill(folder, answered))
        assert ran(*VERIFY) == 1
    assert capsys.readouterr().out.startswith("BAD   row 2:")


def test_a_demo_that_ended_is_verified_until_the_next_one_starts(answered: Path) -> None:
    with kept() as ended:
        fill(ended, answered)
    assert ran(*VERIFY) == 0
    with kept():
        assert not ended.exists()
        assert ran(*VERIFY) == 2


def test_names_are_looked_up_only_while_the_demos_workspace_runs(answered: Path) -> None:
    tokens: list[str] = []

    def read(config: Path) -> int:
        tokens.append(load(config).slack.bot_token.get_secret_value())
        return 0

    with kept() as folder:
        fill(folder, answered)
        on_demo(read)
    on_demo(read)
    assert tokens == ["xoxb-of-the-demo", ""]


def test_the_newest_of_two_demos_is_used_and_both_are_kept(
    answered: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with kept() as older, kept() as newer:
        changed(fill(older, answered))
        fill(newer, answered)
        assert ran(*VERIFY) == 0
        assert older.exists()
    assert capsys.readouterr().out.startswith("ok ")


def test_a_demos_files_are_private_and_dispatch_nothing(answered: Path, state: Path) -> None:
    with kept() as folder:
        modes = [each.stat().st_mode & 0o777 for each in (state, folder)]
    config = answered / "kortex.toml"
    text = config.read_text(encoding="utf-8")
    assert modes == [0o700, 0o700]
    assert config.stat().st_mode & 0o777 == 0o600
    assert VALUES["KORTEX_DEMO_AUDIT_KEY"] in text
    assert not [each for each in ("orders-anything", "reads-anything", "xapp-") if each in text]


def test_a_folder_readable_by_other_users_is_not_used(
    answered: Path, state: Path, tmp_path: Path
) -> None:
    with kept() as folder:
        fill(folder, answered)
    state.chmod(0o755)
    assert ran(*VERIFY) == 2
    with kept() as folder:
        assert folder.parent == tmp_path / f"kortex-demo-{os.geteuid()}"


def test_a_planted_symlink_is_not_followed(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    state.parent.mkdir(parents=True)
    for each in (state, tmp_path / f"kortex-demo-{os.geteuid()}"):
        each.symlink_to(elsewhere)
    assert ran("demo", "--port", "0") == 2
    assert "the demo has no private folder for its data" in capsys.readouterr().err
    assert list(elsewhere.iterdir()) == []


def test_an_invalid_database_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    with kept() as folder:
        (folder / "kortex.toml").touch()
        (folder / "kortex.db").write_bytes(b"no database at all, " * 100)
        assert ran(*VERIFY) == 2
    assert "cannot be read: file is not a database" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["incident", "report"], "Missing argument 'SESSION'"),
        (["incident", "report", "--demo", "--post"], "cannot be combined with --demo"),
    ],
)
def test_conflicting_options_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ran(*arguments) == 2
    assert words in capsys.readouterr().err


def test_a_real_demo_is_verified_while_it_runs_and_after_a_kill(
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = [sys.executable, "-m", "bot", "demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        assert any("Open http" in line for line in iter(demo.stdout.readline, ""))
        running = ran(*VERIFY), ran(*REPORT)
        demo.send_signal(signal.SIGKILL)
    assert running == (0, 2)
    assert "no question was asked" in capsys.readouterr().err
    assert ran(*VERIFY) == 0
