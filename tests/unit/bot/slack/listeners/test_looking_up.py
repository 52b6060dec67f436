"""Every look-up that a decision rests on, in every way it may go wrong: nothing is ever run then.

One table. The bench is the way from a press to the order with real parts, over fakes of what is
outside: Slack, the rota, the control plane, the database. `test_with_everything_in_order_a_press_runs` shows that
the same press does run something.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from pydantic import JsonValue

from adapters.errors import Overloaded
from bot.actions.catalog import ActionCatalog
from bot.actions.freeze import FreezeJudge
from bot.domain.channel import Channel, ChannelRule, channel_of
from bot.domain.freeze import FreezeWindow
from bot.domain.ids import Place, TeamId
from bot.domain.proposal import Proposal, ProposalState
from bot.ports.failures import StorageUnavailable, SurfaceFailed, SurfaceGone
from bot.slack.api.channels import DECIDING_S, Channels, SlackChannelNames
from bot.slack.listeners.ports import IngressSettings
from bot.slack.roles.directory import RoleMembers, SlackRoleDirectory
from tests.fakes.channel_names import MemoryNames
from tests.fakes.freezes import FakeSwitch
from tests.fakes.slack_web_api import FakeWebApi
from tests.fixtures_actions import NOW, PLACE, ROLLBACK, World
from tests.fixtures_turn import Outage
from tests.slack_ingress import IDENTITY, Ingress, pressed

DOWN = SurfaceFailed("ratelimited", retryable=True)
INFO, GROUP, ACCOUNT = "conversations.info", "usergroups.users.list", "users.info"
RULES = (
    ChannelRule("incident-*", products=("checkout",), confirm=("responder",)),
    ChannelRule("lab-*", confirm=("responder",)),
    ChannelRule("prod-*", products=("payments",), confirm=("admin",)),
)


@dataclass(eq=False)
class Rota:
    """`OnCall`; `failure` is raised while it is set."""

    on_call: set[str] = field(default_factory=lambda: {"U1"})
    failure: Exception | None = None

    async def people(self) -> frozenset[str]:
        if self.failure is not None:
            raise self.failure
        return frozenset(self.on_call)


class Bench:
    """A card that was shown when everything was in order, and U1, who may press it."""

    def __init__(self) -> None:
        self.api = FakeWebApi()
        self.called: dict[str, JsonValue] = {"name": "incident-checkout"}
        self.members: list[JsonValue] = ["U1"]
        self.account: dict[str, JsonValue] = {"id": "U1", "team_id": "T1"}
        self.api.answers[INFO] = lambda _: {"channel": self.called}
        self.api.answers[GROUP] = lambda _: {"users": self.members}
        self.api.answers[ACCOUNT] = lambda _: {"user": self.account}
        self.rota = Rota()
        self.roles = {
            "responder": RoleMembers(usergroups=("S1",)),
            "on-call": RoleMembers(on_call=self.rota),
            "admin": RoleMembers(users=("U9",)),
        }
        self.rules = list(RULES)
        self.kept = MemoryNames(now=NOW)
        self.names = SlackChannelNames(Channels(self.api, self.seconds), self.kept)
        self.actions = (replace(ROLLBACK, confirm=("on-call",)),)
        self.windows: list[FreezeWindow] = []
        self.switch = Outage(FakeSwitch())
        self.world = World(rules=self.actions)
        self.world.channel_now = self.channel_now  # type: ignore[method-assign, assignment]
        self.store = Outage(self.world.store)
        self.timeout_s = 2.5

    def seconds(self) -> float:
        return self.world.clock.at.timestamp()

    def later(self, seconds: float) -> None:
        self.world.clock.at += timedelta(seconds=seconds)
        self.kept.later(seconds)
        self.switch.inner.now = self.world.clock.at

    async def channel_now(self, place: Place) -> Channel:
        return channel_of(self.rules, await self.names.for_deciding(place))

    async def shown(self) -> Proposal:
        self.switch.inner.now = NOW
        self.world.freeze = FreezeJudge(self.switch, ActionCatalog(self.actions), self.windows)  # type: ignore[assignment]
        self.world.channel = await self.channel_now(PLACE)
        return await self.world.proposed()

    async def press(self, row: Proposal) -> Ingress:
        ingress = Ingress(IngressSettings(IDENTITY, handling_timeout_s=self.timeout_s))
        ingress.ports = replace(
            ingress.ports,
            api=self.api,
            proposals=self.store,
            roles=SlackRoleDirectory(self.api, TeamId("T1"), self.roles, self.seconds),
            action_roles=lambda _: self.actions[0].confirm,
            channel_now=self.channel_now,
            freezes=self.world.freeze,
        )
        click = pressed("proposal:confirm", row.id)
        click["container"] = {
            "type": "message",
            "message_ts": row.card_ts,
            "channel_id": PLACE.channel,
            "thread_ts": PLACE.thread_ts,
        }
        await ingress.send(click)
        return ingress

    async def carried(self, ingress: Ingress) -> list[str]:
        for proposal, decision in ingress.workflows.decisions:
            await self.world.carry(self.world.row(proposal), decision)
        return self.world.control.effects


Break = Callable[[Bench], None]


def answers(method: str, answer: JsonValue | Exception) -> Break:
    def do(bench: Bench) -> None:
        bench.later(DECIDING_S + 1)
        bench.api.answers[method] = answer  # type: ignore[assignment]

    return do


def silent(method: str) -> Break:
    def do(bench: Bench) -> None:
        bench.later(DECIDING_S + 1)
        bench.api.silent.add(method)
        bench.timeout_s = 0.05

    return do


def called(**now: JsonValue) -> Break:
    def do(bench: Bench) -> None:
        bench.later(DECIDING_S + 1)
        bench.called = now

    return do


def account(**now: JsonValue) -> Break:
    return lambda bench: bench.account.update(now)


def members(*now: str) -> Break:
    def do(bench: Bench) -> None:
        bench.later(DECIDING_S + 1)
        bench.members = list(now)

    return do


def rota(*now: str, failure: Exception | None = None) -> Break:
    def do(bench: Bench) -> None:
        bench.later(DECIDING_S + 1)
        bench.rota.on_call, bench.rota.failure = set(now), failure

    return do


def rules(*now: ChannelRule) -> Break:
    def do(bench: Bench) -> None:
        bench.rules = list(now)

    return do


def without_role(name: str) -> Break:
    def do(bench: Bench) -> None:
        bench.roles.pop(name)

    return do


def frozen(bench: Bench) -> None:
    bench.switch.inner.frozen = True


def window(bench: Bench) -> None:
    bench.windows.append(FreezeWindow(NOW, NOW + timedelta(days=1)))


def unreadable_switch(bench: Bench) -> None:
    bench.switch.broken.add("state")


def late(bench: Bench) -> None:
    bench.later(601)


def process_clock_back(bench: Bench) -> None:
    """The process believes that no time has passed; the database does not."""
    bench.later(601)
    bench.seconds = NOW.timestamp  # type: ignore[method-assign]


def store_broken(bench: Bench) -> None:
    bench.store.broken.add("get")


def action_gone(bench: Bench) -> None:
    bench.world.rules = ()


CASES: dict[str, Break] = {
    "name: fails": answers(INFO, DOWN),
    "name: refused": answers(INFO, SurfaceFailed("missing_scope", retryable=False)),
    "name: gone": answers(INFO, SurfaceGone("channel_not_found")),
    "name: slow": silent(INFO),
    "name: empty": called(name=""),
    "name: none": answers(INFO, {}),
    "name: of another channel": called(name="incident-checkout", id="C9"),
    "name: renamed to a stricter rule": called(name="prod-payments"),
    "name: renamed to a laxer rule": called(name="lab-1"),
    "name: renamed to none": called(name="lunch"),
    "name: became a group message": called(name="incident-checkout", is_mpim=True),
    "membership: left the group": members("U2"),
    "membership: group emptied": members(),
    "group: fails": answers(GROUP, DOWN),
    "group: gone": answers(GROUP, SurfaceGone("no_such_subteam")),
    "group: slow": silent(GROUP),
    "group: no list": answers(GROUP, {}),
    "rota: fails": rota(failure=Overloaded("503")),
    "rota: slow": rota(failure=TimeoutError()),
    "rota: empty": rota(),
    "rota: handed over": rota("U2"),
    "account: fails": answers(ACCOUNT, DOWN),
    "account: slow": silent(ACCOUNT),
    "account: none": answers(ACCOUNT, {}),
    "account: another's": account(id="U9"),
    "account: deactivated since": account(deleted=True),
    "account: a guest since": account(is_restricted=True),
    "account: of another workspace since": account(team_id="T9"),
    "freeze: fails": unreadable_switch,
    "freeze: frozen since": frozen,
    "freeze: a window began": window,
    "database clock: past the time": late,
    "database clock: past the time, the process's is not": process_clock_back,
    "database: fails": store_broken,
    "policy: the channel's rule is gone": rules(*RULES[1:]),
    "policy: every rule is gone": rules(),
    "policy: nobody decides": rules(replace(RULES[0], confirm=())),
    "policy: other roles decide": rules(replace(RULES[0], confirm=("admin",))),
    "policy: the product is no more the channel's": rules(replace(RULES[0], products=("web",))),
    "policy: the channel's role is gone": without_role("responder"),
    "policy: the action's role is gone": without_role("on-call"),
}
# What is looked at once more before the order leaves.
LATE_CASES = {
    name: breaks
    for name, breaks in CASES.items()
    if name.startswith(("name:", "freeze:")) and not name.endswith("slow")
} | {
    "policy: the channel's rule is gone": rules(*RULES[1:]),
    "policy: nobody decides": rules(replace(RULES[0], confirm=())),
    "policy: the product is no more the channel's": rules(replace(RULES[0], products=("web",))),
    "policy: the action is gone": action_gone,
    "database clock: past the time": late,
}


async def test_with_everything_in_order_a_press_runs() -> None:
    bench = Bench()
    row = await bench.shown()
    assert await bench.carried(await bench.press(row)) == [row.id]


@pytest.mark.parametrize("case", CASES)
async def test_a_problem_at_the_press_runs_nothing_and_is_reported(case: str) -> None:
    bench = Bench()
    row = await bench.shown()
    CASES[case](bench)
    ingress = await bench.press(row)
    told = list(ingress.private_texts)
    assert await bench.carried(ingress) == []
    assert told or bench.world.row(row.id).state is ProposalState.EXPIRED


@pytest.mark.parametrize("case", LATE_CASES)
async def test_a_problem_after_the_press_runs_nothing(case: str) -> None:
    bench = Bench()
    row = await bench.shown()
    ingress = await bench.press(row)
    LATE_CASES[case](bench)
    with suppress(StorageUnavailable):
        await bench.carried(ingress)
    assert bench.world.control.posts == []


async def test_an_outdated_name_decides_nothing() -> None:
    bench = Bench()
    row = await bench.shown()
    bench.names = SlackChannelNames(Channels(bench.api, bench.seconds), bench.kept)
    bench.later(DECIDING_S + 1)
    bench.api.answers[INFO] = DOWN
    ingress = await bench.press(row)
    assert ingress.workflows.decisions == []
    bench.api.answers[INFO] = {"channel": {"name": "incident-checkout"}}
    assert await bench.carried(await bench.press(row)) == [row.id]


async def test_a_card_with_an_unknown_channel_name_is_judged_by_the_presses_rules() -> None:
    bench = Bench()
    bench.api.answers[INFO] = DOWN
    bench.rules = [RULES[0], ChannelRule("any-*")]
    row = await bench.shown()
    bench.called = {"name": "incident-checkout"}
    bench.api.answers[INFO] = lambda _: {"channel": bench.called}
    assert row.confirm_roles == ()
    assert await bench.carried(await bench.press(row)) == [row.id]


def test_the_star_does_not_match_direct_messages() -> None:
    everywhere = [ChannelRule("*", confirm=("responder",))]
    ruled = [*everywhere, ChannelRule("@direct", confirm=("lead",))]
    assert channel_of(everywhere, "@direct").rule.confirm == ()
    assert channel_of(everywhere, "@group").rule.confirm == ()
    assert channel_of(ruled, "@direct").rule.confirm == ("lead",)
