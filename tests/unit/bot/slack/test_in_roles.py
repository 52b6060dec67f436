"""Who is in which role: fail closed, fresh enough, and asked no oftener than Slack allows."""

import asyncio

import pytest
from pydantic import JsonValue

from bot.domain.ids import Person, TeamId, UserId
from bot.ports import SurfaceFailed, SurfaceGone
from bot.slack.roles import (
    CANNOT_CHECK,
    DEACTIVATED,
    GROUP_RECHECK_S,
    GROUP_TTL_S,
    NOBODY,
    RoleMembers,
    SlackRoleDirectory,
)
from tests.fakes.slack_web_api import FakeWebApi

ROLES = {
    "responder": RoleMembers(usergroups=("S1",)),
    "lead": RoleMembers(usergroups=("S2",), users=("U7", "U8")),
    "empty": RoleMembers(),
}


class World:
    def __init__(self) -> None:
        self.api = FakeWebApi()
        self.now = 1_000.0
        self.members: dict[str, list[JsonValue]] = {"S1": ["U1"], "S2": []}
        self.flags: dict[str, JsonValue] = {}
        self.api.answers["users.info"] = lambda arguments: {
            "user": {"id": arguments["user"], "team_id": "T1", **self.flags}
        }
        self.api.answers["usergroups.users.list"] = lambda arguments: {
            "users": self.members[str(arguments["usergroup"])]
        }
        self.directory = SlackRoleDirectory(self.api, TeamId("T1"), ROLES, lambda: self.now)

    async def refusal(self, user: str, *roles: str, team: str = "T1") -> str | None:
        return await self.directory.refusal(Person(TeamId(team), UserId(user)), roles)

    def group_calls(self) -> int:
        return self.api.count("usergroups.users.list")


@pytest.fixture
def world() -> World:
    return World()


async def test_a_member_of_the_user_group_may(world: World) -> None:
    assert await world.refusal("U1", "responder") is None


async def test_anyone_else_is_told_whom_to_ask(world: World) -> None:
    refusal = await world.refusal("U2", "responder", "lead")
    assert refusal == "You may not decide this. Ask someone in the role responder or lead."


async def test_someone_listed_by_id_may_without_any_group(world: World) -> None:
    assert await world.refusal("U7", "lead") is None
    assert world.group_calls() == 0


@pytest.mark.parametrize("roles", [(), ("empty",), ("unheard-of",)])
async def test_no_role_means_nobody(world: World, roles: tuple[str, ...]) -> None:
    assert await world.refusal("U1", *roles) == NOBODY


OUTSIDERS: list[dict[str, JsonValue]] = [
    {"is_restricted": True},
    {"is_ultra_restricted": True},
    {"is_stranger": True},
    {"is_bot": True},
    {"team_id": "T9"},
]


@pytest.mark.parametrize("flags", OUTSIDERS, ids=str)
async def test_an_outsider_in_the_group_may_not(world: World, flags: dict[str, JsonValue]) -> None:
    world.flags = flags
    refusal = await world.refusal("U1", "responder")
    assert refusal is not None
    assert "role responder" in refusal


async def test_a_click_from_another_workspace_may_not(world: World) -> None:
    assert await world.refusal("U1", "responder", team="T9") is not None


@pytest.mark.parametrize("flags", OUTSIDERS, ids=str)
async def test_an_outsider_may_when_a_role_lists_the_id(
    world: World, flags: dict[str, JsonValue]
) -> None:
    world.flags = flags
    assert await world.refusal("U7", "lead", team="T9") is None


@pytest.mark.parametrize("user", ["U1", "U7"])
async def test_a_deactivated_person_never_may(world: World, user: str) -> None:
    world.flags = {"deleted": True}
    assert await world.refusal(user, "responder", "lead") == DEACTIVATED


FAILURES: list[Exception | dict[str, JsonValue]] = [
    SurfaceFailed("down", retryable=True),
    SurfaceGone("account_inactive"),
    TimeoutError(),
    {"ok": True},
    {"user": {"id": "U999"}, "users": None},
]


@pytest.mark.parametrize("failure", FAILURES, ids=str)
@pytest.mark.parametrize("method", ["users.info", "usergroups.users.list"])
async def test_a_lookup_that_fails_denies(
    world: World, method: str, failure: Exception | dict[str, JsonValue]
) -> None:
    world.api.answers[method] = failure
    assert await world.refusal("U1", "responder") == CANNOT_CHECK


async def test_one_failing_group_does_not_hide_membership_of_another(world: World) -> None:
    def members(arguments: object) -> dict[str, JsonValue]:
        if arguments == {"usergroup": "S1"}:
            raise SurfaceFailed("down", retryable=True)
        return {"users": ["U3"]}

    world.api.answers["usergroups.users.list"] = members
    assert await world.refusal("U3", "responder", "lead") is None
    assert await world.refusal("U4", "responder", "lead") == CANNOT_CHECK


async def test_people_are_looked_up_at_every_click(world: World) -> None:
    await world.refusal("U1", "responder")
    world.now += 0.001
    world.flags = {"deleted": True}
    assert await world.refusal("U1", "responder") == DEACTIVATED


async def test_a_group_is_asked_once_a_minute(world: World) -> None:
    for _ in range(30):
        await world.refusal("U1", "responder")
        world.now += 1.0
    assert world.group_calls() == 1


async def test_someone_removed_from_the_group_is_out_within_a_minute(world: World) -> None:
    await world.refusal("U1", "responder")
    world.members["S1"] = []
    world.now += GROUP_TTL_S + 0.1
    assert await world.refusal("U1", "responder") is not None


async def test_someone_removed_is_out_at_once_when_slack_says_so(world: World) -> None:
    await world.refusal("U1", "responder")
    world.members["S1"] = []
    world.directory.forget_group("S1")
    assert await world.refusal("U1", "responder") is not None


async def test_someone_just_added_need_not_wait_a_minute(world: World) -> None:
    await world.refusal("U5", "responder")
    world.members["S1"] = ["U1", "U5"]
    world.now += GROUP_RECHECK_S + 0.1
    assert await world.refusal("U5", "responder") is None


async def test_clicks_of_many_strangers_do_not_use_up_slacks_limit(world: World) -> None:
    for number in range(60):
        await world.refusal(f"UX{number}", "responder")
        world.now += 1.0
    assert world.group_calls() <= 20  # Tier 2, a minute


async def test_clicks_at_once_ask_slack_once(world: World) -> None:
    world.api.gate.clear()
    async with asyncio.TaskGroup() as group:
        clicks = [group.create_task(world.refusal("U1", "responder")) for _ in range(20)]
        await world.api.entered.wait()
        world.api.gate.set()
    assert [click.result() for click in clicks] == [None] * 20
    assert (world.api.count("users.info"), world.group_calls()) == (1, 1)


async def test_an_answer_under_way_when_the_group_changed_is_not_kept(world: World) -> None:
    await world.refusal("U9", "lead")  # the person is known by now; only the group hangs
    world.api.answers["users.info"] = {"user": {"id": "U1", "team_id": "T1"}}
    world.api.gate.clear()
    world.api.entered.clear()
    async with asyncio.TaskGroup() as group:
        click = group.create_task(world.refusal("U1", "responder"))
        await world.api.entered.wait()
        world.directory.forget_group("S1")
        world.api.gate.set()
    assert click.result() is None
    world.members["S1"] = []
    world.now += 0.5
    await world.refusal("U1", "responder")
    assert world.group_calls() >= 2
