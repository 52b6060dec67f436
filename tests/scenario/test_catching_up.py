""" "Catch me up": people's messages and acts, the known facts, the open questions; on the wire,
without a model.
"""

import asyncio
import re

import pytest

from bot.chat.recap import KEPT
from bot.demo.workspace.seeds import CHECKOUT, DIRECT, MEMBER, OTHER_BOT, RESPONDER
from bot.demo.workspace.state import Setup
from bot.slack.api.web_api import RateLimited
from bot.slack.views.threads import LIMITED
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import API_KEY, Start, stage
from tests.slack_request_gate import RateLimits, SlackRequestGate
from tests.stage import REJECT, Stage, results

__all__ = ["stage"]

PROPOSE = Call(
    "core__propose_action",
    {"action": "rollback-deploy", "product": "checkout", "params": {}, "rationale": "it leaks"},
)
HOSTILE = (
    f"# All is well\n\n**Known** [press](https://evil.test/x) <!channel> `code` {API_KEY} "
    "Confirmed by @mira. \u202eolleh"
)


def script(request: Recorded) -> Round:
    if results(request):
        return Round(text=("**The pool of checkout is full.** It leaks.",))
    return Round(calls=(PROPOSE,))


async def incident(running: Stage) -> str:
    """A thread: a person, the bot's answer and its proposal, an app, a question to colleagues."""
    asked = await running.ask("@kortex why is checkout slow?", MEMBER)
    await running.answer(asked)
    await running.card(asked)
    for user, text in (
        (OTHER_BOT, "ALERT latency"),
        (MEMBER, HOSTILE),
        (RESPONDER, "@priya did you touch the pool?"),
    ):
        await running.workspace.say(user, CHECKOUT, text, asked.thread)
        await running.workspace.settled()
    return asked.thread


MENTION = {"slack": {"follow_up": "mention"}}


async def digest_of(running: Stage, text: str, thread: str = "", channel: str = CHECKOUT) -> str:
    """The digest as it was sent."""
    asked = await running.ask(text, RESPONDER, channel, thread)
    await running.answer(asked)
    return "\n".join(part.text for part in running.parts(asked))


def links(digest: str) -> list[str]:
    return re.findall(r"\]\((\S+?)\)", digest)


@pytest.mark.parametrize("stream", ["edit", "native"])
async def test_a_thread_digest_lists_its_lines_with_links(stage: Start, stream: str) -> None:
    more = {"slack": {"stream": stream, "follow_up": "mention"}}
    async with stage(script, more) as running:
        thread = await incident(running)
        asked = len(running.models.requests)
        digest = await digest_of(running, "@kortex catch me up", thread)

        assert len(running.models.requests) == asked
        _, known, rest = re.split(r"(?:Known so far|What is open)\b.*", digest)
        is_open, _, said = rest.partition("Who said and did what")
        assert "priya: “@kortex why is checkout slow?”" in said
        assert "pagerbot (app): “ALERT latency”" in said
        assert "mira: “@priya did you touch the pool?”" in said
        assert "Kortex proposed: Roll back checkout" in said
        assert "Kortex: “The pool of checkout is full. (⚠ not checked" in known
        assert re.search(r"Roll back checkout waits for a decision until \d\d:\d\d\n", is_open)
        assert "mira asked: “@priya did you touch the pool?” (no reply since)" in is_open
        site = f"https://kortex-local.slack.com/archives/{CHECKOUT}/p"
        assert links(digest)
        assert all(link.startswith(site) for link in links(digest))
        ts = {m.ts.replace(".", "") for m in running.workspace.messages(CHECKOUT)}
        assert {link.removeprefix(site).partition("?")[0] for link in links(digest)} <= ts


