"""`app-manifest.yml` grants what the code uses, no more, and is a manifest Slack accepts.

Limits and rules: https://docs.slack.dev/reference/app-manifest.
"""

import ast
import re
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field
from slack_bolt.async_app import AsyncBoltRequest

import bot.slack
from bot.slack.listeners import replies
from bot.slack.listeners.commands import COMMAND, Subcommand
from tests.slack_ingress import APP, TEAM, Ingress, command, event
from tests.slack_manifest import COMMANDS, EVENTS, METHODS, listened, scopes

ROOT = Path(bot.slack.__path__[0]).parents[1]
METHOD = re.compile(
    r"(?:agents|apps|assistant|auth|bots|chat|conversations|files|pins|reactions|team|usergroups"
    r"|users|views)\.[A-Za-z]+(?:\.[A-Za-z]+)*"
)


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)


class Metadata(Strict):
    major_version: int = Field(ge=2, le=2)
    minor_version: int = Field(ge=1)


class Display(Strict):
    name: str = Field(min_length=1, max_length=35)
    description: str = Field(max_length=140)
    long_description: str = Field(min_length=174, max_length=4_000)
    background_color: str = Field(pattern=r"^#(?:[0-9a-fA-F]{3}){1,2}$")


class AppHome(Strict):
    home_tab_enabled: bool
    messages_tab_enabled: bool
    messages_tab_read_only_enabled: bool


class BotUser(Strict):
    display_name: str = Field(max_length=80, pattern=r"^[a-z0-9._-]+$")
    always_online: bool


class Prompt(Strict):
    title: str = Field(min_length=1, max_length=50)
    message: str = Field(min_length=1, max_length=500)


class AgentView(Strict):
    agent_description: str = Field(min_length=1, max_length=300)
    suggested_prompts: list[Prompt] = Field(max_length=4)


class SlashCommand(Strict):
    command: str = Field(max_length=32, pattern=r"^/[a-z0-9_-]+$")
    description: str = Field(min_length=1, max_length=2_000)
    usage_hint: str = Field(max_length=1_000)
    should_escape: bool


class Features(Strict):
    app_home: AppHome
    bot_user: BotUser
    agent_view: AgentView
    slash_commands: list[SlashCommand] = Field(max_length=50)


class Scopes(Strict):
    bot: list[str] = Field(max_length=255)


class OAuth(Strict):
    scopes: Scopes


class Subscriptions(Strict):
    bot_events: list[str] = Field(max_length=100)


class Interactivity(Strict):
    is_enabled: bool


class Settings(Strict):
    event_subscriptions: Subscriptions
    interactivity: Interactivity
    org_deploy_enabled: bool
    socket_mode_enabled: bool
    token_rotation_enabled: bool


class Manifest(Strict):
    metadata: Metadata = Field(alias="_metadata")
    display_information: Display
    features: Features
    oauth_config: OAuth
    settings: Settings


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    return Manifest.model_validate(yaml.safe_load((ROOT / "app-manifest.yml").read_text()))


def test_suggested_prompts_are_the_same_everywhere(manifest: Manifest) -> None:
    suggested = manifest.features.agent_view.suggested_prompts
    assert tuple((each.title, each.message) for each in suggested) == replies.PROMPTS


def strings_in_the_slack_package() -> set[str]:
    sources = (ROOT / "bot" / "slack").rglob("*.py")
    nodes = (node for path in sources for node in ast.walk(ast.parse(path.read_text())))
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_the_manifest_has_slacks_structure_and_uses_socket_mode(manifest: Manifest) -> None:
    assert manifest.settings.socket_mode_enabled
    assert manifest.settings.interactivity.is_enabled


def test_the_scopes_are_exactly_those_the_code_needs(manifest: Manifest) -> None:
    assert set(manifest.oauth_config.scopes.bot) == scopes()


def test_the_methods_in_the_code_are_those_of_the_scope_table() -> None:
    called = {each for each in strings_in_the_slack_package() if METHOD.fullmatch(each)}
    assert called == set(METHODS)


def test_the_subscriptions_are_those_the_code_listens_to(manifest: Manifest) -> None:
    assert set(manifest.settings.event_subscriptions.bot_events) == set(EVENTS)


@pytest.mark.parametrize("name", sorted({listened(each) for each in EVENTS}))
async def test_every_subscribed_event_has_a_listener(name: str) -> None:
    response = await Ingress().send(event({"type": name}))
    assert response.status == 200


async def test_an_event_without_a_subscription_has_no_listener() -> None:
    response = await Ingress().send(event({"type": "reaction_added"}))
    assert response.status == 404


def test_lists_have_no_duplicates(manifest: Manifest) -> None:
    granted = manifest.oauth_config.scopes.bot
    events = manifest.settings.event_subscriptions.bot_events
    assert (sorted(set(granted)), sorted(set(events))) == (granted, events)


def test_the_commands_are_those_the_code_answers(manifest: Manifest) -> None:
    assert tuple(each.command for each in manifest.features.slash_commands) == COMMANDS


def test_the_usage_hint_and_the_help_name_every_sub_command(manifest: Manifest) -> None:
    named = re.findall(rf"^`{COMMAND} (\w+)", replies.COMMAND_HELP, re.MULTILINE)

    assert manifest.features.slash_commands[0].usage_hint == " | ".join(Subcommand)
    assert sorted(named) == sorted(Subcommand)


@pytest.mark.parametrize("name", COMMANDS)
async def test_every_command_is_answered(name: str) -> None:
    body = {**command("help"), "command": name}
    response = await Ingress().app().async_dispatch(AsyncBoltRequest(mode="socket_mode", body=body))
    assert response.status == 200


async def test_a_foreign_command_is_not_answered() -> None:
    body = {"command": "/other", "text": "", "team_id": TEAM, "api_app_id": APP, "user_id": "U1"}
    response = await Ingress().app().async_dispatch(AsyncBoltRequest(mode="socket_mode", body=body))
    assert response.status == 404
