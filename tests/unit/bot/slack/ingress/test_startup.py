"""Tokens that cannot work end the start with a text that says which and what to do."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import JsonValue

from bot.slack.ingress.access import SlackAccess, StartupError
from bot.slack.ingress.startup import check_slack

GOOD: dict[str, dict[str, JsonValue]] = {
    "auth.test": {"ok": True, "team_id": "T1", "user_id": "UBOT", "bot_id": "B1"},
    "apps.connections.open": {"ok": True, "url": "wss://localhost/link"},
    "bots.info": {"ok": True, "bot": {"id": "B1", "app_id": "A1"}},
}


@dataclass
class FakeSlack:
    answers: dict[str, dict[str, JsonValue] | str] = field(default_factory=lambda: {**GOOD})
    seen: list[tuple[str, str]] = field(default_factory=list)
    base_url: str = ""

    async def handle(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        self.seen.append((method, request.headers["authorization"]))
        answer = self.answers[method]
        if isinstance(answer, str):
            return web.Response(text=answer, content_type="text/html", status=503)
        return web.json_response(answer)

    def access(self) -> SlackAccess:
        return SlackAccess("socket", self.base_url, "xoxb-1", "xapp-1", "secret")


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    slack = FakeSlack()
    app = web.Application()
    app.router.add_route("*", "/api/{method}", slack.handle)
    async with TestServer(app) as server:
        slack.base_url = str(server.make_url("/api/"))
        yield slack


async def test_valid_tokens_return_the_bots_identity(slack: FakeSlack) -> None:
    identity = await check_slack(slack.access())
    assert (identity.team, identity.bot_user, identity.bot_id) == ("T1", "UBOT", "B1")
    assert identity.app_id == "A1"
    assert slack.seen == [
        ("auth.test", "Bearer xoxb-1"),
        ("apps.connections.open", "Bearer xapp-1"),
        ("bots.info", "Bearer xoxb-1"),
    ]


@pytest.mark.parametrize(
    "hostile", ["[" * 200_000, " " * 2_000_000 + '{"ok": true}', '{"ok": "\\ud800"}', "\x1b[2J"]
)
async def test_an_answer_that_is_not_slacks_means_a_wrong_address(
    slack: FakeSlack, hostile: str
) -> None:
    slack.answers["auth.test"] = hostile
    with pytest.raises(StartupError, match="no usable answer") as told:
        await check_slack(slack.access())
    assert told.value.key == "slack.api_base_url"


async def test_http_mode_opens_no_connection(slack: FakeSlack) -> None:
    await check_slack(replace(slack.access(), mode="http", app_token=""))
    assert [method for method, _ in slack.seen] == ["auth.test", "bots.info"]


async def test_an_unknown_app_id_does_not_stop_the_start(slack: FakeSlack) -> None:
    slack.answers["bots.info"] = {"ok": False, "error": "missing_scope"}
    assert (await check_slack(slack.access())).app_id == ""


@pytest.mark.parametrize(
    ("method", "key"),
    [("auth.test", "slack.bot_token"), ("apps.connections.open", "slack.app_token")],
)
@pytest.mark.parametrize("error", ["invalid_auth", "not_allowed_token_type", "token_revoked", "x"])
async def test_a_refused_token_names_the_setting_and_hides_the_token(
    slack: FakeSlack, method: str, key: str, error: str
) -> None:
    slack.answers[method] = {"ok": False, "error": error}
    with pytest.raises(StartupError) as caught:
        await check_slack(slack.access())
    assert caught.value.key == key
    assert error in str(caught.value)
    assert "xoxb-1" not in str(caught.value)
    assert "xapp-1" not in str(caught.value)


@pytest.mark.parametrize("answer", ["<html>busy</html>", "", "[]"])
async def test_an_address_that_is_not_slack_is_reported(slack: FakeSlack, answer: str) -> None:
    slack.answers["auth.test"] = answer
    with pytest.raises(StartupError) as caught:
        await check_slack(slack.access())
    assert caught.value.key == "slack.api_base_url"


async def test_a_closed_port_is_reported(slack: FakeSlack, unused_tcp_port: int) -> None:
    access = replace(slack.access(), api_base_url=f"http://127.0.0.1:{unused_tcp_port}/api")
    with pytest.raises(StartupError) as caught:
        await check_slack(access)
    assert caught.value.key == "slack.api_base_url"


async def test_a_user_token_is_refused(slack: FakeSlack) -> None:
    slack.answers["auth.test"] = {"ok": True, "team_id": "T1", "user_id": "U1"}
    with pytest.raises(StartupError, match="xoxb-"):
        await check_slack(slack.access())


@pytest.mark.parametrize(
    ("missing", "mode", "key"),
    [
        ("bot_token", "socket", "slack.bot_token"),
        ("bot_token", "http", "slack.bot_token"),
        ("app_token", "socket", "slack.app_token"),
        ("signing_secret", "http", "slack.signing_secret"),
    ],
)
async def test_an_empty_credential_of_the_mode_is_reported_before_any_call(
    slack: FakeSlack, missing: str, mode: str, key: str
) -> None:
    changes: dict[str, Any] = {"mode": mode, missing: " "}
    access = replace(slack.access(), **changes)
    with pytest.raises(StartupError) as caught:
        await check_slack(access)
    assert caught.value.key == key
    assert slack.seen == []


def test_secrets_do_not_show_in_a_repr(slack: FakeSlack) -> None:
    shown = repr(slack.access())
    assert "xoxb-1" not in shown
    assert "secret" not in shown.replace("signing_secret", "")
