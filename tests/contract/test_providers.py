"""What every provider answers, over its true wire, to the same scripted investigation."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from adapters.llm import exchange
from adapters.llm.config import ProviderConfig
from adapters.llm.messages import (
    DoneChunk,
    Message,
    Role,
    StopReason,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    Usage,
)
from adapters.llm.port import collect
from adapters.llm.registry import create
from tests.fakes.model_server import Call, ModelServer, Round
from tests.fixtures_providers import (
    ASKED,
    TIME,
    WIRES,
    after_results,
    as_reported,
    everything,
    joined,
    serving,
)


@pytest.mark.parametrize("wire", WIRES)
async def test_the_same_investigation_gives_the_same_chunks_on_every_wire(wire: str) -> None:
    script = [
        Round(
            text=("Let me ", "look. – ✓"),
            calls=(Call("core__get_logs", {"product": "ché", "limit": 5}), Call(TIME.name)),
            cache_read=0,
        ),
        Round(text=("The new version ", "leaks."), input_tokens=300, output_tokens=9),
    ]
    async with serving(wire, script) as (provider, _):
        first = await everything(provider, ASKED)
        calls = [chunk.call for chunk in first if isinstance(chunk, ToolCallChunk)]
        second = await everything(
            provider, after_results((calls[0], '{"lines":[]}'), (calls[1], '{"now":"12:00"}'))
        )
    logs_arguments = calls[0].arguments.replace(" ", "").replace("\\u00e9", "é")
    assert logs_arguments == '{"product":"ché","limit":5}'
    assert [
        replace(chunk, call=replace(chunk.call, arguments=""))
        if isinstance(chunk, ToolCallChunk)
        else chunk
        for chunk in joined(first)
    ] == [
        TextChunk("Let me look. – ✓"),
        ToolCallChunk(ToolCall("call_1", "core__get_logs", "")),
        ToolCallChunk(ToolCall("call_2", "core__get_current_time", "")),
        as_reported(wire, DoneChunk(StopReason.TOOL_USE, Usage(100, 0, 0, 20), "test-model")),
    ]
    assert calls[1].arguments == "{}"
    assert joined(second) == [
        TextChunk("The new version leaks."),
        as_reported(wire, DoneChunk(StopReason.END_TURN, Usage(300, 0, 0, 9), "test-model")),
    ]


@pytest.mark.parametrize("wire", ["anthropic", "openai", "openai-responses", "bedrock"])
async def test_cached_tokens_are_counted_once(wire: str) -> None:
    async with serving(wire, [Round(text=("Hi",), input_tokens=70, cache_read=30)]) as (
        provider,
        _,
    ):
        done = (await collect(provider.stream(ASKED))).end
    assert isinstance(done, DoneChunk)
    assert done.usage == Usage(input_uncached=70, cache_read=30, output=20)


@pytest.mark.parametrize("wire", WIRES)
async def test_an_answer_cut_by_its_token_limit_says_so(wire: str) -> None:
    async with serving(wire, [Round(text=("Half an",), stop="max_tokens")]) as (provider, _):
        done = (await collect(provider.stream(ASKED))).end
    assert isinstance(done, DoneChunk)
    assert done.stop_reason is StopReason.MAX_TOKENS


@pytest.mark.parametrize("wire", WIRES)
async def test_concurrent_streams_do_not_mix(wire: str) -> None:
    script: Sequence[Round] = [Round(text=(f"{n}",) * 50) for n in range(20)]
    async with serving(wire, script) as (provider, _), asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(collect(provider.stream(ASKED))) for _ in range(len(script))]
    texts = {task.result().text for task in running}
    assert texts == {f"{n}" * 50 for n in range(20)}


@pytest.mark.parametrize("wire", WIRES)
async def test_a_burst_lets_other_tasks_run(wire: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchange, "_LONGEST_HOLD_S", 0.0)  # every machine is too slow for that
    burst = Round(text=("x" * 100,) * 2000, at_once=True)
    async with serving(wire, [burst]) as (provider, _):
        turns = 0
        done = asyncio.Event()

        async def neighbour() -> None:
            nonlocal turns
            while not done.is_set():
                turns += 1
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(neighbour())
            await collect(provider.stream(ASKED))
            done.set()
    assert turns >= 2000 * 100 // exchange._PART_BYTES


@pytest.mark.parametrize("wire", WIRES)
async def test_finished_rounds_share_a_connection(wire: str) -> None:
    async with serving(wire, [Round(text=("a",)), Round(text=("b",))]) as (provider, server):
        await collect(provider.stream(ASKED))
        await collect(provider.stream(ASKED))
        assert len(server.requests) == 2
        assert server.connections == 1


@pytest.mark.parametrize("wire", WIRES)
async def test_equal_requests_are_equal_bytes(wire: str) -> None:
    async with serving(wire, [Round(text=("a",)), Round(text=("b",))]) as (provider, server):
        await collect(provider.stream(ASKED))
        await collect(provider.stream(ASKED))
    assert server.requests[0].raw == server.requests[1].raw


async def test_a_model_without_tools_gets_emulated_ones_and_a_warning() -> None:
    marker = '<<TOOL name="core__get_logs" args=\'{"product": "o\'brien"}\'>>'
    script = [Round(text=("Let me look. ", marker[:9], marker[9:30], marker[30:]))]
    async with ModelServer(script, tools={"test-model": False}) as server:
        provider = create(ProviderConfig("ollama", base_url=server.url, model="test-model"))
        answer = await collect(provider.stream(ASKED))
        await provider.aclose()
    assert answer.text == "Let me look. "
    assert [(call.name, call.arguments) for call in answer.tool_calls] == [
        ("core__get_logs", '{"product": "o\'brien"}')
    ]
    assert isinstance(answer.end, DoneChunk)
    assert answer.end.stop_reason is StopReason.TOOL_USE
    assert "no native tools" in answer.end.warnings[0]
    assert "tools" not in server.bodies[0]
    assert "core__get_logs" in server.bodies[0]["messages"][0]["content"]


async def test_ollama_offers_the_models_it_has_the_configured_one_first() -> None:
    async with ModelServer([], models=("a:8b", "b:70b", "c-cloud")) as server:
        provider = create(ProviderConfig("ollama", base_url=server.url, model="b:70b"))
        models = await provider.models()
        await provider.aclose()
    assert [model.id for model in models] == ["b:70b", "a:8b"]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_very_long_history_arrives_complete(wire: str) -> None:
    long = "ä" * 1_500_000
    request = replace(ASKED, messages=(Message(Role.USER, long),))
    async with serving(wire, [Round(text=("ok",))]) as (provider, server):
        answer = await collect(provider.stream(request))
    assert answer.text == "ok"
    assert long in str(server.bodies[0])
    assert server.requests[0].headers["content-length"] == str(len(server.requests[0].raw))


async def test_a_model_without_tools_is_asked_again_with_emulated_ones() -> None:
    async with ModelServer([Round(text=("ok",))] * 2, tools={"test-model": True}) as server:
        provider = create(ProviderConfig("ollama", base_url=server.url, model="test-model"))
        await collect(provider.stream(ASKED))
        server.forget_tools("test-model")
        answer = await collect(provider.stream(ASKED))
        await provider.aclose()
    assert answer.text == "ok"
    assert [("tools" in body) for body in server.bodies] == [True, True, False]


async def test_a_models_capabilities_are_requested_once() -> None:
    async with ModelServer([Round(text=("ok",))] * 2) as server:
        provider = create(ProviderConfig("ollama", base_url=server.url, model="test-model"))
        await collect(provider.stream(ASKED))
        await collect(provider.stream(ASKED))
        await provider.aclose()
    assert server.other_requests == [("GET", "/api/tags")]
