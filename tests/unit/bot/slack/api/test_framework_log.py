"""What Slack's libraries may say in our log."""

import pytest

from bot.slack.api.web_api import framework_logger
from bot.slack.listeners.ports import IngressSettings
from tests.slack_ingress import IDENTITY, Ingress


def test_a_token_in_the_environment_causes_no_repeated_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-of-the-environment")
    Ingress(IngressSettings(IDENTITY, signing_secret="s")).app()
    assert caplog.messages == []
    framework_logger().warning("something that people should know")
    assert caplog.messages == ["something that people should know"]
