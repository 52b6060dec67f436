"""kortex.toml: what is accepted, and that an error names file, line and key."""

import re
from pathlib import Path

import pytest

from bot.settings.reading import ConfigurationError, load, parse


def test_an_empty_file_is_the_embedded_default() -> None:
    settings = parse("", "kortex.toml", {})

    assert settings.database.url.get_secret_value() == "sqlite:///kortex.db"
    assert settings.llm.default_provider == "triage"
    assert settings.http.host == "127.0.0.1"


def test_the_environment_is_substituted_and_defaults_apply() -> None:
    text = '[slack]\nbot_token = "${TOKEN}"\napi_base_url = "${BASE:-http://127.0.0.1/api/}"\n'

    settings = parse(text, "kortex.toml", {"TOKEN": "xoxb-1\n"})

    assert settings.slack.bot_token.get_secret_value() == "xoxb-1"
    assert settings.slack.api_base_url == "http://127.0.0.1/api/"


def test_a_missing_variable_is_empty_not_an_error() -> None:
    settings = parse('[llm.providers.openai]\napi_key = "${OPENAI_API_KEY}"\n', "k.toml", {})

    assert settings.llm.providers["openai"].api_key.get_secret_value() == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[slack]\n\nbot_tokn = 'x'\n", "k.toml:3: slack.bot_tokn: unknown key"),
        (
            "[slack]\nstream = 'live'\n",
            "k.toml:2: slack.stream: must be 'auto', 'native' or 'edit'",
        ),
        (
            "[slack]\nedits_per_minute = 3\n",
            "k.toml:2: slack.edits_per_minute: must be 0 (not paced) or at least 20",
        ),
        ("[http]\nport = 70000\n", "k.toml:2: http.port:"),
        (
            "[llm]\nmax_tool_depth = 8\nsession_idle_ttl = 'a week'\n",
            "k.toml:3: llm.session_idle_ttl:",
        ),
        (
            "[[channels]]\nmatch = 'a'\n[[channels]]\nmatch = 'b'\nconfirm = ['sre']\n",
            "k.toml:5: channels.confirm: role 'sre' is not defined",
        ),
        ("[[actions]]\nname = 'Restart Now'\n", "k.toml:2: actions.0.name:"),
        ("[llm.budget]\ndaily_usd_limit = -1\n", "k.toml:2: llm.budget.daily_usd_limit:"),
        ("not toml", "k.toml: not valid TOML"),
        (
            "[llm.privacy]\nredact_secrets = false\n",
            "k.toml:2: llm.privacy.redact_secrets: cannot be switched off, so that no secret leaves",
        ),
        *[
            (
                f"[{table}]\ntoken = 'a\\u{bad}b'\n".replace("'", '"'),
                f"k.toml:2: {table}.token: holds",
            )
            for table in ("observe.logs", "control_plane", "platform.connections.a")
            for bad in ("000a", "00e9", "0000")
        ],
        *[
            (f"[roles.sre]\nusers = []\n[roles.sre.oncall]\n{rota}\n", f"k.toml:{line}")
            for rota, line in (
                ("kind = 'pagerduty'\nurl = 'https://api.pagerduty.com'", "3: roles.sre.oncall: "),
                (
                    "kind = 'pagerduty'\nurl = 'x'\nschedules = ['PI7DH85']",
                    "5: roles.sre.oncall.url",
                ),
                ("kind = 'json'\nurl = 'http://rota/'", "3: roles.sre.oncall: "),
                ("kind = 'json'\nurl = 'http://rota/'\npath = '$.a'", "3: roles.sre.oncall: "),
                (
                    "kind = 'json'\nurl = 'http://rota/'\npath = '[]'\ntimeout = '9s'",
                    "7: roles.sre.oncall.timeout",
                ),
                ("kind = 'opsgenie'\nurl = 'http://rota/'", "4: roles.sre.oncall.kind"),
            )
        ],
    ],
)
def test_an_error_names_file_line_and_key(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        parse(text, "k.toml", {})

    assert message in str(raised.value)


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        load(tmp_path / "kortex.toml", {})


def test_secrets_are_collected_and_never_printed() -> None:
    settings = parse(
        '[slack]\nbot_token = "xoxb-very-secret"\n[database]\nurl = "sqlite+aiosqlite:///k.db"\n',
        "k",
        {},
    )

    assert "xoxb-very-secret" in settings.secrets()
    assert "xoxb-very-secret" not in repr(settings)


def test_the_documented_privacy_table_is_accepted() -> None:
    text = "[llm.privacy]\nredact_pii = true\nredact_secrets = true\nlocal_only = false\n"
    assert parse(text, "k.toml", {}).llm.privacy.redact_pii


WINDOW = "[[freeze.windows]]\nfrom = 2026-12-20T00:00:00Z\nuntil = {until}\n{more}\n"
LATER, EARLIER = "2027-01-02T00:00:00Z", "2026-12-19T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WINDOW.format(until=EARLIER, more=""), "k.toml:3: freeze.windows.0.until: is not after"),
        (WINDOW.format(until="2026-12-20T00:00:00Z", more=""), "k.toml:3: freeze.windows.0.until"),
        (WINDOW.format(until=LATER, more="actions = []"), "k.toml:4: freeze.windows.0.actions"),
        (WINDOW.format(until=LATER, more="products = []"), "k.toml:4: freeze.windows.0.products"),
        (WINDOW.format(until=LATER, more="actions = ['rollbak']"), "k.toml:4: freeze.windows."),
        ("[policy]\ndenied = ['core__get_lgs']\n", "k.toml:2: policy.denied: 'core__get_lgs'"),
        ("[policy]\ndenied = ['get_logs']\n", "k.toml:2: policy.denied: 'get_logs'"),
        ("[policy]\ndenied = ['']\n", "k.toml:2: policy.denied: ''"),
        ("[[policy.channels]]\nmatch = ''\ntools = []\n", "k.toml:2: policy.channels.0.match"),
        ("[[channels]]\nmatch = 'x'\nsession = '{chanel}'\n", "k.toml:3: channels.0.session"),
        ("[slack]\nlink_hosts = ['https://x.com/']\n", "k.toml:2: slack.link_hosts"),
        ("[slack]\nlink_hosts = ['*.example.com']\n", "k.toml:2: slack.link_hosts"),
        ("[llm.privacy]\nlocal_hosts = ['0.0.0.0/0']\n", "k.toml:2: llm.privacy.local_hosts"),
        ("[llm.privacy]\nlocal_hosts = ['::/0']\n", "k.toml:2: llm.privacy.local_hosts"),
        ("[llm.privacy]\nlocal_hosts = ['10.0.0.0/99']\n", "k.toml:2: llm.privacy.local_hosts"),
        ("[llm.privacy]\nlocal_hosts = ['300.1.1.1']\n", "k.toml:2: llm.privacy.local_hosts"),
        ("[llm.providers.bedrock]\nregion = 'evil.com/'\n", "k.toml:2: llm.providers.bedrock."),
    ],
)
def test_an_empty_privacy_rule_is_refused(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        parse(text, "k.toml", {})


def test_denied_frozen_and_local_settings_are_accepted() -> None:
    text = """
[slack]
link_hosts = ["Grafana.example.com", "wiki"]
[policy]
denied = ["core__kubectl_*", "plugin__jira_*", "mcp__*", "*", "*__delete*", "core__get_logs"]
[llm.privacy]
local_hosts = ["10.0.0.0/8", "::1", "fd00::/8", "[::1]", "*.internal", "ollama", "127.0.0.1"]
[[freeze.windows]]
from = 2026-12-20T00:00:00Z
until = 2026-12-20T00:00:01Z
actions = ["roll*", "*"]
[[actions]]
name = "rollback"
description = "d"
endpoint = { kind = "rehearsal" }
"""
    settings = parse(text, "k.toml", {})

    assert settings.slack.link_hosts == ("grafana.example.com", "wiki")
    assert len(settings.policy.denied) == 6
