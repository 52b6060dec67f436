"""`kortex incident report --post` when Slack refuses the message: the real reason, and the file stays."""

from pathlib import Path

import pytest
from blockbuster import BlockBuster

from bot.cli import incident
from bot.demo.workspace.errors import RateLimited, SlackRefused
from tests.fakes.model_server import Recorded, Round
from tests.fixtures_service import Start, stage
from tests.scenario.test_incident_report import KEY, detector, kortex
from tests.slack_request_gate import SlackRequestGate
from tests.stage import Stage

__all__ = ["detector", "stage"]


class Refusing(SlackRequestGate):
    """Slack refuses every message."""

    def __init__(self, refusal: SlackRefused) -> None:
        super().__init__()
        self.refusal = refusal

    def take(self, method: str, tier: int | None, channel: str) -> None:
        super().take(method, tier, channel)
        refusals = {"chat.postMessage": self.refusal}
        if method in refusals:
            raise refusals[method]


def answer(request: Recorded) -> Round:
    del request
    return Round(text=("The deploy did it.",))


async def test_a_refused_post_states_slacks_reason_and_keeps_the_file(
    stage: Start,
    tmp_path: Path,
    detector: BlockBuster,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with stage(answer, {"audit": {"key": KEY, "checkpoint_stdout": False}}) as running:
        asked = await running.ask("@kortex why is checkout slow?", running.newcomer())
        await running.answer(asked)
        detector.deactivate()
        monkeypatch.setattr(incident, "POST_TIMEOUT_S", 3.0)
        said = {
            refusal.code: await refused(running, refusal, tmp_path, capfd)
            for refusal in (
                SlackRefused("not_in_channel"),
                SlackRefused("channel_not_found"),
                SlackRefused("invalid_auth"),
                SlackRefused("restricted_action"),
                RateLimited(30),
            )
        }
        detector.activate()

    assert "not_in_channel. Invite Kortex there (/invite @kortex)" in said["not_in_channel"]
    assert "channel_not_found. Kortex cannot see the channel" in said["channel_not_found"]
    assert "invalid_auth. Slack refuses slack.bot_token" in said["invalid_auth"]
    assert "restricted_action. Run the command again" in said["restricted_action"]
    assert "in time. chat.postMessage: rate limited for 30 s" in said["ratelimited"]


async def refused(
    running: Stage, refusal: SlackRefused, folder: Path, capfd: pytest.CaptureFixture[str]
) -> str:
    """What the command says on standard error; the report is in its file all the same."""
    running.workspace.request_gate = Refusing(refusal)
    file = folder / f"{refusal.code}.md"
    report = ["incident", "report", "incident-checkout", "--output", str(file), "--post"]
    assert await kortex(running, report) == 1
    assert file.read_text("utf-8").startswith("# Incident report")
    return capfd.readouterr().err
