"""reflexes.toml: what a rule may say, and where it says what it may not."""

from pathlib import Path

import pytest

from bot.settings.reading import ConfigurationError, load

MAIN = """
[reflexes]
file = "rules/reflexes.toml"
[roles.sre]
users = ["U1"]
[[actions]]
name = "rollback-deploy"
description = "Roll back"
endpoint = { url = "http://plane/rollback" }
"""
RULES = """\
[[reflexes]]
name = "restart-workers"
description = "Restart"
endpoint = { url = "http://plane/restart", token = "${TOKEN}" }

[reflexes.guards]
rate_limit = "3/1h"
four_eyes = true

[[reflexes]]
name = "drain-hosts"
description = "Drain"
endpoint = { url = "http://plane/drain" }

[reflexes.guards]
confirm = ["sre"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kortex.toml").write_text(MAIN)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "reflexes.toml").write_text(RULES)
    return tmp_path


def test_rules_are_actions_with_guards_and_masked_tokens(folder: Path) -> None:
    settings = load(folder / "kortex.toml", {"TOKEN": "very-secret"})

    names = [a.name for a in settings.actions]
    assert names == ["rollback-deploy", "restart-workers", "drain-hosts"]
    assert (settings.actions[1].rate_limit, settings.actions[1].four_eyes) == ("3/1h", True)
    assert settings.actions[2].confirm == ("sre",)
    assert "very-secret" in settings.secrets()


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            'description = "Drain"',
            'description = "Drain"\ntrigger = "alert"',
            'reflexes.toml:13: reflexes.1.trigger: must be "manual"',
        ),
        (
            'confirm = ["sre"]',
            "require_approval = false",
            "reflexes.toml:16: reflexes.1.guards.require_approval: must be true",
        ),
        (
            'confirm = ["sre"]',
            'confirm = ["cto"]',
            "reflexes.toml:16: reflexes.confirm: role 'cto'",
        ),
        (
            'rate_limit = "3/1h"',
            'rate = "3/1h"',
            "reflexes.toml:7: reflexes.0.guards.rate: unknown",
        ),
        ("drain-hosts", "rollback-deploy", "reflexes.toml:11: reflexes.name: 'rollback-deploy' is"),
        ("drain-hosts", "restart-workers", "reflexes.toml:11: reflexes.name: 'restart-workers' is"),
        ("[[reflexes]]", "[[reflexes", "reflexes.toml: not valid TOML"),
    ],
)
def test_an_invalid_rule_is_refused_with_its_line(
    folder: Path, before: str, after: str, message: str
) -> None:
    file = folder / "rules" / "reflexes.toml"
    file.write_text(after.join(file.read_text().rsplit(before, 1)))

    with pytest.raises(ConfigurationError) as raised:
        load(folder / "kortex.toml", {})

    assert message in str(raised.value)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "rules" / "reflexes.toml").unlink()

    with pytest.raises(ConfigurationError, match=r"reflexes\.toml: no such file"):
        load(folder / "kortex.toml", {})
