"""A bot that starts ends what a decision that died for good left on a card."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bot.app.start import serving
from bot.demo.workspace.seeds import RESPONDER
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import QUICK, on_stage
from tests.stage import Asked, Stage, results

PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose with the deploy",
}


def proposing(request: Recorded) -> Round:
    if results(request):
        return Round(text=("I have proposed it.",))
    return Round(calls=(Call("core__propose_action", PROPOSAL),))


async def asked_and_proposed(stage: Stage) -> Asked:
    asked = await stage.ask("@kortex propose a way out", RESPONDER)
    await stage.answer(asked)
    await stage.card(asked)
    return asked


pytestmark = pytest.mark.may_block_the_loop


@pytest.mark.parametrize(
    ("state", "card_words", "line"),
    [
        ("dispatching", "unknown", "it may have taken effect"),
        ("confirmed", "failed", "nothing was changed"),
    ],
)
async def test_the_next_start_ends_an_abandoned_decision(
    tmp_path: Path, state: str, card_words: str, line: str
) -> None:
    async with on_stage(tmp_path, proposing) as stage:
        asked = await asked_and_proposed(stage)
        await stage.stop_service()
        # The engine takes the loop's threads with it; a new process brings its own.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor())
        stage.query(
            "UPDATE proposals SET state = ?, decided_by = ?, decided_at = created_at,"
            " decision_key = 'a click whose workflow is over'",
            state,
            RESPONDER,
        )
        async with serving(stage.settings, QUICK):
            card = await stage.card(asked, card_words)
            await stage.note(asked, line)

    assert card.action_ids == ("proposal:raw",)
    assert stage.effects == 0