async def test_a_digest_quotes_hostile_words_and_pings_no_one(stage: Start) -> None:
    async with stage(script, MENTION) as running:
        thread = await incident(running)
        digest = await digest_of(running, "@kortex summary so far", thread)

        assert API_KEY not in digest + running.sent() + running.rows()
        assert "evil.test" not in " ".join(links(digest))
        assert "<!channel>" not in digest
        assert "<@" not in digest
        assert "\n# All" not in digest
        assert "\u2217\u2217Known\u2217\u2217" in digest
        assert "\u202e" not in digest


async def test_a_digest_lists_decisions_with_reasons_and_nothing_open(
    stage: Start,
) -> None:
    async with stage(script) as running:
        asked = await running.ask("@kortex why is checkout slow?", RESPONDER)
        await running.answer(asked)
        await running.press(RESPONDER, await running.card(asked), REJECT)
        (view,) = await running.workspace.wait_for(lambda: running.workspace.modals_of(RESPONDER))
        await running.workspace.submit(RESPONDER, str(view["id"]), {"text": "not the pool"})
        await running.card(asked, "Rejected")
        digest = await digest_of(running, "catch me up", asked.thread)

        assert re.search(r"Roll back checkout: rejected by mira.*“not the pool”", digest)
        still_open = digest.partition("What is open")[2]
        assert "- no open proposal and no queued question" in still_open
        assert "I did not check whether the incident is over" in still_open


async def test_a_channel_digest_lists_its_recent_threads(stage: Start) -> None:
    async with stage(script) as running:
        nothing = await digest_of(running, "@kortex catch me up")
        await incident(running)
        digest = await digest_of(running, "@kortex what happened?")

        assert "No one asked me a question in this channel in the last 24 hours." in nothing
        assert "@kortex why is checkout slow?" in digest
        assert "The pool of checkout is full." in digest
        assert "waits for a decision until" in digest


async def test_asking_what_happened_outside_a_thread_is_a_normal_question(
    stage: Start,
) -> None:
    async with stage(script) as running:
        await running.answered("@kortex what happened?", RESPONDER)
        assert len(running.models.requests) == 2


async def test_the_model_learns_only_that_a_digest_was_shown(stage: Start) -> None:
    async with stage(script, MENTION) as running:
        thread = await incident(running)
        await running.answered("@kortex catch me up", RESPONDER, thread=thread)
        await running.answered("@kortex and now?", RESPONDER, thread=thread)

        asked = str(running.models.bodies[-1])
        assert KEPT in asked
        assert "did you touch the pool" not in asked


async def test_a_direct_message_gets_a_digest_too(stage: Start) -> None:
    async with stage(script) as running:
        await running.answered("why is checkout slow?", RESPONDER, channel=DIRECT)
        digest = await digest_of(running, "catch me up", channel=DIRECT)
        assert "mira: “why is checkout slow?”" in digest
        assert "The pool of checkout is full." in digest


async def test_a_stop_ends_a_digest_while_it_reads(stage: Start) -> None:
    async with stage(script, MENTION) as running:
        thread = await incident(running)
        running.service.scheduler.rate_limited(RateLimited("conversations.replies", 25.0))
        asked = await running.ask("@kortex catch me up", RESPONDER, thread=thread)
        await running.live(asked, "Stop")
        async with asyncio.timeout(5):
            await running.ask("stop", RESPONDER, thread=thread)
            assert "Stopped by" in await running.answer(asked)


async def test_a_digest_under_a_slack_read_limit_states_its_coverage_and_asks_once(
    stage: Start,
) -> None:
    request_gate = SlackRequestGate(RateLimits.outside_marketplace())
    async with stage(script, MENTION, setup=Setup(request_gate=request_gate)) as running:
        root = await running.workspace.say(MEMBER, CHECKOUT, "line 0")
        for n in range(1, 30):
            await running.workspace.say(MEMBER, CHECKOUT, f"line {n}", root)
        digest = await digest_of(running, "@kortex catch me up", root)
        counters = request_gate.counters

        assert f"Not all: {LIMITED}." in digest
        assert "“line 14”" in digest
        assert "line 15" not in digest
        assert counters.limited.total() == 0
        assert counters.requests["conversations.replies"] == 1
