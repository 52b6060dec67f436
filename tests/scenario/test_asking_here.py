"""`kortex ask`: what it prints and its exit code, by how the turn ended."""

import json
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from bot.commands import verbs
from bot.settings.model import Settings
from tests.fakes.model_server import Call, ModelServer, Recorded, Round
from tests.fixtures_database import place_sqlite
from tests.stage import results

CLOCK = Call("core__get_current_time", {})


def never_concludes(_request: Recorded) -> Round:
    return Round(text=("I look again.",), calls=(CLOCK,))


def concludes(request: Recorded) -> Round:
    return Round(text=("It is late.",)) if results(request) else Round(calls=(CLOCK,))


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
        }
    )
    return await verbs.ask_with(settings, "what time is it?", "incident-x", as_json=as_json)


@pytest.fixture(autouse=True)
def _opens_files(_nothing_blocks_the_loop: BlockBuster) -> None:
    _nothing_blocks_the_loop.deactivate()


async def test_a_conclusion_is_exit_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with ModelServer(concludes) as models:
        code = await asked(tmp_path, models, as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (answer["end"], answer["stop_reason"]) == ("answered", "end_turn")
    assert answer["notices"] == []


async def test_no_conclusion_is_exit_1_a_reason_and_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(never_concludes) as models:
        code = await asked(tmp_path, models, as_json=True)

    answer = json.loads(capsys.readouterr().out)
    assert code == 1
    assert answer["stop_reason"] == "tool_depth_exceeded"
    assert "no conclusion within 2 rounds of tools" in answer["notices"][0]
    assert len(answer["evidence"]) == 2


async def test_the_sentence_is_printed_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer(never_concludes) as models:
        code = await asked(tmp_path, models, as_json=False)

    assert code == 1
    assert "notice: no conclusion within 2 rounds of tools" in capsys.readouterr().out
