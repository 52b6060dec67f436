"""Identical reads: answered from the cache for the same asker, with a note, and for no other."""

import asyncio
from typing import Any

import orjson
import pytest

from tests.fakes.tools import Bench, EchoOutput, FakeTool, bench, contract
from tools.contract import PROPOSE_TOOL_ID, Effect
from tools.errors import ToolErrorCode, UpstreamFailed
from tools.policy import ToolPolicy
from tools.recent_calls import NOTE_BYTES, TTL_S, CachedCall, result_cache, with_age
from tools.records import CallEnded, CallStarted


async def test_an_identical_read_is_answered_from_the_cache_with_a_note() -> None:
    tool = FakeTool()
    b = bench([tool])

    first = await b.run('{"text":"hi","times":2}')
    again = await b.run('{"times":2, "text":"hi"}')

    assert len(tool.calls) == 1
    assert orjson.loads(again.content) == {"text": "hihi", "from_cache": "read 0.0s ago"}
    assert (first.record.cached, again.record.cached) == (False, True)
    assert again.summary == first.summary
    assert b.records == [first.record, again.record]
    assert [type(e) for e in b.events] == [CallStarted, CallEnded] * 2


@pytest.mark.parametrize(
    "other",
    [
        {"actor": "U2"},
        {"session_id": "s2"},
        {"team": "T2"},
        {"purpose": "recommend"},
        {"products": ("payments",)},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_a_cached_answer_is_for_its_own_asker_only(other: dict[str, Any]) -> None:
    tool = FakeTool()
    b = bench([tool], ToolPolicy({"investigate": ("core__*",), "recommend": ("core__*",)}))

    await b.run()
    outcome = await b.run(**other)

    assert len(tool.calls) == 2
    assert not outcome.record.cached


async def test_another_connection_is_another_read() -> None:
    tool = FakeTool()
    policy = ToolPolicy({"investigate": ("core__*",)}, granted_connections=frozenset("ab"))
    b = bench([tool], policy)

    for ids in ("a", "b", "a"):
        await b.run(connection_ids=frozenset(ids))

    assert len(tool.calls) == 2


async def test_a_failed_read_is_repeated() -> None:
    answers = iter([UpstreamFailed("busy", 503), EchoOutput(text="now")])

    def answer(_arguments: object) -> object:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    b = bench([FakeTool(answer=answer)])

    assert (await b.run()).record.error_code is ToolErrorCode.UPSTREAM
    assert orjson.loads((await b.run()).content) == {"text": "now"}


@pytest.mark.parametrize(
    "changes",
    [{"live": True}, {"id": PROPOSE_TOOL_ID, "effect": Effect.STATE_CHANGE}],
    ids=["live", "proposing"],
)
async def test_an_uncacheable_read_is_always_repeated(changes: dict[str, object]) -> None:
    tool = FakeTool(contract(**changes))
    b = bench([tool])

    await b.run(name=tool.contract.id)
    await b.run(name=tool.contract.id)

    assert len(tool.calls) == 2


async def test_a_call_that_is_now_refused_is_not_answered_from_the_cache() -> None:
    refusals: list[str | None] = [None, "not any more"]

    async def authorise(*_: object) -> str | None:
        return refusals.pop(0)

    b = bench([FakeTool()], authorise=authorise)
    await b.run()

    assert (await b.run()).record.error_code is ToolErrorCode.AUTHZ_DENIED


def test_a_cached_result_expires_and_the_oldest_is_evicted() -> None:
    now = [0.0]
    cache = result_cache(lambda: now[0], max_entries=2)
    for at_s, key in enumerate((b"a", b"b", b"c")):
        cache[key] = CachedCall("{}", "", False, at_s)

    assert sorted(cache) == [b"b", b"c"]
    now[0] = 1.0 + TTL_S
    assert sorted(cache) == [b"c"]


def test_the_age_of_a_slow_calls_result_counts_from_its_start() -> None:
    cache = result_cache(lambda: TTL_S)
    cache[b"slow"] = CachedCall("{}", "", False, 0.0)

    assert not cache


@pytest.mark.parametrize("content", ["{}", '{"a":1}'])
def test_the_note_is_json_and_short(content: str) -> None:
    text = with_age(CachedCall(content, "", False, 0.0), TTL_S)

    assert orjson.loads(text)["from_cache"] == "read 30s ago"
    assert len(text) - len(content) <= NOTE_BYTES


async def test_two_identical_reads_at_once_both_run() -> None:
    tool = FakeTool(gate=asyncio.Event())
    b: Bench = bench([tool])
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = [group.create_task(b.run()) for _ in range(2)]
        await tool.started.wait()
        assert tool.gate is not None
        tool.gate.set()

    assert [task.result().record.ok for task in running] == [True, True]
