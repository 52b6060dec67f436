"""A hundred threads of one workspace at once, by Slack's own streams and by edits: 429s and waits.

Both sides go by a clock that runs five times as fast, with Slack's real rates; the figures are
seconds of that clock.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest

from bot.demo.workspace.app import api_base_url, serving
from bot.demo.workspace.feed import Change
from bot.demo.workspace.json_access import text_at
from bot.demo.workspace.seeds import CHECKOUT, MEMBER, PAYMENTS, QUIET
from bot.demo.workspace.state import Clocks, Setup, Workspace
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.session import Ask
from bot.domain.turn_events import TextDelta, TurnFinished
from bot.slack.api.web_api import create_api
from bot.slack.delivery.outbox import Outbox
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.delivery.streams import Streams, StreamSetting
from bot.slack.views.surface import SlackSurface
from tests.benchmarks.figures import quantile, show
from tests.fixtures_slack import faster, running_beside
from tests.golden.slack_views import EVIDENCE, OUTCOMES, finished
from tests.slack_request_gate import RateLimits, SlackRequestGate
from tools.redactor import Redacted

pytestmark = pytest.mark.benchmark

SPEED = 5
CHANNELS = (CHECKOUT, PAYMENTS, QUIET)
LINE = "Checkout fails since 11:42, its pool of connections is exhausted [1].\n"
FINAL = finished(text=LINE * 8, evidence=EVIDENCE, outcomes=OUTCOMES)
LONG = finished(text=LINE * 200, evidence=EVIDENCE, outcomes=OUTCOMES)  # four messages


@dataclass
class Run:
    """The answers under way, and when each was seen."""

    workspace: Workspace
    surface: SlackSurface
    request_gate: SlackRequestGate
    asked: dict[str, float] = field(default_factory=dict)
    seen: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    async def watch(self) -> None:
        """Note when each thread first shows text of its answer."""
        with self.workspace.feed.subscribe() as changes:
            async for change in changes:
                self._look(change)

    def _look(self, change: Change) -> None:
        thread = text_at(change.body, "thread_ts")
        if "Checkout fails" in text_at(change.body, "text") and thread not in self.seen:
            self.seen[thread] = time.monotonic()

    async def answer(self, number: int, final: TurnFinished = FINAL) -> None:
        """One question, answered over ten seconds of the quick clock."""
        ts = MessageTs(await self.workspace.say(MEMBER, CHANNELS[number % 3], "@kortex why?"))
        team = TeamId(self.workspace.app.team_id)
        place = Place(team, ChannelId(CHANNELS[number % 3]), ts)
        ask = Ask(place, ts, Person(team, UserId(MEMBER)), Redacted("why?"))
        self.asked[ts] = time.monotonic()
        stream = self.surface.stream(ask, await self.surface.open_answer(ask))
        lines = final.text.splitlines(keepends=True)
        for line in lines:
            stream.feed(TextDelta(line))
            await asyncio.sleep(10 / len(lines) / SPEED)
        await stream.finish(final)
        self.ended[ts] = time.monotonic()

    def waits(self, until: dict[str, float]) -> list[float]:
        """Seconds of the quick clock from each question on."""
        return [(until[ts] - at) * SPEED for ts, at in self.asked.items()]


@asynccontextmanager
async def running(setting: StreamSetting) -> AsyncIterator[Run]:
    clocks = Clocks(monotonic=lambda: time.monotonic() * SPEED)
    request_gate = SlackRequestGate(RateLimits(), clocks.monotonic)
    workspace = Workspace(Setup(clocks=clocks, request_gate=request_gate))
    async with (
        serving(workspace) as origin,
        aiohttp.ClientSession() as session,
        running_beside(EditScheduler(faster(SPEED))) as scheduler,
    ):
        port = int(origin.rsplit(":", 1)[1])
        api = create_api(workspace.bot_token, api_base_url(port), session)
        outbox = Outbox(api, scheduler, workspace.app.bot_user_id)
        streams = Streams(api, scheduler, setting)
        surface = SlackSurface(outbox, streams=streams, take_first_look=lambda _ask: True)
        run = Run(workspace, surface, request_gate)
        watching = asyncio.create_task(run.watch())
        yield run
        watching.cancel()


@pytest.mark.parametrize("threads", [10, 100])
@pytest.mark.parametrize("setting", ["auto", "edit"])
async def test_a_busy_workspace_is_never_over_its_limits(
    setting: StreamSetting, threads: int
) -> None:
    async with running(setting) as run:
        async with asyncio.timeout(100), asyncio.TaskGroup() as answers:
            for number in range(threads):
                answers.create_task(run.answer(number))
        counters = run.request_gate.counters
        first, last = run.waits(run.seen), run.waits(run.ended)
        show(
            f"{threads} threads at once, stream = {setting}, each answer written in 10 s",
            answered_429=str(sum(counters.limited.values())),
            other_errors=str(sum(1 for call in run.workspace.calls if call.error)),
            begun_as_streams=str(counters.requests["chat.startStream"]),
            first_visible_text_p50_p95_s=f"{quantile(first, 0.5):.1f} {quantile(first, 0.95):.1f}",
            finals_p50_p95_s=f"{quantile(last, 0.5):.1f} {quantile(last, 0.95):.1f}",
        )
        assert [(call.method, call.error) for call in run.workspace.calls if call.error] == []


@pytest.mark.parametrize("setting", ["auto", "edit"])
async def test_the_messages_of_long_answers_do_not_wait_for_edits(setting: StreamSetting) -> None:
    async with running(setting) as run:
        async with asyncio.timeout(100), asyncio.TaskGroup() as answers:
            for number in range(12):
                answers.create_task(run.answer(number, LONG))
        last = run.waits(run.ended)
        show(
            f"12 answers of four messages at once, stream = {setting}, each written in 10 s",
            finals_p50_max_s=f"{quantile(last, 0.5):.1f} {max(last):.1f}",
        )
        assert [(call.method, call.error) for call in run.workspace.calls if call.error] == []
