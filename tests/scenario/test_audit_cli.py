"""`kortex audit` on an audit log that a real turn wrote, from the configuration file on."""

import asyncio
import secrets
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from bot.audit.chain import AuditKeys
from bot.audit.checkpoint import sign
from bot.cli.main import main
from bot.store.audit_reading import StoredAuditReader
from bot.store.database import Database

KEY = secrets.token_hex(32)
CONFIG = """
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[audit]
key = "{key}"
[observe.logs]
kind = "recorded"
[observe.metrics]
kind = "recorded"
[observe.traces]
kind = "recorded"
[[channels]]
match = "incident-*"
session = "{{channel}}"
products = ["checkout"]
"""


pytestmark = pytest.mark.may_block_the_loop


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit")
    config = folder / "kortex.toml"
    config.write_text(CONFIG.format(folder=folder, key=KEY), encoding="utf-8")
    question = ["ask", "why is checkout slow?", "--session", "incident-checkout"]
    with pytest.raises(SystemExit) as ended:
        main([*question, "--json", "--config", str(config)])
    assert ended.value.code == 0
    return config


@pytest.fixture
def config(answered: Path, tmp_path: Path) -> Path:
    """A copy of it that the test may spoil."""
    source = sqlite3.connect(answered.parent / "kortex.db")
    target = sqlite3.connect(tmp_path / "kortex.db")
    source.backup(target)
    source.close()
    target.close()
    config = tmp_path / "kortex.toml"
    config.write_text(CONFIG.format(folder=tmp_path, key=KEY), encoding="utf-8")
    return config


def kortex(config: Path, *arguments: str) -> int:
    """The exit code."""
    with pytest.raises(SystemExit) as ended:
        main(["audit", *arguments, "--config", str(config)])
    return int(ended.value.code or 0)


def spoil(config: Path, statement: str) -> None:
    """As the database's owner would, who can take the triggers away."""
    connection = sqlite3.connect(config.parent / "kortex.db")
    for trigger in ("audit_no_update", "audit_no_delete"):
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    connection.execute(statement)
    connection.commit()
    connection.close()


def later() -> str:
    """A checkpoint of rows that are gone."""
    now = datetime(2026, 11, 21, 12, tzinfo=UTC)
    return sign(AuditKeys("1", {"1": KEY.encode()}), 99, "0" * 64, now).line + "\n"


def witness(config: Path) -> Path:
    """A checkpoint of the whole audit log, kept elsewhere."""

    async def make() -> str:
        database = await Database.open(f"sqlite+aiosqlite:///{config.parent}/kortex.db")
        newest = await StoredAuditReader(database).newest()
        assert newest is not None
        now = await database.now()
        await database.close()
        return sign(AuditKeys("1", {"1": KEY.encode()}), newest.seq, newest.mac, now).line

    file = config.parent / "checkpoints.txt"
    file.write_text(f"copied from the channel: {asyncio.run(make())}\n", encoding="utf-8")
    return file


