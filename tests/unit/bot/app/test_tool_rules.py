"""`[policy]`: what kortex.toml says of tools is what a model is shown and what the runner lets run."""

from typing import Any

import pytest
from pydantic import ValidationError

from bot.app.rules import TOOLSETS, configured_policy
from bot.settings.model import Settings
from bot.settings.reading import ConfigurationError
from tests.fakes.capabilities import call_context
from tests.fakes.tools import FakeTool, bench, contract
from tools.call_limits import CallLimits
from tools.catalog import ToolCatalog
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy

IDS = ("core__get_logs", "core__get_metrics", "core__propose_action", "plugin__tickets")
BUILT_IN = ToolPolicy({"investigate": IDS, "recommend": ("core__get_logs",)})


def policy(**tables: Any) -> ToolPolicy:
    return configured_policy(Settings.model_validate(tables), BUILT_IN)


def seen(made: ToolPolicy, **asking: object) -> list[str]:
    tools = [FakeTool(contract(id=name)) for name in IDS]
    return [each.name for each in ToolCatalog(tools, made).visible(call_context(**asking))]


def test_without_a_policy_the_built_in_toolsets_apply() -> None:
    assert seen(policy()) == list(IDS)
    assert policy().limits_of(call_context()) == CallLimits()


def test_a_configured_toolset_replaces_the_built_in_one() -> None:
    made = policy(
        policy={
            "toolsets": {
                "investigate": {"tools": ["core__get_*"]},
                "tickets": {"tools": ["plugin__*"]},
            }
        },
        channels=[{"match": "support-*", "toolset": "tickets"}],
    )

    assert seen(made) == ["core__get_logs", "core__get_metrics"]
    assert seen(made, purpose="recommend") == ["core__get_logs"]
    assert seen(made, purpose="tickets") == ["plugin__tickets"]


def test_the_first_matching_channel_narrows_its_toolset() -> None:
    made = policy(
        policy={
            "channels": [
                {"match": "incident-pay*", "tools": ["core__get_logs"]},
                {"match": "incident-*", "tools": ["core__*"]},
            ]
        }
    )

    assert seen(made, channel="incident-payments") == ["core__get_logs"]
    assert seen(made, channel="incident-web") == list(IDS[:3])
    assert seen(made, channel="lobby") == list(IDS)


def test_a_denied_tool_is_available_to_no_one() -> None:
    made = policy(policy={"denied": ["core__propose*", "plugin__*"]})

    assert seen(made) == list(IDS[:2])


async def test_the_runner_enforces_what_the_catalog_hides() -> None:
    tool = FakeTool()
    made = configured_policy(
        Settings.model_validate({"policy": {"denied": ["*__echo"]}}),
        ToolPolicy({"investigate": ("core__*",)}),
    )

    outcome = await bench([tool], made).run()

    assert (outcome.record.error_code, tool.calls) == (ToolErrorCode.POLICY_DENIED, [])


def test_a_channel_cannot_widen_its_toolset() -> None:
    made = policy(policy={"channels": [{"match": "*", "tools": ["*"]}]})

    assert seen(made, purpose="recommend") == ["core__get_logs"]


def test_a_toolsets_budget_is_the_default_with_its_own_changes() -> None:
    made = policy(
        policy={
            "budget": {"calls": 30, "call_time": "20s"},
            "toolsets": {"recommend": {"budget": {"calls": 5}}},
        }
    )

    assert made.limits_of(call_context()) == CallLimits(calls=30, call_time_s=20.0)
    assert made.limits_of(call_context(purpose="recommend")) == CallLimits(
        calls=5, call_time_s=20.0
    )
    assert seen(made, purpose="recommend") == ["core__get_logs"]


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (
            {"channels": [{"match": "a", "toolset": "investgate"}]},
            "there are: investigate, recommend",
        ),
        ({"policy": {"toolsets": {"mine": {}}}}, r"policy\.toolsets\.mine: names no tools"),
    ],
    ids=["a toolset nobody declared", "a toolset of nothing"],
)
def test_a_toolset_without_tools_stops_the_start(tables: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        policy(**tables)


@pytest.mark.parametrize("effects", [["state_change"], ["read_only", "external_side_effect"]])
def test_no_policy_lets_a_tool_act(effects: list[str]) -> None:
    with pytest.raises(ValidationError):
        policy(policy={"effects": effects})


def test_without_allowed_effects_nothing_is_read_and_proposing_stays() -> None:
    assert seen(policy(policy={"effects": []})) == ["core__propose_action"]


def test_every_built_in_toolset_is_available() -> None:
    channels = [{"match": name, "toolset": name} for name in TOOLSETS]
    assert configured_policy(Settings.model_validate({"channels": channels}), ToolPolicy(TOOLSETS))


ROLES = {"responder": {"users": ["U1"]}, "desk": {"users": ["U2"]}}


def test_a_role_narrows_and_the_star_means_everybody() -> None:
    tables = {"responder": {"tools": ["core__*"]}, "*": {"tools": ["plugin__*"]}}
    made = policy(roles=ROLES, policy={"roles": tables})
    assert seen(made) == ["plugin__tickets"]
    assert seen(made, roles=frozenset({"responder"})) == list(IDS)
    assert seen(made, roles=frozenset({"desk"})) == ["plugin__tickets"]


def test_a_role_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"policy\.roles\.respnder: there is no"):
        policy(roles=ROLES, policy={"roles": {"respnder": {"tools": ["core__*"]}}})
