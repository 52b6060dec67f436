"""The system text: static first, what changes last, and honest about what is not there."""

import re
from collections.abc import Collection
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.chat.prompts import JOBS, NO_TOOLS, PromptFacts, situation, stable_part, system_prompt
from tests.fakes.capabilities import FakeClock, call_context, fake_capabilities
from tools.capabilities import Capabilities
from tools.catalog import ToolCatalog
from tools.core.all import built_in_toolsets, core_tools
from tools.cursor import CursorSigner
from tools.policy import ToolPolicy

TOOLSETS = built_in_toolsets()
EVERY_TOOL = sorted({name for names in TOOLSETS.values() for name in names})
PROPOSE = "core__propose_action"


def facts(**changes: object) -> PromptFacts:
    fields: dict[str, object] = {
        "channel": "incident-checkout",
        "products": ("checkout", "cart"),
        "actions": ("restart: Restart it (*)",),
        "tools": TOOLSETS["investigate"],
    }
    return PromptFacts(**{**fields, **changes})  # type: ignore[arg-type]


def named(text: str) -> set[str]:
    """Every tool that a text names, by its id or the short name that people see."""
    words = set(re.findall(r"[a-z0-9_]+", text))
    return {tool for tool in EVERY_TOOL if tool in words or tool.removeprefix("core__") in words}


def offered(purpose: str, policy: ToolPolicy, bound: Capabilities | None) -> tuple[str, ...]:
    catalog = ToolCatalog(core_tools(CursorSigner(b"k" * 32)), policy, bound)
    return tuple(d.name for d in catalog.visible(call_context(purpose=purpose)))


@pytest.mark.parametrize(
    "fact", ["#incident-checkout", "checkout, cart", "restart: Restart it (*)"]
)
def test_the_prompt_contains_the_constant_facts(fact: str) -> None:
    assert fact in system_prompt(facts())


def test_changing_facts_are_sent_with_the_question() -> None:
    now = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
    told = situation(now, ["p1 was rejected by U2: not now"])

    assert told == "Now\n- Time: 2026-04-07T14:35:00Z.\n- p1 was rejected by U2: not now"


def test_missing_configuration_is_stated() -> None:
    text = system_prompt(facts(channel="", products=(), actions=()))

    assert "Channel: not known." in text
    assert "not configured" in text
    assert "No actions are declared" in text


@pytest.mark.parametrize(
    ("name", "shown"),
    [("@direct", "a direct message"), ("@group", "a group message"), ("ops", "#ops")],
)
def test_an_unnamed_channel_is_described_in_words(name: str, shown: str) -> None:
    assert f"Channel: {shown}." in system_prompt(facts(channel=name))


@pytest.mark.parametrize("purpose", [*sorted(TOOLSETS), "of-our-own"])
@given(tools=st.sets(st.sampled_from(EVERY_TOOL)))
def test_a_prompt_names_only_tools_that_are_offered(purpose: str, tools: Collection[str]) -> None:
    assert named(system_prompt(facts(purpose=purpose, tools=tools))) <= set(tools)


@pytest.mark.parametrize("purpose", sorted(TOOLSETS))
@pytest.mark.parametrize(
    "denied", ["core__nothing", PROPOSE, "core__get_*", "core__kubectl_*", "core__*"]
)
@pytest.mark.parametrize("bound", [None, Capabilities(FakeClock()), fake_capabilities()])
def test_a_prompt_names_only_tools_permitted_by_policy_and_backends(
    purpose: str, denied: str, bound: Capabilities | None
) -> None:
    tools = offered(purpose, ToolPolicy(toolsets=TOOLSETS, denied=(denied,)), bound)

    assert named(system_prompt(facts(purpose=purpose, tools=tools, actions=()))) <= set(tools)


@pytest.mark.parametrize("purpose", sorted(TOOLSETS))
def test_every_toolset_has_a_job_that_uses_most_of_its_tools(purpose: str) -> None:
    told = named(system_prompt(facts(purpose=purpose, tools=TOOLSETS[purpose])))

    assert purpose in JOBS
    assert len(told) >= 0.5 * len(TOOLSETS[purpose])
    assert PROPOSE in told


def test_the_jobs_differ_and_a_custom_toolset_investigates() -> None:
    told = {purpose: stable_part(facts(purpose=purpose, tools=EVERY_TOOL)) for purpose in JOBS}

    assert len(set(told.values())) == len(JOBS)
    assert stable_part(facts(purpose="of-our-own", tools=EVERY_TOOL)) == told["investigate"]


def test_without_the_tool_the_prompt_lists_no_action() -> None:
    text = system_prompt(facts(tools=("core__get_logs",)))

    assert "nothing can be proposed here" in text
    assert "Restart it" not in text


def test_without_tools_the_prompt_says_that_nothing_can_be_known() -> None:
    text = system_prompt(facts(tools=()))

    assert NO_TOOLS in text
    assert "[E1]" not in text


def test_the_beginning_is_identical_in_every_channel() -> None:
    one, other = facts(), facts(channel="ops", products=("web",), actions=())

    assert stable_part(one) == stable_part(other)
    assert system_prompt(one).startswith(stable_part(one))
