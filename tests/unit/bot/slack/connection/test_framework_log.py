"""What Slack's libraries may say in our log."""

import pytest
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

from bot.slack.connection.framework_log import framework_logger


async def _nobody() -> AuthorizeResult:
    return AuthorizeResult(enterprise_id=None, team_id=None)


def test_a_token_in_the_environment_is_no_warning_at_every_start(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-of-the-environment")
    logger = framework_logger()
    AsyncApp(client=AsyncWebClient(), logger=logger, signing_secret="s", authorize=_nobody)
    assert caplog.messages == []
    logger.warning("something that people should know")
    assert caplog.messages == ["something that people should know"]
