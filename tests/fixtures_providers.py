"""A provider connected to a scripted model server, and one question to ask it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import (
    CompleteRequest,
    ErrorChunk,
    Message,
    Role,
    StreamChunk,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from adapters.llm.registry import ClosableProvider, create
from tests.fakes.model_server import ModelServer, Round, Script

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
