"""What a person's roles let a turn see and use: both, always the same, and nothing by default."""

from collections.abc import Iterator

import pytest
import structlog.testing

from bot.chat.turn_permissions import NOT_YOURS, authority, unread_notice
from bot.domain.roles import HeldRoles
from tests.fakes.capabilities import call_context
from tests.fakes.scripted_provider import ScriptedProvider, calls, text
from tests.fakes.tools import FakeTool, bench, contract
from tests.fixtures_turn import turn_bench
from tools.errors import ToolErrorCode
from tools.policy import ToolPolicy

TOOLS = ("core__echo", "core__logs", "core__pods", "plugin__tickets")
POLICY = ToolPolicy(
    toolsets={"investigate": ("core__*", "plugin__*")},
    roles={"responder": ("core__*",), "desk": ("plugin__tickets",), "*": ("core__echo",)},
)
SEEN = [
    ((), {"core__echo"}),
    (("responder",), {"core__echo", "core__logs", "core__pods"}),
    (("desk",), {"core__echo", "plugin__tickets"}),
    (("responder", "desk"), set(TOOLS)),
    (("unheard-of",), {"core__echo"}),
]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


def tools() -> list[FakeTool]:
    return [FakeTool(contract(id=name)) for name in TOOLS]


@pytest.mark.parametrize(
    ("roles", "seen"), SEEN, ids=["nobody", "responder", "desk", "both", "unheard-of"]
)
async def test_a_turn_sees_and_runs_what_the_asker_s_roles_give(
    roles: tuple[str, ...], seen: set[str]
) -> None:
    here = bench(tools(), POLICY, authorise=authority(POLICY))
    held = frozenset(roles)
    shown = {each.name for each in here.catalog.visible(call_context(roles=held))}
    ran = {name for name in TOOLS if (await here.run(name=name, roles=held)).record.ok}
    assert (shown, ran) == (seen, seen)


async def test_a_tool_outside_the_roles_is_an_error_that_says_so() -> None:
    here = bench(tools(), POLICY, authorise=authority(POLICY))
    outcome = await here.run(name="core__logs")
    assert outcome.record.error_code is ToolErrorCode.AUTHZ_DENIED
    assert NOT_YOURS in outcome.content


async def test_without_roles_in_the_policy_everybody_has_the_channel_s_tools() -> None:
    policy = ToolPolicy(toolsets=POLICY.toolsets)
    here = bench(tools(), policy, authorise=authority(policy))
    assert len(here.catalog.visible(call_context())) == len(TOOLS)
    assert (await here.run()).record.ok


def test_a_role_never_adds_tools_to_the_channel() -> None:
    policy = ToolPolicy(toolsets={"investigate": ("core__echo",)}, roles={"*": ("*",)})
    shown = bench(tools(), policy).catalog.visible(call_context())
    assert [each.name for each in shown] == ["core__echo"]


@pytest.mark.parametrize(
    ("held", "offered", "told"),
    [
        (HeldRoles(frozenset({"responder"})), 3, False),
        (HeldRoles(), 1, False),
        (HeldRoles(unread=("responder",)), 1, True),
    ],
    ids=["held", "not held", "not read"],
)
async def test_an_unreadable_role_grants_nothing_and_is_reported(
    held: HeldRoles, offered: int, told: bool
) -> None:
    provider = ScriptedProvider([calls(("c1", "core__logs", '{"text":"x"}')), text("done")])
    turn = turn_bench(providers=[provider], tools=tools(), policy=POLICY, held=held)
    final = await turn.answer()
    assert final is not None
    assert {len(request.tools) for request in provider.requests} == {offered}
    assert (unread_notice(["responder"]) in final.notices) is told
