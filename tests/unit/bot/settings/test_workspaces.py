"""Other workspaces in kortex.toml: installation, and the owners of roles and rules."""

import pytest
from cryptography.fernet import Fernet

from bot.app.live_config import LiveConfig
from bot.domain.channel import CLOSED, DIRECT, UNKNOWN, ChannelRule, channel_of, rules_for
from bot.domain.ids import TeamId
from bot.domain.roles import ConnectionRule, connections_of
from bot.domain.tenancy import HOME, tenant_of
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError, parse
from tools.products import Reading

KEY = Fernet.generate_key().decode()
SLACK = f"[slack]\nclient_id = '1.2'\nclient_secret = 's'\ntoken_keys = ['{KEY}', '']\n"
ROLES = """
[roles.lead]
users = ["U1"]
[roles.acme-lead]
workspace = "TACME"
users = ["U1"]
"""
WHOLE = f"""{SLACK}{ROLES}
[workspaces.TACME]
daily_usd_limit = 1.5
admins = ["acme-lead"]
[[channels]]
match = "incident-*"
confirm = ["lead"]
products = ["checkout"]
[[channels]]
workspace = "TACME"
match = "incident-*"
confirm = ["acme-lead"]
products = ["cart"]
"""


def refused(text: str) -> str:
    with pytest.raises(ConfigurationError) as found:
        parse(text, "k", {})
    return str(found.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[slack]\nclient_id = '1.2'\n", "k:1: slack: client_id needs client_secret"),
        (SLACK.replace(KEY, "A" * 44), "not a Fernet key"),
        (SLACK.replace(KEY, "é(" * 750), "not a Fernet key"),
        ("[workspaces.acme]\n", "not the id of a workspace"),
        ("[slack]\nallowed_workspaces = ['T*']\n", "not the id of a workspace"),
        ("[slack]\nredirect_url = 'kortex.example.com'\n", "the whole address"),
        ("[[channels]]\nmatch = '*'\nworkspace = 'TACME'\n", "add [workspaces.TACME]"),
        (ROLES, "add [workspaces.TACME]"),
        (f"{ROLES}[workspaces.TACME]\nadmins = ['lead']\n", "so it has no members here"),
        ("[[channels]]\nmatch = '*'\nworkspace = '*'\n", "add products"),
        (f"{ROLES}[workspaces.TACME]\nadmins = ['nobodys']\n", "not defined"),
        (
            f"{ROLES}[workspaces.TACME]\n[admins]\nroles = ['acme-lead']\n",
            "so it has no members here",
        ),
        (
            WHOLE.replace("['acme-lead']", "x").replace('["lead"]', '["acme-lead"]'),
            "has no members",
        ),
    ],
)
def test_a_permanent_denial_or_a_missing_secret_is_refused(text: str, told: str) -> None:
    assert told in refused(text)


def test_an_invalid_key_is_not_echoed() -> None:
    assert "hunter2" not in refused(SLACK.replace(KEY, "hunter2"))


def live_config() -> LiveConfig:
    found = LiveConfig(parse(WHOLE, "k", {}))
    found.home = TeamId("THOME")
    return found


def test_each_workspace_has_its_own_rules_roles_admins_and_limit() -> None:
    rules = live_config()
    at_home, at_acme = (
        channel_of(rules.channels_at(TeamId(team)), "incident-checkout").rule
        for team in ("THOME", "TACME")
    )

    assert (at_home.confirm, at_home.products) == (("lead",), ("checkout",))
    assert (at_acme.confirm, at_acme.products) == (("acme-lead",), ("cart",))
    assert (set(rules.roles_of(HOME)), set(rules.roles_of("TACME"))) == ({"lead"}, {"acme-lead"})
    assert "lead" not in rules.roles_of("TACME")
    assert list(rules.admin_roles_of("TACME")) == ["acme-lead"]
    assert list(rules.admin_roles_of("TNONE")) == []
    assert (rules.daily_usd_micros("TACME"), rules.daily_usd_micros("TNONE")) == (1_500_000, 0)


@pytest.mark.parametrize("name", ["general", DIRECT, "@group"])
def test_another_workspace_without_a_matching_rule_gets_no_answer(name: str) -> None:
    rules = live_config().channels_at(TeamId("TACME"))
    rule = channel_of(rules, name).rule
    assert (rule.answers, rule.shut, rule.confirm) == (False, True, ())
    assert channel_of(live_config().channels_at(TeamId("THOME")), name).rule.answers


def test_an_unreadable_name_gets_what_all_its_workspaces_rules_allow() -> None:
    known = channel_of(live_config().channels_at(TeamId("TACME")), UNKNOWN).rule
    assert (known.answers, known.products, known.confirm) == (True, ("cart",), ())
    unruled = channel_of(live_config().channels_at(TeamId("TNONE")), UNKNOWN).rule
    assert (unruled.answers, unruled.shut) == (False, True)


async def test_a_reload_changes_what_every_view_shows() -> None:
    rules = live_config()
    admins, roles = rules.admin_roles_of("TACME"), rules.roles_of("TACME")
    channels = rules.channels_of("TACME")
    (await rules.prepare(Settings())).put_in_force()
    assert (list(admins), dict(roles), tuple(channels)) == ([], {}, CLOSED)
    assert rules.tenant_of(TeamId("TACME")) == "TACME"


def test_a_rule_or_connection_for_every_workspace_applies_in_each() -> None:
    every = ChannelRule("*", workspace="*")
    at_home, at_acme = (rules_for([every], tenant)[0] for tenant in (HOME, "TACME"))
    assert (at_home, at_acme.match) == (every, "*")
    assert (at_home.reading, at_acme.reading) == (Reading.PRODUCTS, Reading.STRICT)
    connections = [
        ConnectionRule("platform:own", ("U1",)),
        ConnectionRule("platform:acme", ("U1",), "TACME"),
        ConnectionRule("other:all", ("*",), "*"),
    ]
    assert connections_of(connections, "U1") == {"platform:own", "other:all"}
    assert connections_of(connections, "U1", "TACME") == {"platform:acme", "other:all"}
    assert connections_of(connections, "U1", "TNONE") == {"other:all"}


@pytest.mark.parametrize(("team", "tenant"), [("THOME", HOME), ("@api", HOME), ("TACME", "TACME")])
def test_only_our_own_teams_are_home(team: str, tenant: str) -> None:
    assert tenant_of(TeamId(team), TeamId("THOME")) == tenant
