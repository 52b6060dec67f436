"""A turn that dies between any two steps, again and again: people see the answer grow, and its end.

The turn, its stream and its messages are real; a process is what runs until its fuse burns.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import JsonValue

from adapters.llm.messages import CompleteRequest, StreamChunk
from bot.chat.turn_result import LOST
from bot.domain.audit import AuditKind
from bot.domain.ids import MessageTs
from bot.domain.session import Ask, TurnState
from bot.ports.failures import StepAbandoned
from bot.ports.platform import AnswerStream
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.views.surface import SlackSurface
from tests.fakes.journal import Crash, Fuse, MemoryJournal
from tests.fakes.scripted_provider import ScriptedProvider, calls, text
from tests.fakes.slack_web import FakeSlackWeb
from tests.fixtures_slack import QUICK
from tests.fixtures_turn import ASK, turn_bench

STEPS = ["open", "placeholder", "round:1", "tool:1:core__echo", "round:2", "keep", "deliver"]
ROUNDS = [
    calls(("c1", "core__echo", '{"text":"41.5 ms"}'), say="Looking."),
    text("It takes ", "41.5 ms [E1]."),
]


class ByHistory(ScriptedProvider):
    """Says what fits the conversation, however often it was asked before."""

    async def stream(self, request: CompleteRequest) -> Any:
        behind = sum(message.tool_result is not None for message in request.messages)
        chunk: StreamChunk
        for chunk in self.script[behind]:
            await asyncio.sleep(0)
            yield chunk


class Unhurried(MemoryJournal):
    """Reading a record takes as long as an edit."""

    async def step(
        self,
        name: str,
        run: Callable[[], Awaitable[JsonValue]],
        *,
        with_next: bool = False,
    ) -> JsonValue:
        value = await super().step(name, run, with_next=with_next)
        for _ in range(30):
            await asyncio.sleep(0)
        return value

    def resumed(self, fuse: Fuse | None = None) -> "Unhurried":
        return Unhurried(fuse, self.record)


class GivesUp(Unhurried):
    """The record of a turn with repeated deaths at one step."""

    at = ""

    async def step(
        self,
        name: str,
        run: Callable[[], Awaitable[JsonValue]],
        *,
        with_next: bool = False,
    ) -> JsonValue:
        if name == self.at:
            raise StepAbandoned(name)
        return await super().step(name, run, with_next=with_next)

    def resumed(self, fuse: Fuse | None = None) -> "GivesUp":
        same = GivesUp(fuse, self.record)
        same.at = self.at
        return same


@dataclass
class Processes:
    """One turn and Slack, over the lives of processes."""

    slack: FakeSlackWeb = field(default_factory=FakeSlackWeb)
    journal: MemoryJournal = field(default_factory=Unhurried)
    surface: SlackSurface = field(init=False)

    def __post_init__(self) -> None:
        self.bench = turn_bench(providers=[ByHistory(ROUNDS)], surface=self)  # type: ignore[arg-type]

    async def open_answer(self, ask: Ask) -> MessageTs:
        return await self.surface.open_answer(ask)

    def stream(self, ask: Ask, ts: MessageTs) -> AnswerStream:
        return self.surface.stream(ask, ts)

    async def live(
        self, dies_at: int | None = None, *, lost: bool = False, told: bool = False
    ) -> None:
        """Take the turn up with nothing in memory, until that tick or the turn's end.

        `lost`: only to end it.
        """
        self.journal = self.journal.resumed(Fuse(dies_at))
        scheduler = EditScheduler(QUICK)
        async with scheduler.running():
            self.surface = SlackSurface(Outbox(self.slack, scheduler, bot_user_id="UBOT"))
            with suppress(Crash, StepAbandoned):
                await self._act(lost=lost, told=told)

    async def _act(self, *, lost: bool, told: bool) -> None:
        if lost:
            await self.bench.turns.end_lost(ASK, told, self.journal)
        else:
            await self.bench.answer(ASK, self.journal)

    @property
    def recorded(self) -> list[str]:
        return [name for name, _ in self.journal.record]

    def shown(self) -> str:
        """The whole of the one message."""
        (message,) = self.slack.messages.values()
        return str(message)


async def finished() -> str:
    """What an undisturbed turn looks like at its end."""
    processes = Processes()
    await processes.live()
    assert processes.recorded == STEPS
    return processes.shown()


# Before each step, and before its record. The kill after a record is that before the next step.
@pytest.mark.parametrize("again", [0, 1, 2], ids=["at-once", "not-recorded", "one-step-on"])
@pytest.mark.parametrize("tick", range(2 * len(STEPS)))
async def test_a_turn_killed_six_times_ends_normally(tick: int, again: int) -> None:
    whole = await finished()
    processes = Processes()
    await processes.live(dies_at=tick)
    for _ in range(5):
        await processes.live(dies_at=again)
    await processes.live()
    assert processes.recorded == STEPS
    assert processes.shown() == whole


async def test_a_finished_answer_is_not_touched_by_a_replay() -> None:
    processes = Processes()
    await processes.live()
    before = len(processes.slack.calls)
    for _ in range(6):
        await processes.live()
    assert processes.slack.calls[before:] == []


@pytest.mark.parametrize("behind", range(2, len(STEPS)))
async def test_a_replay_shows_nothing_until_something_runs(behind: int) -> None:
    processes = Processes()
    await processes.live(dies_at=2 * behind)
    before = len(processes.slack.calls)
    await processes.live(dies_at=0)
    assert processes.slack.calls[before:] == []


@pytest.mark.parametrize("step", [step for step in STEPS if step not in ("keep", "deliver")])
async def test_an_abandoned_step_ends_the_turn_and_is_named(step: str) -> None:
    processes = Processes(journal=GivesUp())
    processes.journal.at = step  # type: ignore[attr-defined]
    await processes.live()
    assert f"crashed repeatedly at the same step ({step})" in processes.shown()
    assert "turn:stop" not in processes.shown()
    assert processes.bench.memory.kinds().count(AuditKind.TURN_ENDED) == (step != "open")


async def test_an_answer_too_long_to_show_keeps_its_text() -> None:
    processes = Processes()
    await processes.live(dies_at=2 * STEPS.index("deliver"))
    gives_up = GivesUp(None, processes.journal.record)
    gives_up.at = "deliver"
    processes.journal = gives_up
    await processes.live()
    assert "41.5 ms [E1]" in processes.shown()
    assert "charts and evidence are left out" in processes.shown()
    assert "could not be finished" not in processes.shown()
    assert processes.bench.state() is TurnState.ANSWERED


@pytest.mark.parametrize(
    ("step", "shown"),
    [("round:2", "Looking."), ("keep", "41.5 ms [E1]"), ("keep", "same step (keep)")],
)
async def test_results_before_an_abandoned_step_are_shown(step: str, shown: str) -> None:
    processes = Processes(journal=GivesUp())
    processes.journal.at = step  # type: ignore[attr-defined]
    await processes.live()
    assert shown in processes.shown()


@pytest.mark.parametrize("tick", range(2 * len(STEPS)))
async def test_an_abandoned_turn_is_ended_with_one_message(tick: int) -> None:
    processes = Processes()
    await processes.live(dies_at=tick)
    processes.journal = Unhurried()  # a workflow of its own
    await processes.live(dies_at=3, lost=True)
    await processes.live(lost=True)
    assert LOST in processes.shown()
    assert "turn:stop" not in processes.shown()
    ends = processes.bench.memory.kinds().count(AuditKind.TURN_ENDED)
    assert (ends, processes.bench.state() is TurnState.RUNNING) == (1, False)


async def test_a_turn_whose_end_was_shown_gets_a_record_and_no_message() -> None:
    processes = Processes()
    await processes.live(dies_at=10)
    before = len(processes.slack.calls)
    processes.journal = Unhurried()
    await processes.live(lost=True, told=True)
    assert processes.slack.calls[before:] == []
    assert processes.bench.state() is TurnState.FAILED
