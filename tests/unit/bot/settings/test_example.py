"""The documented configuration is a valid one and names every setting there is."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from bot.actions.catalog import ActionCatalog
from bot.app.rules import action_rules
from bot.settings.model import Settings
from bot.settings.reading import load, parse
from bot.settings.reflexes import ReflexGuards, ReflexSettings

EXAMPLE = Path(__file__).parents[4] / "docs" / "kortex.example.toml"


REFLEXES = EXAMPLE.with_name("reflexes.example.toml")


def test_the_rules_of_the_example_are_valid(tmp_path: Path) -> None:
    (tmp_path / "kortex.toml").write_text('[reflexes]\nfile = "reflexes.toml"\n')
    (tmp_path / "reflexes.toml").write_text(REFLEXES.read_text())

    settings = load(tmp_path / "kortex.toml", {})

    (rule,) = ActionCatalog(action_rules(settings)).all()
    assert rule.rule.name == "restart-workers"
    assert rule.rule.max_objects == 3


@pytest.mark.parametrize("name", [*ReflexSettings.model_fields, *ReflexGuards.model_fields])
def test_the_rules_of_the_example_name_every_setting(name: str) -> None:
    assert name in REFLEXES.read_text(encoding="utf-8")


def test_the_example_is_valid() -> None:
    settings = load(EXAMPLE, {})

    assert settings.llm.default_provider == Settings().llm.default_provider
    assert [c.match for c in settings.channels] == ["incident-*", "@direct"]


def shown(*headers: str) -> Settings:
    """The commented lines from each of these headers to the next empty line, as settings."""
    text = EXAMPLE.read_text(encoding="utf-8")
    found = [
        re.search(rf"^# {re.escape(header)}(?:.*\n)(?:# .*\n)+", text, re.MULTILINE)
        for header in headers
    ]
    blocks = [each[0] for each in found if each is not None]
    assert len(blocks) == len(headers)
    return parse(re.sub("^# ", "", "\n".join(blocks), flags=re.MULTILINE), "e", {})


def test_the_example_of_a_rota_is_valid_and_complete() -> None:
    rota = shown("[roles.on-call.oncall]").roles["on-call"].oncall

    assert rota is not None
    assert rota.model_fields_set == set(type(rota).model_fields)


def test_the_example_of_alerts_is_valid_and_complete() -> None:
    (rule,) = shown("[[alerts]]").alerts

    assert rule.model_fields_set == set(type(rule).model_fields)


def test_the_example_of_actions_is_valid_and_complete() -> None:
    (action,) = shown("[[actions]]").actions

    assert action.model_fields_set == set(type(action).model_fields)


def test_the_example_of_mcp_servers_is_valid_and_complete() -> None:
    servers = shown(
        "[mcp.servers.tickets]", "[mcp.servers.tickets.tools]", "[mcp.servers.runbooks]"
    ).mcp.servers

    keys = [each.model_fields_set for each in servers.values()]
    assert set().union(*keys) == set(type(servers["tickets"]).model_fields)


@pytest.mark.parametrize("section", ["slack", "http", "database", "admins"])
def test_the_example_shows_every_setting_of_a_section(section: str) -> None:
    model: type[BaseModel] = Settings.model_fields[section].annotation  # type: ignore[assignment]
    text = EXAMPLE.read_text(encoding="utf-8")
    table = text.split(f"[{section}]", 1)[1].split("\n[", 1)[0]

    missing = [name for name in model.model_fields if f"{name} =" not in table]

    assert missing in ([], ["api_base_url"])
