"""`kortex budget` and `kortex usage export`: what was used, for people and for jq."""

import asyncio
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.cli.main import main
from bot.domain.ids import ChannelId, MessageTs, Place, TeamId, TurnId, session_at
from bot.store.channel_names import StoredNames
from bot.store.database import Database
from bot.store.ledger import StoredLedger
from bot.store.schema import migrate
from tests.fixtures_stores import ROUND

ROWS = [
    ROUND,
    replace(ROUND, round=2, cost_usd_micros=None, duration_ms=1100),
    replace(ROUND, turn_id=TurnId("turn:2"), purpose="summarize", provider="openai"),
]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    url = f"sqlite+aiosqlite:///{tmp_path}/kortex.db"
    path = tmp_path / "kortex.toml"
    path.write_text(f'[database]\nurl = "{url}"\n[llm.budget]\ndaily_usd_limit = 0.03\n')

    async def fill() -> None:
        await migrate(url)
        database = await Database.open(url)
        for row in ROWS:
            await StoredLedger(database).record(row)
        await database.close()

    asyncio.run(fill())
    return path


def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code, capsys.readouterr().out


def test_budget_is_readable(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = _run(capsys, "budget", "--config", str(config))

    assert code == 0
    assert "today (UTC)  $0.0030 of $0.0300 (10 %)" in out
    assert "1 unpriced" in out
    assert "incident-checkout" in out


def test_budget_shows_known_names_with_their_ids(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Place(TeamId("T1"), ChannelId("C1"), MessageTs("1795438533.034719"))

    async def fill() -> None:
        database = await Database.open(f"sqlite+aiosqlite:///{config.parent}/kortex.db")
        await StoredNames(database).keep(place, "incident-web", None)
        row = replace(ROUND, turn_id=TurnId("turn:3"), session_id=session_at(place))
        await StoredLedger(database).record(row)
        await database.close()

    asyncio.run(fill())
    _, out = _run(capsys, "budget", "--config", str(config))

    assert f"#incident-web  {session_at(place)}\n" in out
    assert "#incident-checkout  incident-checkout\n" not in out


def test_budget_as_json_sums_to_the_spending(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out = _run(capsys, "budget", "--json", "--config", str(config))

    found = json.loads(out)
    sums = {sum(row["usd_micros"] for row in rows) for rows in found["by"].values()}
    assert sums == {found["spent_usd_micros"]} == {3000}
    assert found["limits"]["daily_usd_micros"] == 30_000


def test_usage_is_one_object_per_line_grouped_by_operation(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = _run(capsys, "usage", "export", "--jsonl", "--config", str(config))

    groups: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in out.splitlines():
        row = json.loads(line)
        groups[row["operation"]].append(row)
    averages = {
        name: sum(r["duration_ms"] for r in rows) // len(rows) for name, rows in groups.items()
    }
    assert (code, averages) == (0, {"investigate": 1000, "summarize": 900})
    first = groups["investigate"][0]
    assert first["input_tokens"] == 123
    assert [r["cost_usd_micros"] for r in groups["investigate"]] == [1500, None]


@pytest.mark.parametrize(("option", "lines"), [("--since", 3), ("--until", 0)])
def test_usage_covers_the_requested_time(
    config: Path, capsys: pytest.CaptureFixture[str], option: str, lines: int
) -> None:
    _, out = _run(capsys, "usage", "export", option, "24h", "--config", str(config))

    assert len(out.splitlines()) == lines


def test_an_unreadable_time_is_a_usage_error(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _ = _run(capsys, "usage", "export", "--since", "soon", "--config", str(config))

    assert code == 2
