"""`kortex token`: made, shown once, listed without it, revoked."""

from pathlib import Path

import orjson
import pytest

from bot.commands.token import Wanted, create, revoke, show_all

CONFIG = """
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[roles.responder]
users = ["U1"]
"""
ALICE = Wanted("alice", False, ("responder",), "", "90d")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "kortex.toml"
    path.write_text(CONFIG.format(folder=tmp_path))
    return path


def test_a_token_is_shown_once_and_then_listed_and_revoked(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert create(config, ALICE, as_json=False) == 0
    token = capsys.readouterr().out.strip()
    assert token.startswith("kortex_")

    assert show_all(config, as_json=True) == 0
    told = capsys.readouterr().out
    (entry,) = orjson.loads(told)
    assert token not in told
    assert (entry["name"], entry["roles"], entry["live"]) == ("alice", ["responder"], True)

    assert revoke(config, entry["id"]) == 0
    assert revoke(config, entry["id"]) == 1
    capsys.readouterr()
    assert show_all(config, as_json=False) == 0
    assert "revoked" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (Wanted("Alice!", False, (), "", ""), "NAME"),
        (Wanted("alice", False, ("nobody",), "", ""), "[roles.nobody]"),
        (Wanted("alice", False, ("responder",), "U1", ""), "--slack"),
        (Wanted("ci", True, (), "U1", ""), "--slack"),
        (Wanted("alice", False, (), "alice", ""), "--slack"),
        (Wanted("alice", False, (), "", "soon"), "--expires"),
        (Wanted("alice", False, (), "", "0s"), "--expires"),
        (Wanted("alice", False, (), "", "999d"), "--expires"),
    ],
)
def test_what_cannot_be_a_token_is_refused_in_words(
    config: Path, capsys: pytest.CaptureFixture[str], wanted: Wanted, why: str
) -> None:
    assert create(config, wanted, as_json=False) == 2
    assert why in capsys.readouterr().err
