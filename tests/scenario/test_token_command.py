"""`kortex token`: made, shown once, listed without it, revoked."""

from pathlib import Path

import orjson
import pytest

from tests.kortex_command import run

CONFIG = """
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[roles.responder]
users = ["U1"]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "kortex.toml"
    path.write_text(CONFIG.format(folder=tmp_path))
    return path


def test_a_token_is_shown_once_and_then_listed_and_revoked(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--config", str(config))
    assert run("token", "create", "alice", "--role", "responder", "--expires", "90d", *at) == 0
    token = capsys.readouterr().out.strip()
    assert token.startswith("kortex_")

    assert run("token", "list", "--json", *at) == 0
    told = capsys.readouterr().out
    (entry,) = orjson.loads(told)
    assert token not in told
    assert (entry["name"], entry["roles"], entry["live"]) == ("alice", ["responder"], True)

    assert run("token", "revoke", entry["id"], *at) == 0
    assert run("token", "revoke", entry["id"], *at) == 1
    capsys.readouterr()
    assert run("token", "list", *at) == 0
    assert "revoked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["Alice!"], "NAME"),
        (["alice", "--role", "nobody"], "[roles.nobody]"),
        (["alice", "--role", "responder", "--slack", "U1"], "--slack"),
        (["ci", "--service", "--slack", "U1"], "--slack"),
        (["alice", "--slack", "alice"], "--slack"),
        (["alice", "--expires", "soon"], "--expires"),
        (["alice", "--expires", "0s"], "--expires"),
        (["alice", "--expires", "999d"], "--expires"),
    ],
)
def test_an_invalid_token_request_is_refused_with_a_message(
    config: Path, capsys: pytest.CaptureFixture[str], options: list[str], why: str
) -> None:
    assert run("token", "create", *options, "--config", str(config)) == 2
    assert why in capsys.readouterr().err
