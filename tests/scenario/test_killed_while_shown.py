"""A process that dies at any call to Slack while it shows an end: its successor shows the whole end
once, in order, with its chart once, also where it gives the extras up."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import aiohttp
import pytest
from pydantic import JsonValue

from bot.chat.turn_result import without_extras
from bot.domain.ids import MessageTs, ProposalId
from bot.domain.session import Ask
from bot.domain.turn_events import TextDelta, TurnFinished
from bot.ports.failures import StepAbandoned
from bot.slack.api.calls import SlackCalls
from bot.slack.delivery.chart_files import ChartFiles, uploader
from bot.slack.delivery.outbox import Outbox, Patience, Pictures
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.delivery.streams import Streams, StreamSetting
from bot.slack.views.charts import described
from bot.slack.views.surface import SlackSurface
from tests.fixtures_slack import ASK, QUICK, running_beside
from tests.golden.slack_views import LONG, finished, proposal
from tests.scenario.test_chart_files import FINAL as CHARTED
from tests.scenario.test_chart_files import paint, pictures
from tests.scenario.test_native_streams import FINAL, Slack, shown, slack_with

CHART = "data_visualization"
MOST_CALLS = 60
CARD = ProposalId("p_1")


@dataclass
class Mortal(SlackCalls):
    """The Web API of a process that ends with its call number `at`, before or after its effect."""

    inner: SlackCalls
    at: int = MOST_CALLS
    takes_effect: bool = False
    calls: int = 0
    died: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        number, self.calls = self.calls, self.calls + 1
        if number > self.at or (number == self.at and not self.takes_effect):
            await self._end()
        answer = await self.inner.call(method, **arguments)
        if number == self.at:
            await self._end()
        return answer

    async def _end(self) -> None:
        self.died.set()
        await asyncio.Event().wait()


@dataclass
class Site:
    """A workspace, and processes that live in it one after the other."""

    slack: Slack
    http: aiohttp.ClientSession

    @asynccontextmanager
    async def process(self, api: Mortal) -> AsyncIterator[SlackSurface]:
        pictures = Pictures()
        async with running_beside(EditScheduler(QUICK, lambda: self.slack.clock[0])) as scheduler:
            outbox = Outbox(api, scheduler, self.slack.workspace.app.bot_user_id, pictures)
            yield SlackSurface(
                outbox,
                patience=Patience(backoff_s=0.001),
                streams=Streams(api, scheduler, self.slack.setting, pictures),
                chart_files=ChartFiles(api, outbox, paint, described, uploader(self.http)),
            )

    async def lives(
        self, ask: Ask, final: TurnFinished, at: int = MOST_CALLS, *, takes_effect: bool = False
    ) -> bool:
        """A process answers; whether it died at that call."""
        api = Mortal(self.slack.api, at, takes_effect)
        async with self.process(api) as surface, asyncio.timeout(20):
            ending = asyncio.ensure_future(_answered(surface, ask, final))
            dying = asyncio.ensure_future(api.died.wait())
            await asyncio.wait({ending, dying}, return_when=asyncio.FIRST_COMPLETED)
            for each in (ending, dying):
                each.cancel()
            await asyncio.wait({ending, dying})
        return api.died.is_set()


async def _answered(surface: SlackSurface, ask: Ask, final: TurnFinished) -> None:
    ts = await surface.open_answer(ask)
    stream = surface.stream(ask, MessageTs(ts))
    stream.feed(TextDelta(final.text[: len(final.text) // 2]))
    at = datetime.fromtimestamp(float(ask.ts), UTC)
    await surface.show_card(replace(proposal(), id=CARD, place=ask.place, created_at=at))
    await stream.finish(final)


@asynccontextmanager
async def site(setting: StreamSetting, unknown: frozenset[str]) -> AsyncIterator[Site]:
    async with (
        slack_with(setting=setting, unknown_blocks=unknown) as slack,
        aiohttp.ClientSession() as http,
    ):
        yield Site(slack, http)


def parts(slack: Slack, ask: Ask) -> tuple[list[str], int]:
    """What the messages of the answer say, and how many cards there are."""
    kinds = [(each.metadata or {}).get("event_type") for each in slack.messages(ask)]
    texts = zip(kinds, slack.texts(ask), strict=True)
    return [text for kind, text in texts if kind != "kortex_card"], kinds.count("kortex_card")


def whole(final: TurnFinished) -> TurnFinished:
    return final


def given_up(final: TurnFinished) -> TurnFinished:
    """As after three deaths at the step that shows it."""
    return without_extras(ASK, final, StepAbandoned("deliver"))


FINALS = {
    "one message": FINAL,
    "several messages": finished(text=LONG),
    "a screen of a longer answer": finished(text=LONG, is_kept=True),
    "a chart": CHARTED,
}


@pytest.mark.parametrize("setting", ["native", "edit"])
@pytest.mark.parametrize("final", FINALS.values(), ids=FINALS)
@pytest.mark.parametrize("then", [whole, given_up])
@pytest.mark.parametrize("takes_effect", [True, False], ids=["after its effect", "before"])
async def test_a_process_killed_at_any_call_leaves_the_whole_answer(
    setting: StreamSetting,
    final: TurnFinished,
    then: Callable[[TurnFinished], TurnFinished],
    takes_effect: bool,
) -> None:
    at = 0
    async with site(setting, frozenset()) as made:
        while True:
            ask = await made.slack.ask()
            if not await made.lives(ask, final, at, takes_effect=takes_effect):
                break
            assert not await made.lives(ask, then(final))
            assert parts(made.slack, ask) == (shown(then(final)), 1), f"call {at}"
            at += 1
    assert 1 < at < MOST_CALLS


@pytest.mark.parametrize("setting", ["native", "edit"])
async def test_two_processes_killed_one_after_the_other_leave_the_whole_answer(
    setting: StreamSetting,
) -> None:
    final = FINALS["several messages"]
    first, second = 0, 0
    async with site(setting, frozenset()) as made:
        while True:
            ask = await made.slack.ask()
            if not await made.lives(ask, final, first, takes_effect=True):
                break
            is_killed = await made.lives(ask, final, second, takes_effect=True)
            await made.lives(ask, final)
            assert parts(made.slack, ask) == (shown(final), 1), f"calls {first} and {second}"
            first, second = (first, second + 2) if is_killed else (first + 3, first % 2)
    assert 1 < first < MOST_CALLS


@pytest.mark.parametrize("takes_effect", [True, False], ids=["after its effect", "before"])
async def test_a_picture_of_a_killed_process_is_shared_once(takes_effect: bool) -> None:
    at = 0
    async with site("edit", frozenset({CHART})) as made:
        while True:
            ask = await made.slack.ask()
            if not await made.lives(ask, CHARTED, at, takes_effect=takes_effect):
                break
            assert not await made.lives(ask, CHARTED)
            assert pictures(made.slack, ask) == [b"PNG of checkout p99"], f"call {at}"
            at += 1
    assert 1 < at < MOST_CALLS
