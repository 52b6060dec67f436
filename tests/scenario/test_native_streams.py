"""Answers in messages that Slack lets grow, against a workspace that refuses what Slack refuses.

The clock of both sides is set by the test.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
from pydantic import JsonValue

from bot.demo.workspace.app import api_base_url, serving
from bot.demo.workspace.seeds import CHECKOUT, MEMBER
from bot.demo.workspace.state import Clocks, Setup, Workspace
from bot.demo.workspace.timeline import Message
from bot.domain.ids import ChannelId, MessageTs, Person, Place, TeamId, UserId
from bot.domain.phone_screen import phone_screen
from bot.domain.session import Ask
from bot.domain.turn_events import RoundReplaced, TextDelta, TurnEvent, TurnFinished
from bot.ports.platform import AnswerStream
from bot.privacy.redactor import TextRedactor
from bot.slack.api.calls import SlackCalls
from bot.slack.api.web_api import Unreachable, create_api
from bot.slack.delivery.chart_files import ChartFiles
from bot.slack.delivery.outbox import Outbox, Patience, Pictures
from bot.slack.delivery.pacing import Rates
from bot.slack.delivery.scheduler import EditScheduler
from bot.slack.delivery.streams import Streams, StreamSetting
from bot.slack.views.native_answer import EXPIRE_S
from bot.slack.views.render import render
from bot.slack.views.surface import SlackSurface
from tests.fixtures_slack import QUICK, running_beside
from tests.golden.slack_views import (
    EVIDENCE,
    LONG,
    OUTCOMES,
    ended,
    finished,
    outcome,
    started,
    view,
)
from tests.slack_request_gate import SlackRequestGate
from tools.redactor import Redacted

TEXT = (
    "Checkout fails since 11:42 because the pool of its database is exhausted [1].\n\n"
    "The deploy of 11:40 halved the pool, see `pool.size` in its diff [2]."
)
WORDS = [f"{word} " for word in TEXT.split(" ")]


async def _at_once(_method: str) -> None:
    return


@dataclass
class Faulty(SlackCalls):
    """The Web API; `before`, `until` and `after` are asked about each call, and may raise."""

    inner: SlackCalls
    before: Callable[[str], None] = lambda _method: None
    until: Callable[[str], Awaitable[None]] = _at_once
    after: Callable[[str], None] = lambda _method: None

    async def call(self, method: str, **arguments: JsonValue) -> Mapping[str, JsonValue]:
        self.before(method)
        await self.until(method)
        answer = await self.inner.call(method, **arguments)
        self.after(method)
        return answer


@dataclass
class Slack:
    """The workspace, a surface that talks to it, and their clock."""

    workspace: Workspace
    api: Faulty
    scheduler: EditScheduler
    clock: list[float]
    setting: StreamSetting
    surface: SlackSurface = field(init=False)

    def __post_init__(self) -> None:
        self.surface = self.another_process()

    def another_process(
        self,
        redact: Callable[[str], str] = str,
        files: Callable[[Outbox], ChartFiles] | None = None,
    ) -> SlackSurface:
        """A surface that remembers nothing."""
        pictures = Pictures()
        outbox = Outbox(self.api, self.scheduler, self.workspace.app.bot_user_id, pictures)
        return SlackSurface(
            redact=redact,
            chart_files=files(outbox) if files else None,
            outbox=outbox,
            patience=Patience(backoff_s=0.001),
            streams=Streams(self.api, self.scheduler, self.setting, pictures),
        )

    async def ask(self) -> Ask:
        ts = MessageTs(await self.workspace.say(MEMBER, CHECKOUT, "@kortex why?"))
        team = TeamId(self.workspace.app.team_id)
        place = Place(team, ChannelId(CHECKOUT), ts)
        return Ask(place, ts, Person(team, UserId(MEMBER)), Redacted("why?"))

    async def begun(self) -> tuple[Ask, AnswerStream]:
        """An answer that nothing was said of yet."""
        ask = await self.ask()
        return ask, self.surface.stream(ask, await self.surface.open_answer(ask))

    def messages(self, ask: Ask) -> list[Message]:
        """The bot's messages in the thread, oldest first."""
        return list(self.workspace.timeline.replies(CHECKOUT, ask.place.thread_ts))

    def texts(self, ask: Ask) -> list[str]:
        return [said(message.text, message.blocks) for message in self.messages(ask)]

    async def shows(self, ask: Ask, text: str) -> None:
        """Wait until the last message of the thread says that."""
        await self.workspace.wait_for(lambda: text in self.texts(ask)[-1])

    def called(self, method: str) -> int:
        return sum(call.method == method for call in self.workspace.calls)

    @property
    def errors(self) -> list[str]:
        return [call.error for call in self.workspace.calls if call.error]


