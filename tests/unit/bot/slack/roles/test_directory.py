"""Members of roles: fail closed, fresh enough, and within Slack's rate limits."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest
from pydantic import JsonValue

from adapters.errors import BadAnswer, Overloaded
from bot.domain.ids import Person, TeamId, UserId
from bot.domain.roles import HeldRoles
from bot.ports.failures import SurfaceFailed, SurfaceGone
from bot.slack.api.web_api import Refused
from bot.slack.roles.directory import (
    CANNOT_CHECK,
    DEACTIVATED,
    GROUP_RECHECK_S,
    GROUP_TTL_S,
    NO_ROTA,
    NOBODY,
    OUTSIDER,
    UNKNOWN_PERSON,
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


async def test_a_member_of_the_user_group_may_confirm(world: World) -> None:
    assert await world.refusal("U1", "responder") is None


async def test_a_person_without_the_role_learns_the_approvers(world: World) -> None:
    refusal = await world.refusal("U2", "responder", "lead")
    assert refusal == "You don't have the role for this. Ask a responder or lead."


async def test_a_person_listed_by_id_needs_no_group(world: World) -> None:
    assert await world.refusal("U7", "lead") is None
    assert world.group_calls() == 0


@pytest.mark.parametrize("roles", [(), ("empty",), ("unheard-of",)])
async def test_an_unknown_role_admits_no_one(world: World, roles: tuple[str, ...]) -> None:
    assert await world.refusal("U1", *roles) == NOBODY


OUTSIDERS: list[dict[str, JsonValue]] = [
    {"is_restricted": True},
    {"is_ultra_restricted": True},
    {"is_stranger": True},
    {"is_bot": True},
    {"team_id": "T9"},
]


@pytest.mark.parametrize("flags", OUTSIDERS, ids=str)
async def test_an_outsider_in_the_group_is_refused(
    world: World, flags: dict[str, JsonValue]
) -> None:
    world.flags = flags
    refusal = await world.refusal("U1", "responder")
    assert refusal is not None
    assert "Ask a responder" in refusal


async def test_a_click_from_another_workspace_is_refused(world: World) -> None:
    assert await world.refusal("U1", "responder", team="T9") is not None


@pytest.mark.parametrize("flags", OUTSIDERS, ids=str)
async def test_a_person_listed_by_id_is_not_an_outsider(
    world: World, flags: dict[str, JsonValue]
) -> None:
    world.flags = flags
    assert await world.directory.outsider(Person(TeamId("T1"), UserId("U1"))) == OUTSIDER
    assert await world.directory.outsider(Person(TeamId("T1"), UserId("U7"))) is None


async def test_a_person_who_cannot_be_looked_up_is_an_outsider(world: World) -> None:
    member = Person(TeamId("T1"), UserId("U2"))
    assert await world.directory.outsider(member) is None
    assert await world.directory.outsider(Person(TeamId("T9"), UserId("U2"))) == OUTSIDER
    world.flags, world.now = {"deleted": True}, world.now + 1
    assert await world.directory.outsider(member) == DEACTIVATED
    world.now += 1
    world.api.answers["users.info"] = SurfaceFailed("users.info: down", retryable=True)
    assert await world.directory.outsider(member) == UNKNOWN_PERSON


@pytest.mark.parametrize("flags", OUTSIDERS, ids=str)
async def test_an_outsider_listed_by_id_may_confirm(
    world: World, flags: dict[str, JsonValue]
) -> None:
    world.flags = flags
    assert await world.refusal("U7", "lead", team="T9") is None


@pytest.mark.parametrize("user", ["U1", "U7"])
async def test_a_deactivated_person_is_always_refused(world: World, user: str) -> None:
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
async def test_a_failed_lookup_denies(
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


async def test_a_group_is_requested_once_a_minute(world: World) -> None:
    for _ in range(30):
        await world.refusal("U1", "responder")
        world.now += 1.0
    assert world.group_calls() == 1


async def test_a_person_removed_from_the_group_is_refused_within_a_minute(world: World) -> None:
    await world.refusal("U1", "responder")
    world.members["S1"] = []
    world.now += GROUP_TTL_S + 0.1
    assert await world.refusal("U1", "responder") is not None


async def test_a_removal_announced_by_slack_applies_at_once(world: World) -> None:
    await world.refusal("U1", "responder")
    world.members["S1"] = []
    world.directory.forget_group("S1")
    assert await world.refusal("U1", "responder") is not None


async def test_a_newly_added_person_need_not_wait_a_minute(world: World) -> None:
    await world.refusal("U5", "responder")
    world.members["S1"] = ["U1", "U5"]
    world.now += GROUP_RECHECK_S + 0.1
    assert await world.refusal("U5", "responder") is None


async def test_clicks_of_many_strangers_do_not_use_up_slacks_limit(world: World) -> None:
    for number in range(60):
        await world.refusal(f"UX{number}", "responder")
        world.now += 1.0
    assert world.group_calls() <= 20  # Tier 2, a minute


async def test_simultaneous_clicks_ask_slack_once(world: World) -> None:
    world.api.gate.clear()
    async with asyncio.TaskGroup() as group:
        clicks = [group.create_task(world.refusal("U1", "responder")) for _ in range(20)]
        await world.api.entered.wait()
        world.api.gate.set()
    assert [click.result() for click in clicks] == [None] * 20
    assert (world.api.count("users.info"), world.group_calls()) == (1, 1)


async def test_an_answer_in_progress_when_the_group_changed_is_discarded(world: World) -> None:
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


class Rota:
    def __init__(self, *names: str) -> None:
        self.names = frozenset(names)
        self.failure: Exception | None = None
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def people(self) -> frozenset[str]:
        self.asked += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return self.names


class OnCallWorld(World):
    """`duty` is held by who is on call; mira@x.io is U1, jonas@x.io is U2."""

    def __init__(self) -> None:
        super().__init__()
        self.rota = Rota("mira@x.io")
        self.accounts = {"mira@x.io": "U1", "jonas@x.io": "U2"}
        self.api.answers["users.lookupByEmail"] = self._found
        self.roles = ROLES | {
            "duty": RoleMembers(on_call=self.rota),
            "both": RoleMembers(usergroups=("S1",), on_call=self.rota),
            "named": RoleMembers(users=("U7",), on_call=self.rota),
        }
        self.directory = SlackRoleDirectory(self.api, TeamId("T1"), self.roles, lambda: self.now)

    def _found(self, arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        found = self.accounts.get(str(arguments["email"]))
        if found is None:
            raise Refused("users.lookupByEmail", "users_not_found")
        return {"user": {"id": found, "team_id": "T1"}}

    async def judged(self, user: str, roles: Sequence[str], also: Sequence[str]) -> str | None:
        return await self.directory.refusal(Person(TeamId("T1"), UserId(user)), roles, also)


@pytest.fixture
def duty() -> OnCallWorld:
    return OnCallWorld()


async def test_only_the_person_on_call_may_confirm(duty: OnCallWorld) -> None:
    assert await duty.refusal("U1", "duty") is None
    assert await duty.refusal("U2", "duty") == ("You don't have the role for this. Ask a duty.")


async def test_a_rota_may_contain_slack_ids(duty: OnCallWorld) -> None:
    duty.rota.names = frozenset({"U5"})
    assert await duty.refusal("U5", "duty") is None
    assert duty.api.count("users.lookupByEmail") == 0


async def test_an_empty_rota_admits_no_one(duty: OnCallWorld) -> None:
    duty.rota.names = frozenset()
    assert "Ask a duty" in str(await duty.refusal("U1", "duty"))


@pytest.mark.parametrize("failure", [Overloaded("503"), BadAnswer("html"), TimeoutError()], ids=str)
async def test_an_unreadable_rota_refuses_and_says_so(
    duty: OnCallWorld, failure: Exception
) -> None:
    duty.rota.failure = failure
    assert await duty.refusal("U1", "duty") == NO_ROTA
    duty.rota.failure = None
    assert await duty.refusal("U1", "duty") is None


async def test_an_unreadable_rota_does_not_block_other_ways_into_the_role(
    duty: OnCallWorld,
) -> None:
    duty.rota.failure = Overloaded("503")
    assert await duty.refusal("U1", "both") is None
    assert await duty.refusal("U7", "named") is None
    assert await duty.refusal("U9", "both") == NO_ROTA


async def test_a_hanging_rota_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.slack.roles.directory.ROTA_TIMEOUT_S", 0.01)
    hanging = OnCallWorld()
    hanging.rota.gate.clear()
    assert await hanging.refusal("U1", "duty") == NO_ROTA


async def test_an_on_call_person_without_an_account_hides_no_one(duty: OnCallWorld) -> None:
    duty.rota.names = frozenset({"nobody@x.io", "mira@x.io"})
    assert await duty.refusal("U1", "duty") is None
    assert "Ask a duty" in str(await duty.refusal("U2", "duty"))


async def test_an_address_that_cannot_be_looked_up_denies_only_that_person(
    duty: OnCallWorld,
) -> None:
    duty.accounts = {"mira@x.io": "U1"}
    duty.api.answers["users.lookupByEmail"] = SurfaceFailed("down", retryable=True)
    assert await duty.refusal("U1", "duty") == CANNOT_CHECK
    duty.rota.names = frozenset({"mira@x.io", "U5"})
    duty.now += GROUP_TTL_S + 0.1
    assert await duty.refusal("U5", "duty") is None


async def test_a_rota_is_read_once_a_minute(duty: OnCallWorld) -> None:
    for _ in range(30):
        await duty.refusal("U1", "duty")
        duty.now += 1.0
    assert (duty.rota.asked, duty.api.count("users.lookupByEmail")) == (1, 1)


async def test_a_person_who_leaves_on_call_is_refused_within_a_minute(duty: OnCallWorld) -> None:
    await duty.refusal("U1", "duty")
    duty.rota.names = frozenset({"jonas@x.io"})
    duty.now += GROUP_TTL_S + 0.1
    assert await duty.refusal("U1", "duty") is not None


async def test_a_person_who_comes_on_call_need_not_wait_a_minute(duty: OnCallWorld) -> None:
    await duty.refusal("U2", "duty")
    duty.rota.names = frozenset({"jonas@x.io"})
    duty.now += GROUP_RECHECK_S + 0.1
    assert await duty.refusal("U2", "duty") is None


@pytest.mark.parametrize("flags", OUTSIDERS, ids=str)
async def test_an_outsider_on_call_is_refused(
    duty: OnCallWorld, flags: dict[str, JsonValue]
) -> None:
    duty.flags = flags
    assert await duty.refusal("U1", "duty") is not None


@pytest.mark.parametrize(
    ("user", "may"), [("U1", True), ("U2", False), ("U7", False), ("U3", False)]
)
async def test_one_role_of_each_kind_is_required_when_the_action_names_roles(
    duty: OnCallWorld, user: str, may: bool
) -> None:
    duty.members["S1"] = ["U1", "U7"]  # U1 is also on call; U2 would be neither, U7 not on call
    refusal = await duty.judged(user, ("responder",), ("duty",))
    assert (refusal is None) is may


async def test_a_person_without_one_of_two_roles_learns_both(duty: OnCallWorld) -> None:
    duty.members["S1"] = ["U2"]
    told = await duty.judged("U2", ("responder", "lead"), ("duty",))
    assert told == ("You don't have the role for this. Ask a responder or lead who is also a duty.")


@pytest.mark.parametrize(("roles", "also"), [((), ("duty",)), (("responder",), ("empty",))])
async def test_an_impossible_kind_of_role_admits_no_one(
    duty: OnCallWorld, roles: tuple[str, ...], also: tuple[str, ...]
) -> None:
    assert await duty.judged("U1", roles, also) == NOBODY


@pytest.mark.parametrize("flags", OUTSIDERS, ids=str)
async def test_an_outsider_must_be_listed_on_both_sides(
    duty: OnCallWorld, flags: dict[str, JsonValue]
) -> None:
    duty.flags = flags
    duty.members["S1"] = ["U7"]
    assert await duty.judged("U7", ("lead",), ("named",)) is None
    assert await duty.judged("U7", ("lead",), ("responder",)) is not None


async def test_members_include_the_people_on_call(duty: OnCallWorld) -> None:
    duty.rota.names = frozenset({"jonas@x.io", "nobody@x.io"})
    assert await duty.directory.members(("duty", "lead")) == ["U2", "U7", "U8"]
    duty.now += GROUP_TTL_S + 0.1
    duty.rota.failure = Overloaded("503")
    assert await duty.directory.members(("duty", "lead")) == ["U7", "U8"]


async def test_a_changed_rota_is_requested_at_once(duty: OnCallWorld) -> None:
    assert await duty.refusal("U1", "duty") is None
    duty.roles["duty"] = RoleMembers(on_call=Rota("jonas@x.io"))
    assert await duty.refusal("U1", "duty") is not None
    assert await duty.refusal("U2", "duty") is None


async def test_a_person_listed_twice_in_a_rota_is_one_person(duty: OnCallWorld) -> None:
    duty.rota.names = frozenset({"mira@x.io", "U1"})
    assert await duty.directory.members(("duty",)) == ["U1"]


async def test_a_persons_roles_are_the_current_ones(world: World) -> None:
    person = Person(TeamId("T1"), UserId("U1"))
    found = await world.directory.held(person, ["responder", "lead", "empty", "unheard-of"])
    assert found == HeldRoles(frozenset({"responder"}))


NOT_TOLD: list[tuple[str, object]] = [
    ("users.info", SurfaceFailed("down", retryable=True)),
    ("users.info", TimeoutError()),
    ("users.info", {}),
    ("usergroups.users.list", SurfaceGone("no_such_subteam")),
    ("usergroups.users.list", {}),
]


@pytest.mark.parametrize(("method", "answer"), NOT_TOLD, ids=str)
async def test_a_role_that_cannot_be_looked_up_is_not_held_and_is_reported(
    world: World, method: str, answer: object
) -> None:
    world.api.answers[method] = answer  # type: ignore[assignment]
    found = await world.directory.held(Person(TeamId("T1"), UserId("U1")), ["responder"])
    assert found == HeldRoles(unread=("responder",))


@pytest.mark.parametrize("flags", [*OUTSIDERS, {"deleted": True}], ids=str)
async def test_outsiders_hold_no_role(world: World, flags: dict[str, JsonValue]) -> None:
    world.flags = flags
    found = await world.directory.held(Person(TeamId("T1"), UserId("U1")), ["responder"])
    assert found == HeldRoles()
