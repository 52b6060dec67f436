"""`kortex incident report` on a session of a running bot: into a file, and into its thread."""

import asyncio
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from blockbuster import BlockBuster

from bot.cli.main import main
from bot.demo.workspace.seeds import OTHER_BOT, RESPONDER
from tests.fakes.control_plane_server import says
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import Start, stage
from tests.stage import CONFIRM, Stage, results
from tests.zones import zones_in

__all__ = ["stage"]

KEY = hashlib.sha256(b"the audit log of the tests").hexdigest()
PROPOSAL = {
    "action": "rollback-deploy",
    "product": "checkout",
    "params": {"version": "v2.3.7"},
    "rationale": "p99 rose | <b>with</b> the deploy",
}
CONFIG = """
[slack]
bot_token = "{slack.bot_token}"
api_base_url = "{slack.api_base_url}"
[database]
url = "sqlite+aiosqlite:///{folder}/kortex.db"
[audit]
key = "{key}"
"""


LEAKED = "xoxb-" + "123456789012-123456789012-" + "AbCdEfGhIjKlMnOpQrStUvWx"
SAID = f"@priya rolled it back | # forged <https://evil.test|ok>\n## Decisions\n{LEAKED}"


def propose(request: Recorded) -> Round:
    if results(request):
        return Round(text=("The deploy did it [E1].",))
    return Round(calls=(Call("core__propose_action", PROPOSAL),))


@pytest.fixture
def detector(_nothing_blocks_the_loop: BlockBuster) -> BlockBuster:
    """A command may block its own loop."""
    return _nothing_blocks_the_loop


async def kortex(running: Stage, arguments: Sequence[str]) -> object:
    config = running.folder / "kortex.toml"
    slack = running.settings.slack.model_copy(
        update={"bot_token": running.settings.slack.bot_token.get_secret_value()}
    )
    config.write_text(CONFIG.format(slack=slack, folder=running.folder, key=KEY), "utf-8")

    def run() -> object:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--config", str(config)])
        return ended.value.code

    with ThreadPoolExecutor(1) as thread:
        return await asyncio.get_running_loop().run_in_executor(thread, run)


async def test_a_report_shows_the_incident_and_is_posted_once(
    stage: Start, tmp_path: Path, detector: BlockBuster
) -> None:
    # What people say there is no question of its own, whose answer would come at any moment.
    settings = {
        "audit": {"key": KEY, "checkpoint_stdout": False},
        "slack": {"follow_up": "mention"},
    }
    async with stage(propose, settings) as running:
        running.plane.post = says(200, {"rolled_back_to": "v2.3.7"})
        asked = await running.ask("@kortex why is checkout slow?", running.newcomer())
        await running.answer(asked)
        await running.press(RESPONDER, await running.card(asked), CONFIRM)
        await running.card(asked, "rolled_back_to")
        for user, words in ((RESPONDER, SAID), (OTHER_BOT, "ALERT latency")):
            await running.workspace.say(user, asked.channel, words, asked.thread)
        before = len(running.said(asked))
        detector.deactivate()
        file = tmp_path / "report.md"
        report = ["incident", "report", "incident-checkout", "--output", str(file), "--post"]
        assert await kortex(running, report) == 0
        text = file.read_text("utf-8")
        assert zones_in(text) == {"UTC", "Z"}  # Z is UTC, in results as they came
        posted = "\n".join(running.said(asked)[before:])
        count = len(running.said(asked))
        assert await kortex(running, [*report[:-3], "--output", str(file)]) == 0
        assert len(running.said(asked)) == count
        assert await kortex(running, ["audit", "verify", "--checkpoint", str(file)]) == 0
        detector.activate()
    name = running.workspace.roster.users[RESPONDER].name
    assert text.startswith("# Incident report: incident-checkout")
    assert "### Roll back checkout to v2.3.7: succeeded" in text
    assert f"by {name} ({RESPONDER})" in text
    assert r"- Reason given, not checked: p99 rose \| &lt;b>with&lt;/b> the deploy" in text
    assert "> why is checkout slow?" in text
    assert "The deploy did it" in text
    assert "- Outcome: " in text
    assert "dispatch.intent: rollback-deploy, checkout" in text
    said = text.partition("## What people said")[2].partition("\n## Decisions\n")[0]
    site = f"https://kortex-local.slack.com/archives/{asked.channel}/p"
    assert "> @kortex why is checkout slow?" in said
    assert f"**{name}**:\n\n> @priya rolled it back | # forged ok (`https://evil.test`)" in said
    assert "> ## Decisions" in said
    assert "**pagerbot** (app):\n\n> ALERT latency" in said
    assert said.count(f"]({site}") == 3
    assert LEAKED not in text + posted
    assert f"]({site}" in posted
    assert "](http" in text  # the thread, the card and the answers are linked
    assert "- The chain was whole when this was written" in text
    assert "- Checkpoint: `kortex-audit/1 size=" in text
    assert "Incident report: incident-checkout" in posted


async def test_an_unknown_session_is_a_usage_error(stage: Start, detector: BlockBuster) -> None:
    async with stage(propose, {"audit": {"key": KEY, "checkpoint_stdout": False}}) as running:
        detector.deactivate()
        assert await kortex(running, ["incident", "report", "incident-nowhere"]) == 2
        detector.activate()


async def test_a_report_by_name_lists_the_other_threads_it_omits(
    stage: Start, tmp_path: Path, detector: BlockBuster, capfd: pytest.CaptureFixture[str]
) -> None:
    async with stage(propose, {"audit": {"key": KEY, "checkpoint_stdout": False}}) as running:
        for _ in range(2):
            asked = await running.ask("@kortex why is checkout slow?", RESPONDER)
            await running.answer(asked)
        ((first,), (newest,)) = running.query("SELECT id FROM sessions ORDER BY active_at")
        detector.deactivate()
        file = tmp_path / "report.md"
        report = ["incident", "report", "--output", str(file)]
        assert await kortex(running, [*report, "incident-checkout"]) == 0
        by_name = file.read_text("utf-8")
        assert await kortex(running, [*report, str(newest)]) == 0
        by_id = file.read_text("utf-8")
        detector.activate()

    told = "this is the newest incident of 2 threads named incident-checkout; the other thread"
    assert f"- Other threads are not in this report: {told} has no proposals" in by_name
    assert f"- Session: `{first}`" in by_name
    assert f"kortex: {told} has no proposals\n" in capfd.readouterr().err
    assert "Other threads" not in by_id