Open = Callable[..., Any]


@asynccontextmanager
async def slack_with(
    refused: Mapping[str, str] | None = None,
    setting: StreamSetting = "auto",
    unknown_blocks: frozenset[str] = frozenset(),
    rates: Rates = QUICK,
) -> AsyncIterator[Slack]:
    clock = [1000.0]
    request_gate = SlackRequestGate(refused=refused, unknown_blocks=unknown_blocks)
    setup = Setup(clocks=Clocks(monotonic=lambda: clock[0]), request_gate=request_gate)
    workspace = Workspace(setup)
    async with (
        serving(workspace) as origin,
        aiohttp.ClientSession() as session,
        running_beside(EditScheduler(rates, lambda: clock[0])) as scheduler,
    ):
        port = int(origin.rsplit(":", 1)[1])
        api = create_api(workspace.bot_token, api_base_url(port), session)
        yield Slack(workspace, Faulty(api), scheduler, clock, setting)


@pytest.fixture
async def slack() -> AsyncIterator[Slack]:
    async with slack_with() as made:
        yield made


def shown(final: TurnFinished) -> list[str]:
    """What an answer by edits would say."""
    return [said(part.text, part.blocks) for part in render(view([final]))]


def said(text: str, blocks: Sequence[Mapping[str, Any]]) -> str:
    return next((str(b["text"]) for b in blocks if b["type"] == "markdown"), text)


def feed(stream: AnswerStream, words: list[str]) -> None:
    for word in words:
        stream.feed(TextDelta(word))


REDACTOR = TextRedactor([], b"key")
FINAL = finished(text=TEXT, evidence=EVIDENCE, outcomes=OUTCOMES)


async def test_an_answer_grows_and_ends_with_its_evidence_in_one_call(slack: Slack) -> None:
    ask, stream = await slack.begun()
    stream.feed(started("a"))
    stream.feed(ended(outcome("a"), 1))
    feed(stream, WORDS[:12])
    await slack.shows(ask, "Checkout fails since 11:42 because the pool of")
    feed(stream, WORDS[12:])
    await stream.finish(FINAL)

    (message,) = slack.messages(ask)
    kinds = [block["type"] for block in message.blocks]
    assert message.text == shown(FINAL)[0]
    assert kinds == ["plan", "markdown", *(b["type"] for b in render(view([FINAL]))[0].blocks[1:])]
    assert (slack.called("chat.update"), slack.called("chat.postMessage")) == (0, 0)
    assert message.metadata is not None
    assert slack.errors == []


@pytest.mark.parametrize(
    ("setting", "method"), [("auto", "chat.appendStream"), ("edit", "chat.update")]
)
async def test_the_final_text_does_not_wait_for_the_edit_interval(
    setting: StreamSetting, method: str
) -> None:
    async with slack_with(setting=setting, rates=replace(QUICK, message_gap_s=3600.0)) as slack:
        ask, stream = await slack.begun()
        feed(stream, WORDS[:12])
        await slack.shows(ask, "Checkout fails since 11:42 because the pool of")
        feed(stream, WORDS[12:])
        async with asyncio.timeout(5):
            await stream.finish(FINAL)

        assert slack.messages(ask)[-1].text == shown(FINAL)[0]
        assert slack.called(method) == {"chat.appendStream": 1, "chat.update": 2}[method]


