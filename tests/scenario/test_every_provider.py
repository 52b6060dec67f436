"""One investigation over the true wire of every provider: people see the same from each.

One bot without Slack and one model server serve these tests; only OpenAI's second wire needs a bot
of its own.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from bot.app.build import Base, build_base
from bot.app.conversation import build_conversation
from bot.app.platforms import Directory
from bot.cli.headless import NamedByUser, NeverStopped, headless_ask
from bot.domain.ids import UserId
from bot.domain.turn_events import RoundStarted, TextDelta, ToolProgress, TurnEvent, TurnFinished
from bot.ports.durability import Journal
from bot.ports.platform import NamedByPlace
from bot.settings.model import Settings
from tests.fakes.journal import MemoryJournal
from tests.fakes.model_server import Call, Failure, ModelServer, Recorded, Round
from tests.fakes.recording_chat import RecordingChat
from tests.fixtures_providers import WIRES
from tools.records import CallEnded, CallStarted
from tools.redactor import Redacted

pytestmark = pytest.mark.asyncio(loop_scope="module")

QUESTION = "why is checkout slow?"
LOGS = Call("core__get_logs", {"product": "checkout", "time_range": "last 1m", "query": ""})
DEPLOYS = Call("core__get_recent_deploys", {"product": "checkout", "time_range": "last 24h"})
UNKNOWN = Call("core__restart", {"product": "checkout"})
ROUNDS = [
    Round(text=("Looking at ", "the logs – ✓. "), calls=(LOGS, DEPLOYS)),
    Round(text=("One more look. ",), calls=(UNKNOWN,)),
    Round(text=("The new version ", "leaks connections [E1]."), input_tokens=300),
]
BEHIND = ("Looking at the logs", "One more look")
PLOT = [
    ("round", 1),
    ("text", "Looking at the logs – ✓. "),
    ("started", LOGS.name, ("product", "query", "time_range")),
    ("ended", 1, LOGS.name, True),
    ("started", DEPLOYS.name, ("product", "time_range")),
    ("ended", 2, DEPLOYS.name, True),
    ("round", 2),
    ("text", "One more look. "),
    ("ended", 3, "unknown", False),
    ("round", 3),
    ("text", "The new version leaks connections [E1]."),
]
ANSWER = "Looking at the logs – ✓.\n\nOne more look.\n\nThe new version leaks connections [E1]."
DOWN = Failure(503, "down", headers={"x-should-retry": "false"})


def script(request: Recorded) -> Round:
    return ROUNDS[sum(text.encode() in request.raw for text in BEHIND)]


def settings_for(folder: Path, url: str, api: str) -> Settings:
    """Every provider at that address; `api` is OpenAI's."""
    own: Mapping[str, Any] = {"api_key": "k", "base_url": url, "model": "test-model"}
    names = ("anthropic", "openai", "ollama", "bedrock", "nirmata")
    providers = {name: dict(own) for name in names}
    providers["openai"]["api"] = api
    return Settings.model_validate(
        {
            "database": {"url": f"sqlite+aiosqlite:///{folder}/kortex-{api}.db"},
            "llm": {"default_provider": "openai", "first_look": False, "providers": providers},
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
        """The events without what differs by nature: who answered, ids, times, sizes of pieces."""
        told: list[tuple[object, ...]] = []
        for each in filter(None, map(_summary_of, self.events)):
            is_more = bool(told) and each[0] == told[-1][0] == "text"
            told[-1:] = [("text", f"{told[-1][1]}{each[1]}")] if is_more else [*told[-1:], each]
        return told


def _summary_of(event: TurnEvent) -> tuple[object, ...]:
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


class Bots:
    """Asks the question again each time, in a thread of its own."""

    def __init__(
        self, server: ModelServer, bases: Mapping[str, Base], stack: AsyncExitStack
    ) -> None:
        self.server = server
        self._bases = bases
        # Two each: what goes on after a kill shares nothing with what was killed.
        self._processes = {
            api: (_Process(base, stack), _Process(base, stack)) for api, base in bases.items()
        }
        self._numbers = count(1)

    def begin(self, wires: Sequence[str], answers: Any) -> "Investigation":
        responses = "openai-responses" in wires
        api = "responses" if responses else "chat"
        base = self._bases[api]
        names = [wire.removesuffix("-responses") for wire in wires]
        base.rounds.ask_in_order([base.providers[name] for name in names])
        base.rounds._circuits._by_model.clear()
        self.server._script = answers
        self.server.requests.clear()
        self.server.started.clear()
        return Investigation(self._processes[api], f"{next(self._numbers)}.1")


@dataclass(frozen=True)
class Investigation:
    """One turn of the whole bot but Slack."""

    processes: tuple["_Process", "_Process"]
    ts: str

    async def run(self, journal: Journal, process: int = 0) -> Seen:
        chosen = self.processes[process]
        before = len(chosen.surface.streams)
        ask = headless_ask(Redacted(QUESTION), "incident-x", self.ts)
        final = await chosen.talk.turns.answer(ask, journal)
        assert final is not None
        streams = chosen.surface.streams[before:]
        return Seen([event for stream in streams for event in stream.events], final)


class _Process:
    """A conversation and its surface."""

    def __init__(self, base: Base, stack: AsyncExitStack) -> None:
        self.surface = RecordingChat()
        self.talk = build_conversation(
            base,
            self.surface,
            NeverStopped(),
            Directory(_same, NamedByPlace(), NamedByUser({})),
        )


async def _same(user: UserId) -> str:
    return user


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bots(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bots]:
    folder = tmp_path_factory.mktemp("kortex")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ModelServer(script))
        bases = {
            api: await build_base(settings_for(folder, server.url, api), stack)
            for api in ("chat", "responses")
        }
        yield Bots(server, bases, stack)


def fallback_of(wire: str) -> str:
    return "anthropic" if wire.startswith("openai") else "openai"


@pytest.mark.parametrize("wire", WIRES)
async def test_the_same_investigation_is_reported_the_same_by_every_provider(
    bots: Bots, wire: str
) -> None:
    seen = await bots.begin([wire], script).run(MemoryJournal())

    assert seen.plot == PLOT
    assert (seen.final.text, seen.final.end.value) == (ANSWER, "answered")
    assert {request.wire for request in bots.server.requests} == {wire}


@pytest.mark.parametrize("wire", WIRES)
async def test_a_turn_killed_within_a_round_continues_and_is_reported_the_same(
    bots: Bots, wire: str
) -> None:
    """What is killed keeps nothing but its journal, which is text."""
    holds = {2: asyncio.Event()}

    def holding(request: Recorded) -> Round:
        chosen = script(request)
        return replace(chosen, hold=holds.pop(ROUNDS.index(chosen), None), hold_at=1)

    journal = MemoryJournal()
    investigation = bots.begin([wire], holding)
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(investigation.run(journal))
        await bots.server.started.wait()
        first.cancel()
    seen = await investigation.run(journal.resumed(), process=1)

    told = [
        each for each in seen.plot if each[0] != "started"
    ]  # a finished call is reported as finished
    assert told == [each for each in PLOT if each[0] != "started"]
    assert (seen.final.text, seen.final.end.value) == (ANSWER, "answered")
    assert len(bots.server.requests) == len(ROUNDS) + 1


@pytest.mark.parametrize("fails_at", [0, 2])
@pytest.mark.parametrize("wire", WIRES)
async def test_the_next_provider_finishes_the_same_investigation(
    bots: Bots, wire: str, fails_at: int
) -> None:
    def failing(request: Recorded) -> Round:
        chosen = script(request)
        is_down = request.wire == wire and ROUNDS.index(chosen) >= fails_at
        return Round(failure=DOWN) if is_down else chosen

    other = fallback_of(wire)
    seen = await bots.begin([wire, other], failing).run(MemoryJournal())

    tries = ("round", fails_at + 1)
    assert [each for each in seen.plot if each != tries] == [e for e in PLOT if e != tries]
    assert (seen.final.text, seen.final.end.value) == (ANSWER, "answered")
    assert sum(request.wire == other for request in bots.server.requests) == len(ROUNDS) - fails_at
    assert any("down" in notice for notice in seen.final.notices)


@pytest.mark.parametrize("wire", WIRES)
async def test_a_failure_after_text_ends_the_turn_with_that_text(bots: Bots, wire: str) -> None:
    broken = replace(ROUNDS[0], error_at=4)  # every wire has sent the text by then
    seen = await bots.begin([wire, fallback_of(wire)], lambda _: broken).run(MemoryJournal())

    assert (seen.final.text, seen.final.end.value) == ("Looking at the logs – ✓.", "failed")
    assert seen.final.outcomes == ()
    assert {request.wire for request in bots.server.requests} == {wire}
