"""`kortex check` says whether alerts can arrive, and of each rule whether its channel can be posted in."""

from collections.abc import AsyncIterator

import pytest

from bot.cli.check.slack import alert_findings
from bot.demo.workspace.seeds import CHECKOUT
from bot.demo.workspace.state import Setup, Workspace
from bot.settings.model import Settings
from tests.fixtures_workspace import served
from tests.slack_ingress import IDENTITY

TOKENS = {"alertmanager_token": "x"}
RULE = {"name": "a", "channel": CHECKOUT}


@pytest.fixture
async def workspace() -> AsyncIterator[Workspace]:
    async with served(Setup()) as workspace:
        yield workspace


def settings(workspace: Workspace, http: dict[str, str], *rules: dict[str, object]) -> Settings:
    return Settings.model_validate(
        {
            "slack": {
                "bot_token": workspace.bot_token,
                "api_base_url": f"{workspace.origin}/api/",
            },
            "http": http,
            "alerts": [{**RULE, **rule} for rule in rules],
            "channels": [{"match": "incident-*", "products": ["checkout"]}],
        }
    )


@pytest.mark.parametrize(
    ("http", "rules", "mark", "words"),
    [
        ({}, [], "not set", "no [[alerts]]"),
        (TOKENS, [], "WARNING", "http.alertmanager_token is set, but there is no [[alerts]]"),
        ({}, [{}], "FAILED", "set one of http.alertmanager_token"),
        (TOKENS, [{}], "ok", "/alerts/v1/alertmanager; at most 20 threads and 10 investigations"),
    ],
)
async def test_the_check_names_open_and_closed_alert_routes(
    workspace: Workspace,
    http: dict[str, str],
    rules: list[dict[str, object]],
    mark: str,
    words: str,
) -> None:
    (found,) = await alert_findings(settings(workspace, http, *rules), None)
    assert (found.part, found.mark) == ("alerts", mark)
    assert words in found.detail


async def test_an_alert_without_a_role_for_its_tools_is_reported(workspace: Workspace) -> None:
    tree = settings(workspace, TOKENS, {}).model_dump()
    blind = Settings.model_validate(tree | {"policy": {"roles": {"sre": {"tools": ["*"]}}}})
    told = [each.detail for each in await alert_findings(blind, None)]
    assert "allows it no tool" in told[1]


@pytest.mark.parametrize(
    ("rule", "mark", "words"),
    [
        ({}, "ok", "any labels → #incident-checkout, about the product in its labels (checkout)"),
        ({"match": {"team": "x"}, "product": "checkout"}, "ok", "team → #incident-checkout"),
        ({"product": "ledger"}, "WARNING", "ledger is not a product of #incident-checkout"),
        ({"channel": "C0NOWHERE"}, "FAILED", "C0NOWHERE cannot be read"),
    ],
)
async def test_a_rules_channel_is_checked(
    workspace: Workspace, rule: dict[str, object], mark: str, words: str
) -> None:
    _, found = await alert_findings(settings(workspace, TOKENS, rule), IDENTITY)
    assert (found.part, found.mark) == ("alerts a", mark)
    assert words in found.detail


async def test_an_unknown_channel_says_where_to_find_an_id(workspace: Workspace) -> None:
    _, found = await alert_findings(settings(workspace, TOKENS, {"channel": "C0NOWHERE"}), IDENTITY)
    assert found.mend.startswith("Compare the channel's ID")


async def test_a_channel_without_the_bot_is_reported(workspace: Workspace) -> None:
    roster = workspace.roster
    bot = workspace.app.bot_user_id
    roster.set_members(CHECKOUT, roster.channel(CHECKOUT).members - {bot})
    _, found = await alert_findings(settings(workspace, TOKENS, {}), IDENTITY)
    assert (found.mark, "invite it" in found.detail) == ("FAILED", True)
