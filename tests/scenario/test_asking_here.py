"""`kortex ask`: what it prints and its exit code, by how the turn ended."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.cli.ask import ask_with
from bot.settings.model import Settings
from tests.fakes.model_server import Call, ModelServer, Recorded, Round
from tests.fixtures_database import place_sqlite
from tests.kortex_command import run
from tests.stage import results

CLOCK = Call("core__get_current_time", {})


def never_concludes(_request: Recorded) -> Round:
    return Round(text=("I look again.",), calls=(CLOCK,))


def concludes(request: Recorded) -> Round:
    return Round(text=("It is late.",)) if results(request) else Round(calls=(CLOCK,))


ROLLBACK = {"action": "undo", "product": "checkout", "rationale": "errors began with v42"}


def proposes(request: Recorded) -> Round:
    if results(request):
        return Round(text=("I would roll checkout back.",))
    return Round(calls=(Call("core__propose_action", ROLLBACK),))


async def asked(folder: Path, models: ModelServer, *, as_json: bool) -> int:
    await place_sqlite(folder / "kortex.db")
    provider = {"api_key": "k", "base_url": models.url, "model": "test-model"}
    settings = Settings.model_validate(
        {
            "database": {"url": f"sqlite+aiosqlite:///{folder}/kortex.db"},
            "llm": {
                "default_provider": "openai",
                "max_tool_depth": 2,
                "first_look": False,
                "providers": {"openai": provider},
            },
            "roles": {"responder": {"users": ["U0RESPOND1"]}},
            "channels": [{"match": "*", "confirm": ["responder"]}],
            "actions": [
                {
                    "name": "undo",
                    "description": "Roll a product back",
                    "endpoint": {"kind": "rehearsal"},
                    "blast_radius": "one service",
                    "reversible": True,
                }
            ],
        }
    )
    return await ask_with(settings, "what time is it?", "incident-x", as_json=as_json)


pytestmark = pytest.mark.may_block_the_loop


async def test_a_conclusion_exits_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with ModelServer(concludes) as models:
        code = await asked(tmp_path, models, as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (answer["end"], answer["stop_reason"]) == ("answered", "end_turn")
    assert answer["notices"] == []


async def test_an_answer_without_a_conclusion_exits_1_with_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(never_concludes) as models:
        code = await asked(tmp_path, models, as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert code == 1
    assert answer["stop_reason"] == "tool_depth_exceeded"
    assert "no conclusion within 2 rounds of tools" in answer["notices"][0]
    assert len(answer["evidence"]) == 2


async def test_the_reason_is_printed_in_text_output_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(never_concludes) as models:
        code = await asked(tmp_path, models, as_json=False)

    assert code == 1
    assert "notice: no conclusion within 2 rounds of tools" in capsys.readouterr().out


def stored(folder: Path) -> list[tuple[str, ...]]:
    """The proposals that people could be asked to decide on."""
    with closing(sqlite3.connect(folder / "kortex.db")) as connection:
        return connection.execute("SELECT id, state FROM proposals").fetchall()


async def test_a_would_be_proposal_is_reported_and_does_not_wait(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(proposes) as models:
        code = await asked(tmp_path, models, as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert (code, stored(tmp_path)) == (0, [])
    assert answer["proposal"] == {
        "action": "undo",
        "product": "checkout",
        "params": {},
        "rationale": "errors began with v42",
        "blast_radius": "one service",
        "reversible": True,
        "state": "not_raised",
        "dry_run": {
            "rehearsal": "nothing is sent",
            "would_send": {"action": "undo", "params": {}, "product": "checkout"},
        },
        "touches": [],
        "may_confirm": ["responder"],
        "must_also_hold": [],
    }
    (call,) = answer["tool_calls"]
    assert (call["name"], call["ok"]) == ("core__propose_action", True)
    (told,) = answer["evidence"]
    assert told["result"]["awaits_confirmation"] is False


async def test_a_would_be_proposal_says_how_to_get_a_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(proposes) as models:
        await asked(tmp_path, models, as_json=False)

    *_, would, how = capsys.readouterr().out.splitlines()
    assert would.startswith("would propose: undo for checkout")
    assert would.endswith("May confirm: responder")
    assert how == (
        "It cannot be confirmed here, so no card was posted. Ask in a channel or with `kortex chat`."
    )


@pytest.mark.parametrize("token", ["", "xoxb-1"])
def test_a_report_without_a_thread_says_why_it_cannot_be_posted(
    tmp_path: Path, token: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "kortex.toml"
    database = f'[database]\nurl = "sqlite:///{tmp_path}/kortex.db"\n'
    config.write_text(f'[slack]\nbot_token = "{token}"\n{database}')
    at = ("--config", str(config))
    run("ask", "why is checkout slow?", *at)

    assert run("incident", "report", "incident-console", "--post", "--output", "-", *at) == 2
    assert "--post: this session was asked with `kortex ask`" in capsys.readouterr().err
