"""A provider connected to a scripted model server, and one question to ask it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import groupby
from typing import Any

from pydantic import JsonValue

from adapters.llm.config import ProviderConfig
from adapters.llm.messages import (
    CompleteRequest,
    DoneChunk,
    ErrorChunk,
    Message,
    Role,
    StreamChunk,
    TextChunk,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from adapters.llm.registry import ClosableProvider, create
from tests.fakes.model_server import ModelServer, Round, Script

WIRES = ("anthropic", "openai", "openai-responses", "ollama", "bedrock", "nirmata")
SPEAK_RESPONSES: dict[str, JsonValue] = {"api": "responses"}
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


def config_for(wire: str, base_url: str, **more: Any) -> ProviderConfig:
    """A provider's configuration by the wire it is to speak."""
    name = wire.removesuffix("-responses")
    extra = SPEAK_RESPONSES if name != wire else {}
    fields = {"api_key": "test-key", "model": "test-model", "extra": extra, **more}
    return ProviderConfig(name, base_url=base_url, **fields)


@asynccontextmanager
async def serving(
    wire: str, script: Script, **more: Any
) -> AsyncIterator[tuple[ClosableProvider, ModelServer]]:
    async with ModelServer(script) as server:
        provider = create(config_for(wire, server.url, **{"timeout_s": 10.0, **more}))
        try:
            yield provider, server
        finally:
            await provider.aclose()


async def everything(provider: ClosableProvider, request: CompleteRequest) -> list[StreamChunk]:
    return [chunk async for chunk in provider.stream(request)]


def joined(chunks: Sequence[StreamChunk]) -> list[StreamChunk]:
    """The same with neighbouring texts as one, in however many reads they came."""
    whole: list[StreamChunk] = []
    for is_text, group in groupby(chunks, lambda chunk: isinstance(chunk, TextChunk)):
        same = list(group)
        text = "".join(chunk.text for chunk in same if isinstance(chunk, TextChunk))
        whole += [TextChunk(text)] if is_text else same
    return whole


async def failure(wire: str, round_: Round, **more: Any) -> ErrorChunk:
    async with serving(wire, [round_], **more) as (provider, _):
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


def as_reported(wire: str, done: DoneChunk) -> DoneChunk:
    """An end as a wire reports it: Nirmata's streams have no usage."""
    silent = wire == "nirmata"
    return replace(done, usage=Usage(), usage_known=False) if silent else done
