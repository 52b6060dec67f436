"""One investigation over the true wire of every provider: whoever answers, people see the same."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from blockbuster import BlockBuster

from bot.app import build_base, build_conversation
from bot.domain.events import RoundStarted, TextDelta, ToolProgress, TurnEvent, TurnFinished
from bot.domain.ids import UserId
from bot.headless import NeverStopped, headless_ask
from bot.ports import Journal
from bot.settings.model import Settings
from tests.fakes.journal import MemoryJournal
from tests.fakes.model_server import Call, Failure, ModelServer, Recorded, Round
from tests.fakes.recording_surface import RecordingSurface
from tests.fixtures_providers import WIRES
from tools.records import CallEnded, CallStarted

QUESTION = "why is checkout slow?"
LOGS = Call("core__get_logs", {"product": "checkout", "time_range": "last 30m", "query": ""})
DEPLOYS = Call("core__get_recent_deploys", {"product": "checkout", "time_range": "last 24h"})
UNKNOWN = Call("core__restart", {"product": "checkout"})
ROUNDS = [
    Round(text=("Looking at ", "the logs – ✓. "), calls=(LOGS, DEPLOYS)),
    Round(text=("One more look. ",), calls=(UNKNOWN,)),
    Round(text=("The new version ", "leaks connections [E1]."), input_tokens=300),
]
BEHIND = ("Looking at the logs", "One more look")


def script(request: Recorded) -> Round:
    """The round that fits what the conversation already holds, whatever its wire."""
    return ROUNDS[sum(text.encode() in request.raw for text in BEHIND)]


def provider_table(wire: str, url: str) -> Mapping[str, Mapping[str, Any]]:
    """`[llm.providers]` for one wire."""
    name = wire.removesuffix("-responses")
    api = {"api": "responses"} if name != wire else {}
    return {name: {"api_key": "k", "base_url": url, "model": "test-model", **api}}


def settings_for(folder: Path, *tables: Mapping[str, Mapping[str, Any]]) -> Settings:
    names = [name for table in tables for name in table]
    return Settings.model_validate(
        {
            "database": {"url": f"sqlite+aiosqlite:///{folder}/kortex.db"},
            "llm": {
                "default_provider": names[0],
                "fallback_providers": names[1:],
                "providers": {name: own for table in tables for name, own in table.items()},
            },
            "observe": {part: {"kind": "recorded"} for part in ("logs", "metrics", "traces")},
            "channels": [{"match": "incident-*", "products": ["checkout"]}],
        }
    )


@dataclass
class Seen:
    """A turn as its surface and its record hold it."""

    events: Sequence[TurnEvent]
    final: TurnFinished

    @property
    def plot(self) -> list[tuple[object, ...]]:
        """The events without what differs by nature: who answered, ids, times."""
        told = [_told(event) for event in self.events]
        return [each for each in told if each]


def _told(event: TurnEvent) -> tuple[object, ...]:
    match event:
        case RoundStarted(number, _, _):
            return ("round", number)
        case TextDelta(text):
            return ("text", text)
        case ToolProgress(CallStarted(_, name, arguments), _):
            return ("started", name, tuple(sorted(arguments)))
        case ToolProgress(CallEnded(outcome), evidence):
            return ("ended", evidence, outcome.record.name, outcome.record.ok)
        case _:
            return ()


Investigate = Callable[[Settings, Journal], Awaitable[Seen]]


@pytest.fixture
def turn(_nothing_blocks_the_loop: BlockBuster) -> Investigate:
    """One turn of the whole bot but Slack; only starting and stopping may block the loop."""

    async def investigate(settings: Settings, journal: Journal) -> Seen:
        surface = RecordingSurface()
        ask = headless_ask(QUESTION, "incident-x", "1.1")
        async with AsyncExitStack() as stack:
            _nothing_blocks_the_loop.deactivate()
            stack.callback(_nothing_blocks_the_loop.deactivate)
            base = await build_base(settings, stack)
            talk = build_conversation(base, surface, NeverStopped(), _same, stack)
            _nothing_blocks_the_loop.activate()
            final = await talk.turns.answer(ask, journal)
            _nothing_blocks_the_loop.deactivate()
        assert final is not None
        return Seen([event for stream in surface.streams for event in stream.events], final)

    return investigate


async def _same(user: UserId) -> str:
    return user


PLOT = [
    ("round", 1),
    ("text", "Looking at "),
    ("text", "the logs – ✓. "),
    ("started", LOGS.name, ("product", "query", "time_range")),
    ("ended", 1, LOGS.name, True),
    ("started", DEPLOYS.name, ("product", "time_range")),
    ("ended", 2, DEPLOYS.name, True),
    ("round", 2),
    ("text", "One more look. "),
    ("ended", 3, "unknown", False),
    ("round", 3),
    ("text", "The new version "),
    ("text", "leaks connections [E1]."),
]
ANSWER = "Looking at the logs – ✓.\n\nOne more look.\n\nThe new version leaks connections [E1]."


@pytest.mark.parametrize("wire", WIRES)
async def test_the_same_investigation_is_told_the_same_whoever_answers(
    turn: Investigate, wire: str, tmp_path: Path
) -> None:
    async with ModelServer(script) as server:
        seen = await turn(settings_for(tmp_path, provider_table(wire, server.url)), MemoryJournal())

    assert seen.plot == PLOT
    assert (seen.final.text, seen.final.end.value) == (ANSWER, "answered")
    assert {request.wire for request in server.requests} == {wire}


@pytest.mark.parametrize("wire", WIRES)
async def test_a_turn_killed_within_a_round_goes_on_and_asks_only_that_round_again(
    turn: Investigate, wire: str, tmp_path: Path
) -> None:
    held = asyncio.Event()
    holds = {2: held}

    def holding(request: Recorded) -> Round:
        chosen = script(request)
        return replace(chosen, hold=holds.pop(ROUNDS.index(chosen), None), hold_at=1)

    journal = MemoryJournal()
    async with ModelServer(holding) as server:
        settings = settings_for(tmp_path, provider_table(wire, server.url))
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(turn(settings, journal))
            await server.started.wait()
            first.cancel()
        seen = await turn(settings, journal.resumed())

    assert (seen.final.text, seen.final.end.value) == (ANSWER, "answered")
    assert len(server.requests) == len(ROUNDS) + 1


def fallback_of(wire: str) -> str:
    return "anthropic" if wire.startswith("openai") else "openai"


DOWN = Failure(503, "down", headers={"x-should-retry": "false"})


@pytest.mark.parametrize("fails_at", [0, 2])
@pytest.mark.parametrize("wire", WIRES)
async def test_when_a_provider_goes_down_the_next_one_ends_the_same_investigation(
    turn: Investigate, wire: str, fails_at: int, tmp_path: Path
) -> None:
    def failing(request: Recorded) -> Round:
        chosen = script(request)
        return chosen if ROUNDS.index(chosen) < fails_at else Round(failure=DOWN)

    async with ModelServer(failing) as server, ModelServer(script) as other:
        tables = (provider_table(wire, server.url), provider_table(fallback_of(wire), other.url))
        seen = await turn(settings_for(tmp_path, *tables), MemoryJournal())

    assert [each for each in seen.plot if each[0] != "round"] == [
        each for each in PLOT if each[0] != "round"
    ]
    assert (seen.final.text, seen.final.end.value) == (ANSWER, "answered")
    assert len(other.requests) == len(ROUNDS) - fails_at
    assert any("down" in notice for notice in seen.final.notices)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_failure_after_text_ends_the_turn_with_what_there_is(
    turn: Investigate, wire: str, tmp_path: Path
) -> None:
    broken = replace(ROUNDS[0], error_at=4)  # every wire has sent the text by then
    async with ModelServer([broken]) as server, ModelServer(script) as other:
        tables = (provider_table(wire, server.url), provider_table(fallback_of(wire), other.url))
        seen = await turn(settings_for(tmp_path, *tables), MemoryJournal())

    assert (seen.final.text, seen.final.end.value) == ("Looking at the logs – ✓.", "failed")
    assert seen.final.outcomes == ()
    assert other.requests == []
