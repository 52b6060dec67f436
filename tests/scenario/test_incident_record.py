"""`kortex incident record` writes what the backends know, and `kortex eval` asks it again."""

import json
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from bot.cli.main import main
from tests.plain_logging import logging_put_back

CONFIG = """
[database]
url = "sqlite+aiosqlite:///{folder}/k.db"
[observe]
logs = {{ kind = "recorded" }}
metrics = {{ kind = "recorded" }}
traces = {{ kind = "recorded" }}
[kubernetes]
kind = "recorded"
[[channels]]
match = "*"
products = ["web", "checkout", "pricing", "payments"]
"""


pytestmark = pytest.mark.may_block_the_loop


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "kortex.toml").write_text(CONFIG.format(folder=tmp_path))
    return str(tmp_path / "kortex.toml")


def run(capsys: pytest.CaptureFixture[str], arguments: Sequence[str]) -> tuple[int, str, str]:
    with logging_put_back(), pytest.raises(SystemExit) as end:
        main(arguments)
    printed = capsys.readouterr()
    assert isinstance(end.value.code, int)
    return end.value.code, printed.out, printed.err


def recorded(capsys: pytest.CaptureFixture[str], config: str, *more: str) -> tuple[int, str, str]:
    asked = ["--asked", "why is checkout slow?", "--channel", "incident-checkout"]
    times = ["--since", "40m", "--before", "3h"]
    arguments = ["incident", "record", "--config", config, *times, *asked]
    return run(capsys, [*arguments, *more])


def test_a_recorded_incident_is_evaluated_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    pack = tmp_path / "packs" / "slow"
    code, out, _err = recorded(capsys, config, "--output", str(pack))
    assert code == 0
    assert "truth.json" in out

    _code, unjudged, told = run(capsys, ["eval", str(tmp_path / "packs"), "--json"])
    assert json.loads(unjudged)["results"] == []
    assert "1 cases without a valid truth" in told

    truth = json.loads((pack / "truth.json").read_text())
    (pack / "truth.json").write_text(
        json.dumps({**truth, "healthy": False, "culprit": ["checkout"]})
    )
    _code, judged, _told = run(capsys, ["eval", str(pack), "--json"])
    (result,) = json.loads(judged)["results"]
    assert (result["verdict"], result["suspects"][:1]) == ("cause", ["checkout"])
    assert json.loads(judged)["sets"][0]["top_1"] == 1.0


JUDGED = """
INSERT INTO sessions (id, team, channel, thread_ts, name, created_at, active_at)
    VALUES ('s{n}', 'T1', '{channel}', '1.1', 'x', {at}, {at});
INSERT INTO turns (id, session_id, ts, asker_team, asker_user, state, started_at, ended_at, provider)
    VALUES ('t{n}', 's{n}', '1.1', 'T1', 'U0ANNA', 'answered', {at}, {at}, 'triage');
INSERT INTO messages (turn_id, n, body) VALUES ('t{n}', 0, '{{"role":"user","text":"why {n}?"}}');
INSERT INTO feedback (turn_id, team, user_id, vote, reason, at)
    VALUES ('t{n}', 'T1', 'U0ANNA', 'down', 'reason {n} of anna@example.com', {at});
"""


def test_a_recording_contains_the_feedback_without_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    run(capsys, ["migrate", "--config", config])
    now_us = int(time.time() * 1_000_000)
    rows = [(1, "C1", now_us - 60_000_000), (2, "D1", now_us), (3, "C1", now_us - 7_200_000_000)]
    with closing(sqlite3.connect(tmp_path / "k.db")) as database, database:
        for n, channel, at in rows:
            database.executescript(JUDGED.format(n=n, channel=channel, at=at))
    recorded(capsys, config, "--products", "checkout", "--output", str(tmp_path / "pack"))

    written = (tmp_path / "pack" / "feedback.json").read_text()
    (told,) = json.loads(written)["feedback"]
    assert (told["asked"], told["vote"], told["provider"]) == ("why 1?", "down", "triage")
    assert "reason 1" in told["reason"]
    assert "anna" not in written.lower()


def test_a_recording_is_audited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], config: str
) -> None:
    recorded(capsys, config, "--products", "checkout", "--output", str(tmp_path / "pack"))

    _code, audit_log, _err = run(capsys, ["audit", "export", "--config", config, "--since", "1h"])

    assert "incident record" in audit_log


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        (["--since", "yesterday"], "'--since': yesterday"),
        (["--since", "2026-11-20T10:00", "--until", "2026-11-20T09:00"], "--since"),
        (["--since", "90h"], "up to 24 h"),
        (["--before", "much"], "'--before': much"),
        (["--before", "1000h"], "'--before': 1000h"),
        (["--output", "."], "already exists"),
    ],
)
def test_a_wrong_argument_is_refused_with_a_message(
    capsys: pytest.CaptureFixture[str], config: str, wrong: Sequence[str], names: str
) -> None:
    code, _out, err = recorded(capsys, config, *wrong)

    assert code == 2
    assert names in err
    assert "Traceback" not in err


def test_a_recording_without_backends_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kortex.toml"
    config.write_text(f'[database]\nurl = "sqlite+aiosqlite:///{tmp_path}/k.db"\n')
    arguments = ["--products", "web", "--output", str(tmp_path / "pack")]

    code, _out, err = recorded(capsys, str(config), *arguments)

    assert code == 1
    assert "nothing was written" in err
    assert "metrics: not configured" in err
    assert not (tmp_path / "pack").exists()
