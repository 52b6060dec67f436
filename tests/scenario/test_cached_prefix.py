"""Repeated text is equal to the byte, over rounds and turns: providers cache it."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import pytest_asyncio

from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_providers import WIRES
from tests.fixtures_threads import Bots, opened

pytestmark = pytest.mark.asyncio(loop_scope="module")

MARK: Mapping[str, Any] = {"type": "ephemeral"}
POINT = {"cachePoint": {"type": "default"}}
TIME = Call("core__get_current_time", {})
LOGS = Call("core__get_logs", {"product": "checkout", "time_range": "last 1m", "query": "é"})
MANY = tuple(
    Call(
        "core__get_logs", {"product": "checkout", "time_range": f"last {n}m", "query": "never said"}
    )
    for n in range(1, 13)
)
GAP = timedelta(minutes=7, seconds=13)
THOUGHT = ("The logs tell.", "c2lnbmF0dXJl")
ROUNDS = [
    Round(text=("Looking. ",), calls=(LOGS, TIME), thought=THOUGHT),
    Round(calls=MANY),
    Round(
        text=("It leaks ", "[E1]. \n"),
    ),
]


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def bots(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bots]:
    """With a first look in every turn."""
    folder = tmp_path_factory.mktemp("kortex")
    async with opened("sqlite", folder, first_look=True) as made:
        yield made


def unmarked(value: object) -> object:
    """Without cache breakpoints, which move on with the conversation."""
    if isinstance(value, dict):
        return {
            k: unmarked(v) for k, v in value.items() if not (k == "cache_control" and v == MARK)
        }
    if isinstance(value, list):
        return [unmarked(each) for each in value if each != POINT]
    return value


def parts_of(request: Recorded) -> tuple[str, list[str]]:
    body = json.loads(request.raw)
    messages = body.pop("input" if "input" in body else "messages")
    body.pop("tool_choice", None)  # OpenAI's, which its cache ignores
    return json.dumps(unmarked(body)), [json.dumps(unmarked(each)) for each in messages]


@dataclass(frozen=True)
class Talk:
    """The requests of three turns of a thread, and when their questions were asked."""

    sent: list[Recorded]
    asked_at: list[datetime]


async def requests_of_a_thread(bots: Bots, wire: str) -> list[Recorded]:
    """Three turns, minutes and seconds apart, with a decision's worth of time between."""
    thread = bots.thread(wire)
    sent: list[Recorded] = []
    for _ in range(3):
        await thread.ask(*ROUNDS)
        sent += bots.server.requests
        bots.clock.at += GAP
    return sent


@pytest_asyncio.fixture(
    loop_scope="module",
    scope="module",
    params=[*WIRES, "ollama-emulated", "nirmata-emulated"],
)
async def talk(bots: Bots, request: pytest.FixtureRequest) -> Talk:
    asked_at = [bots.clock.at + n * GAP for n in range(3)]
    return Talk(await requests_of_a_thread(bots, request.param), asked_at)


async def test_a_request_starts_with_the_whole_previous_request(talk: Talk) -> None:
    sent = [parts_of(request) for request in talk.sent]

    assert len(sent) == 9
    for (before, earlier), (after, later) in pairwise(sent):
        assert after == before
        assert later[: len(earlier)] == earlier
    assert [sum("by_rules" in message for message in messages) for _, messages in sent[::3]] == [
        1,
        2,
        3,
    ]


async def test_the_time_is_sent_with_each_question_and_nowhere_earlier(talk: Talk) -> None:
    head, messages = parts_of(talk.sent[-1])
    times = [f"{at:%Y-%m-%dT%H:%M:%SZ}" for at in talk.asked_at]
    told = [n for n, message in enumerate(messages) if "why?" in message]

    assert "Time:" not in head
    assert [time in messages[n] for n, time in zip(told, times, strict=True)] == [True] * 3


def blocks_between_marks(request: Recorded) -> Iterator[int]:
    """How many content blocks stand between one breakpoint of the conversation and the next."""
    count = 0
    for message in request.body["messages"]:
        for block in message["content"]:
            count += block != POINT
            if block == POINT or "cache_control" in block:
                yield count
                count = 0


@pytest.mark.parametrize("wire", ["anthropic", "bedrock"])
async def test_a_request_marks_the_end_of_the_previous_one(
    bots: Bots, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A breakpoint finds what was cached up to 20 blocks before it, and there may be four."""
    monkeypatch.setattr("adapters.llm.bedrock.encode._CACHING", ("",))
    sent = await requests_of_a_thread(bots, wire)

    for before, after in pairwise(sent):
        ended = sum(blocks_between_marks(before))
        marks = [0]
        for blocks in blocks_between_marks(after):
            marks.append(marks[-1] + blocks)
        assert any(ended <= mark <= ended + 20 for mark in marks[1:])
        written = after.raw.count(b'"cache_control"') + after.raw.count(b'"cachePoint"')
        assert 3 <= written <= 4
    assert max(blocks_between_marks(sent[2])) > 20


async def test_openai_gets_one_cache_key_per_thread(bots: Bots) -> None:
    one = await requests_of_a_thread(bots, "openai-responses")
    other = await requests_of_a_thread(bots, "openai-responses")
    keys = [{request.body["prompt_cache_key"] for request in sent} for sent in (one, other)]

    assert [len(each) for each in keys] == [1, 1]
    assert keys[0] != keys[1]


async def test_a_compatible_server_gets_no_cache_key(bots: Bots) -> None:
    sent = await requests_of_a_thread(bots, "openai")
    assert not any("prompt_cache_key" in request.body for request in sent)