async def test_a_call_that_ends_while_its_card_is_being_sent_does_not_stay_in_progress(
    slack: Slack,
) -> None:
    ask, stream = await slack.begun()

    def end(method: str) -> None:
        if method == "chat.appendStream":
            stream.feed(ended(outcome("a"), 1))

    slack.api.before = end
    stream.feed(started("a"))
    await slack.workspace.wait_for(lambda: "in_progress" in str(slack.messages(ask)[0].blocks))
    await stream.finish(FINAL)

    assert "in_progress" not in str(slack.messages(ask)[0].blocks)


async def test_a_claim_mark_is_added_by_an_edit_after_the_end(slack: Slack) -> None:
    ask, stream = await slack.begun()
    feed(stream, WORDS)
    await slack.shows(ask, "Checkout fails")
    marked = finished(text=TEXT.replace("[1].", "[1]. (⚠ the result says otherwise)"))
    await stream.finish(marked)

    assert slack.texts(ask) == shown(marked)
    assert slack.called("chat.update") == 1
    assert slack.errors == []


async def test_the_text_of_a_replaced_round_is_removed_by_an_edit(slack: Slack) -> None:
    ask, stream = await slack.begun()
    feed(stream, ["Nothing is wrong with checkout as far as I can tell.\n", "So "])
    await slack.shows(ask, "Nothing is wrong")
    stream.feed(RoundReplaced(1))
    feed(stream, WORDS)
    await slack.shows(ask, "halved the pool")

    assert "Nothing is wrong" not in slack.texts(ask)[-1]
    await stream.finish(FINAL)
    assert slack.texts(ask) == shown(FINAL)


@pytest.mark.parametrize("code", ["unknown_method", "missing_scope", "not_in_channel", "internal_error"])  # fmt: skip
async def test_a_workspace_that_refuses_streams_gets_edits(code: str) -> None:
    async with slack_with({"chat.startStream": code}) as slack:
        ask, stream = await slack.begun()
        feed(stream, WORDS)
        await slack.shows(ask, "Checkout fails")
        await stream.finish(FINAL)

        assert slack.texts(ask) == shown(FINAL)


@pytest.mark.parametrize(
    ("setting", "asked"), [("auto", 1), ("native", 2), ("edit", 0)]
)  # fmt: skip
async def test_the_first_refusal_decides_for_the_workspace(
    setting: StreamSetting, asked: int
) -> None:
    async with slack_with({"chat.startStream": "unknown_method"}, setting) as slack:
        await slack.begun()
        await slack.begun()

        assert slack.called("chat.startStream") == asked


@pytest.mark.parametrize("code", ["message_not_in_streaming_state", "msg_too_long", "fatal_error"])  # fmt: skip
@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream"])
async def test_a_stream_refused_midway_loses_and_repeats_no_word(method: str, code: str) -> None:
    async with slack_with() as slack:
        ask, stream = await slack.begun()
        feed(stream, WORDS[:12])
        await slack.shows(ask, "Checkout fails")
        slack.workspace.request_gate = SlackRequestGate(refused={method: code})
        slack.clock[0] += 300  # Slack has ended it, and so takes edits
        feed(stream, WORDS[12:])
        await stream.finish(FINAL)

        assert slack.texts(ask) == shown(FINAL)


@pytest.mark.parametrize("code", ["msg_too_long", "edit_window_closed", "cant_update_message"])
async def test_a_stream_that_can_neither_end_nor_be_edited_is_posted_again_in_order(
    code: str,
) -> None:
    final = finished(text=LONG)
    async with slack_with() as slack:
        ask, stream = await slack.begun()
        feed(stream, WORDS[:12])
        await slack.shows(ask, "Checkout fails")
        slack.workspace.request_gate = SlackRequestGate(
            refused={"chat.stopStream": code, "chat.update": code}
        )
        slack.clock[0] += 300
        await stream.finish(final)

        assert slack.texts(ask) == shown(final)