def test_a_turn_writes_a_valid_audit_log(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kortex(config, "verify", "--checkpoint", str(witness(config))) == 0
    assert capsys.readouterr().out.startswith("ok ")


def test_a_changed_row_is_reported(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spoil(config, "UPDATE audit SET actor = 'somebody else' WHERE seq = 2")
    assert kortex(config, "verify") == 1
    assert capsys.readouterr().out.startswith("BAD   row 2:")


def test_a_truncated_audit_log_is_reported(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = witness(config)
    spoil(config, "DELETE FROM audit WHERE seq > 3")
    assert kortex(config, "verify") == 1
    capsys.readouterr()
    assert kortex(config, "verify", "--json", "--checkpoint", str(file)) == 1
    assert orjson.loads(capsys.readouterr().out)["first_bad_seq"] == 4


def test_a_restored_audit_log_is_found_by_the_checkpoint_file(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = witness(config)
    text = config.read_text().replace("[audit]", f'[audit]\ncheckpoint_file = "{file}"')
    config.write_text(text, encoding="utf-8")
    assert kortex(config, "verify") == 0
    file.write_text(later(), encoding="utf-8")
    assert kortex(config, "verify") == 1
    with pytest.raises(SystemExit) as ended:
        main(["ask", "why?", "--config", str(config)])
    assert ended.value.code == 2
    assert "the tail was cut" in capsys.readouterr().err


def test_an_invalid_audit_log_is_not_continued_until_it_is_sealed(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(config, "UPDATE audit SET prev = NULL, mac = NULL, key_id = NULL, body_hash = NULL")
    with pytest.raises(SystemExit) as ended:
        main(["ask", "why?", "--config", str(config)])
    assert ended.value.code == 2
    assert "the audit log is not valid at row 1" in capsys.readouterr().err
    assert kortex(config, "seal", "--reason", "restored from a backup") == 0
    assert kortex(config, "verify") == 0
    assert "sealed later by a holder of the key" in capsys.readouterr().out
    assert kortex(config, "seal", "--reason", "again") == 0
    assert "nothing to seal" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main(["ask", "why?", "--config", str(config)])
    assert ended.value.code == 0


def test_a_file_without_a_checkpoint_is_a_usage_error(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kortex(config, "verify", "--checkpoint", str(config)) == 2
    assert "holds no checkpoint" in capsys.readouterr().err


def test_the_export_is_one_json_object_per_line(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kortex(config, "export", "--since", "1h", "--jsonl") == 0
    rows = [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert {"turn.started", "tool.call", "model.call", "turn.ended"} <= {r["kind"] for r in rows}
    session = next(row["session"] for row in rows if row["kind"] == "turn.started")
    assert kortex(config, "export", "--session", session) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows)


LINKS = [
    "https://shop.slack.com/archives/C0SHOP/p1700000000000100",
    "https://shop.slack.com/archives/C0SHOP/p1700000060000200?thread_ts=1700000000.000100&cid=C0SHOP",
    "https://shop.slack.com/archives/C0SHOP/p1700000060000200?cid=C0SHOP&thread_ts=1700000000.000100",
]


@pytest.mark.parametrize("form", ["incident-checkout", *LINKS, "chat_abc"])
def test_a_session_is_exported_by_every_form_of_its_name(
    config: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    kortex(config, "export", "--since", "1h")
    rows = capsys.readouterr().out
    over_http = "session:@api:incident-checkout:1700000000.000100"
    spoil(config, "UPDATE sessions SET channel = 'C0SHOP', thread_ts = '1700000000.000100'")
    spoil(
        config,
        "INSERT INTO chat_sessions (id, channel, thread, owner_team, owner_user, owner_name, created_at)"
        " VALUES ('chat_abc', 'incident-checkout', '1700000000.000100', '@api', 'u', 'n', 0)",
    )
    spoil(config, "UPDATE sessions SET id = 'session:@api:incident-checkout:1700000000.000100'")
    spoil(config, "UPDATE audit SET session_id = (SELECT id FROM sessions) WHERE session_id <> ''")

    assert kortex(config, "export", "--session", form) == 0

    told = capsys.readouterr()
    assert len(told.out.splitlines()) == len(rows.splitlines())
    assert told.err == f"kortex: the rows of {over_http}\n"


@pytest.mark.parametrize(
    "unknown", ["incident-nothing", "session:T:C:1.2", LINKS[0], "https://shop.slack.com/"]
)
def test_an_unknown_session_is_refused_with_the_accepted_forms(
    config: Path, capsys: pytest.CaptureFixture[str], unknown: str
) -> None:
    assert kortex(config, "export", "--session", unknown) == 1

    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(
        f"kortex: no row belongs to {unknown!r}; write its id (session:TEAM:"
    )


def test_a_session_deleted_by_retention_is_exported_by_its_id(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kortex(config, "export", "--since", "1h")
    session = orjson.loads(capsys.readouterr().out.splitlines()[0])["session"]
    spoil(config, "DELETE FROM sessions")

    assert kortex(config, "export", "--session", session) == 0
    assert capsys.readouterr().out != ""


def test_a_persons_content_can_be_erased(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert kortex(config, "erase", "--person", "operator", "--reason", "asked for") == 0
    assert kortex(config, "verify") == 0
    assert "rows erased: only their content is gone" in capsys.readouterr().out


def test_an_audit_log_with_a_key_is_not_continued_without_the_key(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(CONFIG.format(folder=config.parent, key=""), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["ask", "why?", "--config", str(config)])
    assert ended.value.code == 2
    assert "audit.key: the audit log is sealed with the key '1'" in capsys.readouterr().err
