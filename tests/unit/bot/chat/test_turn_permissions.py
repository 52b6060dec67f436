"""A turn in a channel without a name yet: the narrowest rule, a notice, and another look-up."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

import pytest
import structlog.testing

from adapters.llm.messages import CompleteRequest
from bot.chat.turn_permissions import PATIENCE_S, UNKNOWN_NOTICE
from bot.domain.channel import UNKNOWN, ChannelRule, channel_of, narrowest
from bot.domain.ids import Place
from bot.domain.turn_events import TurnEnd
from tests.fakes.channel_names import FakeNames
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.scripted_provider import ScriptedProvider, calls, text
from tests.fakes.tools import FakeTool, contract
from tests.fixtures_turn import ASK, TurnBench, turn_bench
from tools.call_limits import CallLimits
from tools.policy import ToolPolicy
from tools.products import Reading

ECHO, LOGS = "core__echo", "core__logs"
RULES = (
    ChannelRule("ops", products=("checkout", "web"), confirm=("lead",), daily_usd_micros=900),
    ChannelRule("support-*", products=("web", "cart"), toolset="support", daily_usd_micros=500),
    ChannelRule("*", confirm=("anybody",)),
)
POLICY = ToolPolicy(
    toolsets={"investigate": ("core__*",), "support": (ECHO, LOGS)},
    channels=(("support-*", (ECHO,)),),
    purposes=frozenset({"investigate", "support"}),
    limits={"support": CallLimits(calls=3)},
)
ASKS = calls(("c1", ECHO, '{"text":"hi"}'), ("c2", LOGS, '{"text":"hi"}'))


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with structlog.testing.capture_logs():
        yield


class World:
    def __init__(self, names: FakeNames) -> None:
        self.provider = ScriptedProvider([ASKS, text("done")])
        self.logs = FakeTool(contract(id=LOGS))
        self.other = FakeTool(contract(id="core__other"))
        self.names = names
        self.bench: TurnBench = turn_bench(
            providers=[self.provider],
            tools=[FakeTool(), self.logs, self.other],
            names=names,
            rules=RULES,
            policy=POLICY,
        )


def offered(request: CompleteRequest) -> list[str]:
    return [spec.name for spec in request.tools]


async def test_an_unnamed_channel_uses_the_common_tools_and_is_reported() -> None:
    world = World(FakeNames(UNKNOWN))
    final = await world.bench.answer()
    assert final is not None
    assert UNKNOWN_NOTICE in final.notices
    assert [offered(request) for request in world.provider.requests] == [[ECHO]] * 2
    assert [each.ok for each in final.evidence] == [True, False]
    assert world.logs.calls == []
    assert "Products of this channel: web." in world.provider.requests[0].system


async def test_a_name_found_during_the_turn_applies_from_then_on() -> None:
    world = World(FakeNames(UNKNOWN, later=[UNKNOWN, "ops"]))
    final = await world.bench.answer()
    assert final is not None
    assert [len(offered(request)) for request in world.provider.requests] == [1, 3]
    assert "Products of this channel: checkout, web." in world.provider.requests[1].system
    assert world.names.patience == [0.0, PATIENCE_S, 0.0]


async def test_a_name_that_comes_before_the_first_round_leaves_no_trace() -> None:
    world = World(FakeNames(UNKNOWN, later=["ops"]))
    final = await world.bench.answer()
    assert final is not None
    assert UNKNOWN_NOTICE not in final.notices
    assert len(offered(world.provider.requests[0])) == 3


class PressesStop(FakeNames):
    """Someone presses Stop while the name is waited for, and it never comes."""

    pressed: Callable[[], None]

    async def for_asking(self, place: Place, patience_s: float = 0.0) -> str:
        if patience_s:
            self.pressed()
            await asyncio.Event().wait()
        return UNKNOWN


async def test_a_stop_does_not_wait_for_the_name() -> None:
    names = PressesStop()
    world = World(names)
    names.pressed = lambda: world.bench.stops.watch(ASK.turn_id).set()
    world.provider.hold = asyncio.Event()
    final = await world.bench.answer()
    assert final is not None
    assert final.end is TurnEnd.STOPPED


@pytest.mark.parametrize("tick", range(0, 40, 3))
async def test_a_resumed_turn_knows_the_name_from_the_same_round(
    tick: int,
) -> None:
    world = World(FakeNames(UNKNOWN, later=[UNKNOWN, "ops"]))
    journal = MemoryJournal(Fuse(tick))
    try:
        await world.bench.answer(journal=journal)
    except Crash:
        world.names.name, world.names.later = "ops", []
        await world.bench.answer(journal=journal.resumed())
    final = world.bench.surface.finals[-1]
    assert final.end is TurnEnd.ANSWERED


@pytest.mark.parametrize(("asked_in", "tools"), [("ops", 3), (UNKNOWN, 1)])
async def test_a_turn_of_the_previous_release_does_not_look_up_its_name(
    asked_in: str, tools: int
) -> None:
    """Its record has no such step; the permissions of its start apply."""
    record = MemoryJournal()
    world = World(FakeNames(UNKNOWN))

    async def opened() -> list[object]:
        return [f"session:{ASK.place.key}", "ops", "2026-04-07T14:35:00+00:00", False, "", ""]

    await record.step("open", opened)  # type: ignore[arg-type]
    final = await world.bench.answer(replace(ASK, channel_name=asked_in), record.resumed())
    assert final is not None
    assert world.names.patience == []
    assert len(offered(world.provider.requests[0])) == tools


@pytest.mark.parametrize("rules", [r for n in range(4) for r in combinations(RULES, n)], ids=len)
def test_the_narrowest_rule_is_within_every_rule(rules: tuple[ChannelRule, ...]) -> None:
    least = narrowest(rules)
    assert least.confirm == ()
    for rule in rules:
        products = {"checkout", "web", "cart", "payments"}
        allowed = {product for product in products if least.covers(product)}
        assert allowed <= {product for product in products if rule.covers(product)}
        assert not rule.daily_usd_micros or 0 < least.daily_usd_micros <= rule.daily_usd_micros


def test_rules_without_a_common_product_leave_none() -> None:
    rules = [ChannelRule("a", products=("x",)), ChannelRule("b", products=("y",))]
    assert not any(narrowest(rules).covers(product) for product in ("x", "y", "z"))


@pytest.mark.parametrize("name", ["ops", "support-1", "lunch", "@direct", "@group"])
@pytest.mark.parametrize("tool", [ECHO, LOGS, "core__other"])
def test_an_unknown_channel_may_use_only_what_every_channel_may(name: str, tool: str) -> None:
    unknown = channel_of(RULES, UNKNOWN)
    known = channel_of(RULES, name)
    fits = {
        channel.name: POLICY.allows(
            contract(id=tool), _Asked(channel.rule.toolset, channel.name, channel.session_name)
        )
        for channel in (unknown, known)
    }
    assert fits[UNKNOWN] <= fits[name]
    least = POLICY.limits_of(_Asked("investigate", UNKNOWN, ""))
    assert least.calls <= POLICY.limits_of(_Asked(known.rule.toolset, name, "")).calls


def test_a_tool_of_some_sessions_is_unavailable_in_an_unknown_channel() -> None:
    policy = replace(POLICY, channels=(), sessions={ECHO: ("incident-*", "direct")})
    assert not policy.allows(contract(), _Asked("investigate", UNKNOWN, ""))


class _Asked:
    def __init__(self, purpose: str, channel: str, session_name: str) -> None:
        self.purpose = purpose
        self.channel = channel
        self.session_name = session_name
        self.connection_ids: frozenset[str] = frozenset()
        self.products: tuple[str, ...] = ()
        self.reading = Reading.ALL
        self.roles: frozenset[str] = frozenset()