async def test_last_words_that_slack_refuses_to_append_are_edited_in() -> None:
    async with slack_with(rates=replace(QUICK, stream_burst=1, streams_per_minute=100.0)) as slack:
        ask, stream = await slack.begun()
        feed(stream, WORDS[:12])
        await slack.shows(ask, "Checkout fails")
        await slack.scheduler.stop_permit()  # so that the end has to wait, and words go before it
        slack.workspace.request_gate = SlackRequestGate(
            refused={"chat.appendStream": "fatal_error"}
        )
        await stream.finish(FINAL)

        assert slack.texts(ask) == shown(FINAL)


@pytest.mark.parametrize("method", ["chat.startStream", "chat.appendStream", "chat.stopStream"])
@pytest.mark.parametrize("taken", [True, False])
async def test_a_call_with_an_unknown_outcome_is_neither_lost_nor_repeated(
    slack: Slack, method: str, taken: bool
) -> None:
    lost = iter([True])

    def fail(called: str) -> None:
        if called == method and next(lost, False):
            raise Unreachable(method, "no answer")

    if taken:
        slack.api.after = fail
    else:
        slack.api.before = fail
    ask, stream = await slack.begun()
    feed(stream, WORDS[:12])
    await slack.shows(ask, "Checkout fails")
    feed(stream, WORDS[12:])
    await stream.finish(FINAL)

    assert slack.texts(ask) == shown(FINAL)
    assert all(message.metadata for message in slack.messages(ask))


async def test_an_answer_longer_than_a_streams_lifetime_continues_in_the_same_message(
    slack: Slack,
) -> None:
    ask, stream = await slack.begun()
    feed(stream, WORDS[:12])
    await slack.shows(ask, "Checkout fails")
    slack.clock[0] += EXPIRE_S
    feed(stream, ["and more. "])
    await slack.workspace.wait_for(lambda: slack.called("chat.update"))
    await slack.shows(ask, "and more")
    await stream.finish(FINAL)

    assert slack.texts(ask) == shown(FINAL)
    assert (slack.called("chat.startStream"), slack.errors) == (1, [])


async def test_a_long_answer_grows_to_one_phone_screen(slack: Slack) -> None:
    ask, stream = await slack.begun()
    for line in LONG.splitlines(keepends=True):
        feed(stream, [line])
        await asyncio.sleep(0)
    screen = phone_screen(LONG).text
    await slack.shows(ask, screen[-60:-5])
    (grown,) = slack.texts(ask)
    await stream.finish(finished(text=LONG, is_kept=True))

    (text,) = slack.texts(ask)
    assert text.startswith(grown)
    assert text == screen
    assert slack.called("chat.update") == 0
    assert slack.errors == []


async def test_the_thread_has_the_whole_answer_if_it_is_not_stored(slack: Slack) -> None:
    ask, stream = await slack.begun()
    feed(stream, LONG.splitlines(keepends=True))
    await slack.shows(ask, LONG[:20])
    await stream.finish(finished(text=LONG))

    assert "\n".join(slack.texts(ask)).split() == "\n".join(shown(finished(text=LONG))).split()
    assert max(len(text.encode()) for text in slack.texts(ask)) <= 4_000
    assert slack.errors == []


async def test_a_replica_that_takes_over_ends_the_stream_with_the_whole_text(slack: Slack) -> None:
    ask, stream = await slack.begun()
    feed(stream, WORDS[:12])
    await slack.shows(ask, "Checkout fails")
    (message,) = slack.messages(ask)
    await stream.aclose()
    heir = slack.another_process()
    await heir.stream(ask, MessageTs(message.ts)).finish(FINAL)

    assert slack.texts(ask) == shown(FINAL)
    assert not slack.workspace.streams.is_open(CHECKOUT, message.ts)


@dataclass
class HeldCall:
    """The next call of that method waits until it is released."""

    method: str
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, method: str) -> None:
        if method == self.method and not self.reached.is_set():
            self.reached.set()
            await self.released.wait()


