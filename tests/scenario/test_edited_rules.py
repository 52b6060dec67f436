"""kortex.toml and reflexes.toml edited under a running bot: what is in force is what they say now.

One bot serves all tests of this module; each has a thread and a proposal of its own.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from blockbuster import BlockBuster

from bot.app.start import RELOADED
from bot.cli import main as cli
from bot.cli.check.parts import examine
from bot.demo.workspace.seeds import RESPONDER, RESPONDERS
from bot.demo.workspace.timeline import Message
from bot.settings.reading import load
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import CONFIRM, Asked, Stage, question_of, results

__all__ = ["shared_stage"]

in_one_bot = pytest.mark.asyncio(loop_scope="module")

RULES = """
[[reflexes]]
name = "restart-workers"
description = "Restart the queue workers"
products = ["checkout"]
endpoint = {{ url = "{plane}/products/{{product}}/restart" }}
[reflexes.guards]
rate_limit = "1/1h"
"""
NAMES = ("restart-workers", "core__restart_workers", "reflexes__restart-workers")


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Try every name under which a rule could be a tool; then propose what the question names."""
    done = len(results(request))
    if done < len(NAMES):
        return Round(calls=(Call(NAMES[done], {"product": "checkout", "confirmed": True}),))
    if done > len(NAMES):
        return Round(text=("proposed",))
    action = question_of(request).rsplit("propose ", 1)[-1]
    wanted = {"action": action, "product": "checkout", "rationale": "they hang"}
    return Round(calls=(Call("core__propose_action", wanted),))


@pytest_asyncio.fixture(loop_scope="module")
async def running(shared_stage: Stage) -> AsyncIterator[Stage]:
    """The shared bot; what a test put in force is taken back."""
    before = shared_stage.settings
    yield shared_stage
    assert await shared_stage.reload(roles=before.roles, actions=before.actions)


async def proposed(running: Stage, action: str) -> tuple[Asked, Message]:
    asked = await running.ask(f"@kortex propose {action}", running.newcomer())
    await running.answer(asked)
    return asked, await running.card(asked)


def bodies(running: Stage, kind: str, thread: str = "") -> list[dict[str, Any]]:
    rows = running.query(
        "SELECT body FROM audit WHERE kind = ? AND body LIKE ? ORDER BY seq", kind, f"%{thread}%"
    )
    return [json.loads(body) for (body,) in rows]


def proposal_of(running: Stage, card: Message) -> str:
    return str(running.query("SELECT id FROM proposals WHERE card_ts = ?", card.ts)[0][0])


@in_one_bot
async def test_a_click_uses_the_current_roles_and_actions_not_the_cards(running: Stage) -> None:
    before = running.effects
    asked, card = await proposed(running, "rollback-deploy")

    assert await running.reload(roles={"responder": {"users": ["U0SOMEONE"]}})
    told = await running.private_reply(RESPONDER, running.press(RESPONDER, card, CONFIRM))
    assert "You don't have the role for this" in told

    assert await running.reload(roles={"responder": {"usergroups": [RESPONDERS]}}, actions=())
    await running.press(RESPONDER, card, CONFIRM)
    await running.card(asked, "no longer declared for checkout")

    assert running.effects == before
    assert [b["reason"] for b in bodies(running, "guard.verdict", proposal_of(running, card))] == [
        "rollback-deploy is no longer declared for checkout"
    ]
    assert [b["changed"] for b in bodies(running, "config.reloaded")][-2:] == [
        ["roles"],
        ["actions", "roles"],
    ]


@in_one_bot
async def test_a_confirmed_rule_fires_once_and_its_other_guards_apply(
    running: Stage, tmp_path: Path
) -> None:
    rules = RULES.format(plane=running.plane.url)
    config = await asyncio.to_thread(configured, tmp_path, rules)
    read = await asyncio.to_thread(load, config, {})
    assert await running.reload(actions=read.actions)
    before = running.effects

    asked, card = await proposed(running, "restart-workers")
    assert running.effects == before

    await running.press(RESPONDER, card, CONFIRM)
    again = await running.private_reply(
        RESPONDER, running.press(RESPONDER, card, CONFIRM, stale=True)
    )
    assert "Already confirmed" in again
    await running.card(asked, "succeeded.")
    assert running.effects == before + 1

    anew, second = await proposed(running, "restart-workers")
    await running.press(RESPONDER, second, CONFIRM)
    await running.note(anew, "restart-workers for checkout")
    assert running.effects == before + 1

    first = bodies(running, "guard.verdict", proposal_of(running, card))
    assert [(v["guard"], v["verdict"]) for v in first] == [
        (name, "passed")
        for name in (
            "require_approval", "digest", "one_order", "params", "channel", "freeze", "rate_limit",
            "blast_radius", "dry_run", "drift",
        )
    ]  # fmt: skip
    last = bodies(running, "guard.verdict", proposal_of(running, second))[-1]
    assert (last["guard"], last["verdict"]) == ("rate_limit", "refused")


def configured(folder: Path, rules: str) -> Path:
    (folder / "reflexes.toml").write_text(rules)
    config = folder / "kortex.toml"
    config.write_text(
        '[reflexes]\nfile = "reflexes.toml"\n'
        f'[database]\nurl = "sqlite+aiosqlite:///{folder}/kortex.db"\n'
    )
    return config


@pytest.fixture
def at_rest(_nothing_blocks_the_loop: BlockBuster) -> None:
    """A command line on a loop of its own."""
    _nothing_blocks_the_loop.deactivate()


@pytest.mark.usefixtures("at_rest")
def test_check_counts_the_rules(tmp_path: Path) -> None:
    settings = load(configured(tmp_path, RULES.format(plane="http://127.0.0.1:9")), {})

    found = {f.part: f for f in asyncio.run(examine(settings))}

    assert found["actions"].ok
    assert "restart-workers; 1 of them in reflexes.toml" in found["actions"].detail


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("require_approval = false", "reflexes.toml:8: reflexes.0.guards.require_approval"),
        ('rate_limit = "often"', 'rate_limit: must look like "3/1h"'),
    ],
)
def test_check_refuses_an_invalid_rule(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rule: str, words: str
) -> None:
    rules = RULES.format(plane="http://127.0.0.1:9").replace('rate_limit = "1/1h"', rule)
    config = configured(tmp_path, rules)

    with pytest.raises(SystemExit) as ended:
        cli.main(("check", "--config", str(config)))

    told = capsys.readouterr()
    assert ended.value.code != 0
    assert words in told.out + told.err


async def test_workers_restart_with_every_table_that_a_reload_accepts(
    shared_stage: Stage,
) -> None:
    assert shared_stage.service.reload.sections == frozenset(RELOADED)
