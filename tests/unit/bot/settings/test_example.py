"""The documented configuration is a valid one and names every setting there is."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from bot.actions.catalog import ActionCatalog
from bot.settings.model import Settings
from bot.settings.reading import load, parse
from bot.settings.reflexes import ReflexGuards, ReflexSettings
from bot.wiring.rules import action_rules

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

    assert settings.llm.fallback_providers == ("openai",)
    assert [a.name for a in settings.actions] == ["rollback-deploy"]


def test_what_the_example_shows_of_a_rota_is_valid_and_whole() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    shown = re.search(r"^# \[roles\.on-call\.oncall\](?:.*\n)(?:# .*\n)+", text, re.MULTILINE)
    assert shown
    rota = parse(re.sub("^# ", "", shown[0], flags=re.MULTILINE), "e", {}).roles["on-call"].oncall

    assert rota is not None
    assert rota.model_fields_set == set(type(rota).model_fields)


def test_what_the_example_shows_of_alerts_is_valid_and_whole() -> None:
    text = EXAMPLE.read_text(encoding="utf-8")
    shown = re.search(r"^# \[\[alerts\]\](?:.*\n)(?:# .*\n)+", text, re.MULTILINE)
    assert shown
    (rule,) = parse(re.sub("^# ", "", shown[0], flags=re.MULTILINE), "e", {}).alerts

    assert rule.model_fields_set == set(type(rule).model_fields)


@pytest.mark.parametrize("section", ["slack", "http", "database", "admins"])
def test_the_example_shows_every_setting_of_a_section(section: str) -> None:
    model: type[BaseModel] = Settings.model_fields[section].annotation  # type: ignore[assignment]
    text = EXAMPLE.read_text(encoding="utf-8")
    table = text.split(f"[{section}]", 1)[1].split("\n[", 1)[0]

    missing = [name for name in model.model_fields if f"{name} =" not in table]

    assert missing in ([], ["api_base_url"])
