"""The failures of every provider: by kind, without secrets, hanging up without a listener."""

import asyncio
from contextlib import aclosing

import pytest

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import (
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    TextChunk,
    ToolCallChunk,
)
from adapters.llm.registry import create
from tests.fakes.model_server import Call, Failure, ModelServer, Round
from tests.fixtures_providers import (
    ASKED,
    WIRES,
    config_for,
    everything,
    failure,
    joined,
    serving,
)


@pytest.mark.parametrize("cut_at", range(4))
@pytest.mark.parametrize("wire", WIRES)
async def test_a_cut_connection_is_an_error_without_a_tool_call(wire: str, cut_at: int) -> None:
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
    said, error = joined(chunks)
    assert isinstance(said, TextChunk)
    assert "abc".startswith(said.text)
    assert isinstance(error, ErrorChunk)
    assert error.kind is ErrorKind.OVERLOADED


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
async def test_a_status_decides_the_kind_of_failure(
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
async def test_the_wait_is_read_from_the_headers(
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
        ("bedrock", "prompt is too long: 210000 tokens > 200000 maximum"),
        ("bedrock", "Input is too long for requested model."),
        ("bedrock", "Input Tokens Exceeded: Number of input tokens exceeds maximum length."),
        ("bedrock", "400 Bad Request: Too many input tokens. Max input tokens: 8192"),
        ("openai", "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
        ("openai", "This model's maximum prompt length is 131072"),
        ("nirmata", "prompt is too long: 210000 tokens > 200000 maximum"),
    ],
)
async def test_an_oversized_prompt_is_a_separate_failure(wire: str, message: str) -> None:
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
async def test_a_spent_balance_is_not_a_rate_limit(wire: str, body: dict[str, object]) -> None:
    error = await failure(wire, Round(failure=Failure(429, body=body)))
    assert error.kind is ErrorKind.QUOTA


@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("wire", WIRES)
async def test_a_quoted_key_is_not_repeated(wire: str, status: int) -> None:
    key = "sk-live-abcdef0123456789"
    words = f"Incorrect API key provided: {key}."
    error = await failure(wire, Round(failure=Failure(status, words)), api_key=key)
    assert key not in error.message


@pytest.mark.parametrize("wire", WIRES)
async def test_an_unreachable_server_is_reported(wire: str) -> None:
    provider = create(config_for(wire, "http://127.0.0.1:9"))
    chunks = await everything(provider, ASKED)
    await provider.aclose()
    assert [chunk.kind for chunk in chunks if isinstance(chunk, ErrorChunk)] == [
        ErrorKind.UNREACHABLE
    ]


@pytest.mark.parametrize("hold_at", [-1, 0, 1])
@pytest.mark.parametrize("wire", WIRES)
async def test_silence_is_a_timeout(wire: str, hold_at: int) -> None:
    never = asyncio.Event()
    error = await failure(wire, Round(text=("a", "b"), hold=never, hold_at=hold_at), timeout_s=0.05)
    assert error.kind is ErrorKind.TIMEOUT


@pytest.mark.parametrize("hold_at", [-1, 0, 2])
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
            assert isinstance(await anext(chunks), TextChunk)
            await server.started.wait()
        async with asyncio.timeout(1):
            await server.disconnected.wait()


@pytest.mark.parametrize("wire", WIRES)
async def test_the_egress_guard_stops_requests(wire: str) -> None:
    async with ModelServer([Round(text=("a",))]) as server:
        provider = create(
            config_for(wire, server.url, allowed_hosts=frozenset({"models.internal"}))
        )
        chunks = await everything(provider, ASKED)
        await provider.aclose()
    assert isinstance(chunks[0], ErrorChunk)
    assert chunks[0].kind is ErrorKind.UNAVAILABLE
    assert "egress to 127.0.0.1 is not allowed" in chunks[0].message
    assert server.requests == []


@pytest.mark.parametrize("wire", ["anthropic", "openai", "bedrock", "nirmata", "koder-ai"])
async def test_a_provider_without_its_key_is_unavailable_and_says_why(wire: str) -> None:
    provider = create(ProviderConfig(wire))
    chunks = await everything(provider, ASKED)
    assert provider.unavailable_reason
    assert [chunk.kind for chunk in chunks if isinstance(chunk, ErrorChunk)] == [
        ErrorKind.UNAVAILABLE
    ]