@pytest.mark.parametrize(
    ("method", "event"),
    [
        ("chat.appendStream", TextDelta(" ".join(WORDS[12:18]))),
        ("chat.stopStream", RoundReplaced(1)),
    ],
)
async def test_a_replica_that_lost_the_answer_does_not_overwrite_its_successor(
    slack: Slack, method: str, event: TurnEvent
) -> None:
    ask, stream = await slack.begun()
    feed(stream, WORDS[:12])
    await slack.shows(ask, "Checkout fails")
    (message,) = slack.messages(ask)
    slack.api.until = call = HeldCall(method)
    stream.feed(event)
    stream.feed(TextDelta("Something else was seen.\nAnd "))
    await call.reached.wait()
    leaving = asyncio.create_task(stream.aclose())
    await asyncio.sleep(0)
    async with running_beside(EditScheduler(QUICK, lambda: slack.clock[0])) as its_own:
        heir = replace(slack, scheduler=its_own).surface
        await heir.stream(ask, MessageTs(message.ts)).finish(FINAL)
    call.released.set()
    await leaving
    other, later = await slack.begun()
    feed(later, WORDS[:12])
    await slack.shows(other, "Checkout fails")

    assert slack.texts(ask) == shown(FINAL)


async def test_a_replica_killed_before_it_stored_the_message_causes_no_duplicate(
    slack: Slack,
) -> None:
    ask = await slack.ask()
    await slack.surface.open_answer(ask)
    heir = slack.another_process()
    ts = await heir.open_answer(ask)
    await heir.stream(ask, ts).finish(FINAL)

    assert slack.texts(ask) == shown(FINAL)
    assert all(message.metadata for message in slack.messages(ask))


async def test_further_messages_are_deleted_after_the_first_shows_the_end(
    slack: Slack,
) -> None:
    ask, stream = await slack.begun()
    await stream.finish(finished(text=LONG))  # as an earlier release left it, before its end
    before = slack.messages(ask)
    final = finished(text=LONG, is_kept=True)
    slack.workspace.calls.clear()
    await slack.another_process().stream(ask, MessageTs(before[0].ts)).finish(final)

    assert len(before) > 1
    assert slack.texts(ask) == shown(final)
    methods = [
        c.method for c in slack.workspace.calls if c.method in ("chat.update", "chat.delete")
    ]
    assert methods == ["chat.update", *["chat.delete"] * (len(before) - 1)]


HOSTILE = [
    "the ", "pool of `checkout` ", "fell\n", "\n", "- one\n", "**", "`", "```\n", "[a](", "https://evil.example/x",
    ") ", "<", "<@U1>", "> ", "✅ ", "Confirmed by @lead\n", "\\", "ex", "ample.com ", "\u202e", "\x1b[31m", "| a |\n",
    "@channel ", "&lt;", "~~~\n", "at 14 % of the limit that was set for it ", "é", "# ",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
async def test_hostile_text_ends_the_same_in_a_stream_as_by_edits(slack: Slack, seed: int) -> None:
    chosen = random.Random(seed)
    for _ in range(8):
        pieces = [chosen.choice(HOSTILE) for _ in range(30)]
        ask, stream = await slack.begun()
        for piece in pieces:
            stream.feed(TextDelta(piece))
            await asyncio.sleep(0.001)
        final = finished(text="".join(pieces))
        await stream.finish(final)

        assert slack.texts(ask) == shown(final)
    assert slack.errors == []


async def test_a_secret_that_arrives_letter_by_letter_is_never_appended(slack: Slack) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    text = f"The token of the deploy bot of checkout is {secret} and it has run out, so renew it. "
    redact = REDACTOR.redact_for_people
    ask = await slack.ask()
    surface = slack.another_process(redact)
    stream = surface.stream(ask, await surface.open_answer(ask))
    for letter in text * 2:
        stream.feed(TextDelta(letter))
        await asyncio.sleep(0.0005)
    await stream.finish(finished(text=redact(text * 2)))

    sent = str([call.arguments for call in slack.workspace.calls])
    assert "renew it" in sent
    assert secret[:8] not in sent
    assert slack.texts(ask) == shown(finished(text=redact(text * 2)))
