"""What every provider promises, shown over its true wire against a scripted model server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

import pytest

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    Message,
    Role,
    StopReason,
    StreamChunk,
    TextChunk,
    ToolCall,
    ToolCallChunk,
    ToolResult,
    ToolSpec,
    Usage,
)
from adapters.llm.port import collect
from adapters.llm.registry import ClosableProvider, create
from tests.fakes.model_server import Call, Failure, ModelServer, Round, Script

WIRES = ("anthropic", "openai", "ollama")
LOGS = ToolSpec(
    "core__get_logs",
    "Newest log lines of a product.",
    {
        "type": "object",
        "properties": {"product": {"type": "string"}, "limit": {"type": "integer"}},
        "required": ["product", "limit"],
        "additionalProperties": False,
    },
)
TIME = ToolSpec(
    "core__get_current_time",
    "The time.",
    {"type": "object", "properties": {}, "additionalProperties": False},
)
ASKED = CompleteRequest(
    system="You investigate incidents.",
    messages=(Message(Role.USER, "Why is checkout slow?"),),
    tools=(LOGS, TIME),
)


@asynccontextmanager
async def serving(
    wire: str, script: Script, *, timeout_s: float = 10.0, api_key: str = "test-key"
) -> AsyncIterator[tuple[ClosableProvider, ModelServer]]:
    async with ModelServer(script) as server:
        provider = create(
            ProviderConfig(
                wire,
                api_key=api_key,
                base_url=server.url,
                model="test-model",
                timeout_s=timeout_s,
            )
        )
        try:
            yield provider, server
        finally:
            await provider.aclose()


async def everything(provider: ClosableProvider, request: CompleteRequest) -> list[StreamChunk]:
    return [chunk async for chunk in provider.stream(request)]


async def failure(
    wire: str, round_: Round, *, timeout_s: float = 10.0, api_key: str = "test-key"
) -> ErrorChunk:
    async with serving(wire, [round_], timeout_s=timeout_s, api_key=api_key) as (provider, _):
        chunks = await everything(provider, ASKED)
    assert isinstance(chunks[-1], ErrorChunk)
    return chunks[-1]


def after_results(*results: tuple[ToolCall, str]) -> CompleteRequest:
    return replace(
        ASKED,
        messages=(
            *ASKED.messages,
            Message(Role.ASSISTANT, "Looking.", tool_calls=tuple(call for call, _ in results)),
            *(
                Message(Role.TOOL, tool_result=ToolResult(call.id, call.name, content))
                for call, content in results
            ),
        ),
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
        for chunk in first
    ] == [
        TextChunk("Let me "),
        TextChunk("look. – ✓"),
        ToolCallChunk(ToolCall("call_1", "core__get_logs", "")),
        ToolCallChunk(ToolCall("call_2", "core__get_current_time", "")),
        DoneChunk(StopReason.TOOL_USE, Usage(100, 0, 0, 20), "test-model"),
    ]
    assert calls[1].arguments == "{}"
    assert second == [
        TextChunk("The new version "),
        TextChunk("leaks."),
        DoneChunk(StopReason.END_TURN, Usage(300, 0, 0, 9), "test-model"),
    ]


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
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


@pytest.mark.parametrize("cut_at", range(4))
@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_connection_is_an_error_and_asks_for_no_tool(wire: str, cut_at: int) -> None:
    script = [Round(text=("a", "b"), calls=(Call("core__get_logs", {"x": 1}),), cut_at=cut_at)]
    async with serving(wire, script) as (provider, _):
        chunks = await everything(provider, ASKED)
    assert isinstance(chunks[-1], ErrorChunk)
    assert chunks[-1].kind in {ErrorKind.CUT, ErrorKind.UNREACHABLE}
    assert not any(isinstance(chunk, ToolCallChunk | DoneChunk) for chunk in chunks)


@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_within_the_stream_ends_it(wire: str) -> None:
    async with serving(wire, [Round(text=("a", "b", "c"), error_at=3)]) as (provider, _):
        chunks = await everything(provider, ASKED)
    assert chunks[0] == TextChunk("a")
    assert isinstance(chunks[-1], ErrorChunk)
    assert chunks[-1].kind is ErrorKind.OVERLOADED


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ErrorKind.BAD_REQUEST),
        (401, ErrorKind.AUTH),
        (403, ErrorKind.AUTH),
        (404, ErrorKind.BAD_REQUEST),
        (429, ErrorKind.RATE_LIMITED),
        (500, ErrorKind.OVERLOADED),
        (503, ErrorKind.OVERLOADED),
        (529, ErrorKind.OVERLOADED),
    ],
)
@pytest.mark.parametrize("wire", WIRES)
async def test_a_status_becomes_the_kind_that_decides_failover(
    wire: str, status: int, kind: ErrorKind
) -> None:
    error = await failure(wire, Round(failure=Failure(status)))
    assert (error.kind, error.status) == (kind, status)


@pytest.mark.parametrize(
    ("headers", "wait_s", "should_retry"),
    [
        ({"retry-after": "7"}, 7.0, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5, None),
        ({"retry-after": "7", "x-should-retry": "false"}, 7.0, False),
        ({"x-should-retry": "true"}, None, True),
        ({}, None, None),
    ],
)
@pytest.mark.parametrize("wire", WIRES)
async def test_the_wait_comes_from_the_headers(
    wire: str, headers: dict[str, str], wait_s: float | None, should_retry: bool | None
) -> None:
    error = await failure(wire, Round(failure=Failure(429, headers=headers)))
    assert error.kind is ErrorKind.RATE_LIMITED
    assert (error.retry_after_s, error.should_retry) == (wait_s, should_retry)


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        ("anthropic", "prompt is too long: 210000 tokens > 200000 maximum"),
        ("openai", "This model's maximum context length is 128000 tokens."),
        ("openai", "request (9030 tokens) exceeds the available context size (8192 tokens)"),
        ("ollama", "the prompt is longer than the context length currently available"),
    ],
)
async def test_a_prompt_that_does_not_fit_is_told_apart(wire: str, message: str) -> None:
    error = await failure(wire, Round(failure=Failure(400, message)))
    assert error.kind is ErrorKind.CONTEXT_OVERFLOW


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("openai", {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}),
        (
            "anthropic",
            {
                "type": "error",
                "error": {
                    "type": "rate_limit_error",
                    "message": "spend limit",
                    "details": {"error_code": "enforced_spend_limit_reached"},
                },
            },
        ),
    ],
)
async def test_spent_money_is_not_a_rate_limit(wire: str, body: dict[str, object]) -> None:
    error = await failure(wire, Round(failure=Failure(429, body=body)))
    assert error.kind is ErrorKind.QUOTA


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_key_that_the_vendor_quotes_is_not_repeated(wire: str, status: int) -> None:
    key = "sk-live-abcdef0123456789"
    words = f"Incorrect API key provided: {key}."
    error = await failure(wire, Round(failure=Failure(status, words)), api_key=key)
    assert key not in error.message


@pytest.mark.parametrize("wire", WIRES)
async def test_a_server_that_is_not_there_is_unreachable(wire: str) -> None:
    provider = create(ProviderConfig(wire, api_key="k", base_url="http://127.0.0.1:9", model="m"))
    chunks = await everything(provider, ASKED)
    await provider.aclose()
    assert [chunk.kind for chunk in chunks if isinstance(chunk, ErrorChunk)] == [
        ErrorKind.UNREACHABLE
    ]


@pytest.mark.parametrize("hold_at", [0, 1])
@pytest.mark.parametrize("wire", WIRES)
async def test_silence_is_a_timeout(wire: str, hold_at: int) -> None:
    never = asyncio.Event()
    error = await failure(wire, Round(text=("a", "b"), hold=never, hold_at=hold_at), timeout_s=0.05)
    assert error.kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("hold_at", [0, 2])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_cancelled_stream_hangs_up_within_100_ms(wire: str, hold_at: int) -> None:
    never = asyncio.Event()
    script = [Round(text=("a", "b", "c"), hold=never, hold_at=hold_at)]
    async with serving(wire, script) as (provider, server), asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(everything(provider, ASKED))
        await server.started.wait()
        reading.cancel()
        async with asyncio.timeout(0.1):
            await server.disconnected.wait()
    assert reading.cancelled()


@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_left_early_hangs_up(wire: str) -> None:
    never = asyncio.Event()
    script = [Round(text=("a", "b", "c"), hold=never, hold_at=3)]
    async with serving(wire, script) as (provider, server):
        async with aclosing(provider.stream(ASKED)) as chunks:  # type: ignore[type-var]
            assert await anext(chunks) == TextChunk("a")
            await server.started.wait()
        async with asyncio.timeout(1):
            await server.disconnected.wait()


@pytest.mark.parametrize("wire", WIRES)
async def test_concurrent_streams_do_not_mix(wire: str) -> None:
    script: Sequence[Round] = [Round(text=(f"{n}",) * 50) for n in range(20)]
    async with serving(wire, script) as (provider, _), asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(collect(provider.stream(ASKED))) for _ in range(len(script))]
    texts = {task.result().text for task in running}
    assert texts == {f"{n}" * 50 for n in range(20)}


@pytest.mark.parametrize("wire", WIRES)
async def test_a_burst_lets_other_tasks_run(wire: str) -> None:
    async with serving(wire, [Round(text=("x",) * 2000)]) as (provider, _):
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
    assert turns >= 2000 // 64


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


@pytest.mark.parametrize("wire", WIRES)
async def test_the_guard_keeps_requests_from_leaving(wire: str) -> None:
    async with ModelServer([Round(text=("a",))]) as server:
        provider = create(
            ProviderConfig(
                wire,
                api_key="k",
                base_url=server.url,
                model="m",
                allowed_hosts=frozenset({"models.internal"}),
            )
        )
        chunks = await everything(provider, ASKED)
        await provider.aclose()
    assert isinstance(chunks[0], ErrorChunk)
    assert "egress to 127.0.0.1 is not allowed" in chunks[0].message
    assert server.requests == []


@pytest.mark.parametrize("wire", ["anthropic", "openai", "koder-ai"])
async def test_a_provider_without_its_key_is_unavailable_and_says_why(wire: str) -> None:
    provider = create(ProviderConfig(wire))
    chunks = await everything(provider, ASKED)
    assert provider.unavailable_reason
    assert [chunk.kind for chunk in chunks if isinstance(chunk, ErrorChunk)] == [
        ErrorKind.UNAVAILABLE
    ]


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
    assert "no tools of its own" in answer.end.warnings[0]
    assert "tools" not in server.bodies[0]
    assert "core__get_logs" in server.bodies[0]["messages"][0]["content"]


async def test_ollama_offers_the_models_it_has_the_configured_one_first() -> None:
    async with ModelServer([], models=("a:8b", "b:70b", "c-cloud")) as server:
        provider = create(ProviderConfig("ollama", base_url=server.url, model="b:70b"))
        models = await provider.models()
        await provider.aclose()
    assert [model.id for model in models] == ["b:70b", "a:8b"]
