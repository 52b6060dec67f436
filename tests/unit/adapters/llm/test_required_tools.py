"""A first round that has to call a tool, on the wires that can say so and in no other request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from adapters.llm.anthropic.encode import encode as anthropic
from adapters.llm.bedrock.encode import encode as bedrock
from adapters.llm.messages import CompleteRequest, Message, Role, ToolSpec
from adapters.llm.nirmata.provider import encode as nirmata
from adapters.llm.ollama.encode import encode as ollama
from adapters.llm.openai.encode import encode as openai_chat
from adapters.llm.openai.responses_encode import encode_responses

ASKED = Message(Role.USER, "why?")
TOOL = ToolSpec("core__get_logs", "Logs.", {"type": "object", "properties": {}})
REQUEST = CompleteRequest("", (ASKED,), tools=(TOOL,), require_tool=True)
ANSWERED = (ASKED, Message(Role.ASSISTANT, "Because."), Message(Role.USER, "and now?"))


def body(wire: str, request: CompleteRequest, model: str, **extra: object) -> Mapping[str, Any]:
    encoded = {
        "openai": lambda: openai_chat(request, model, 100, extra, is_vendors_own=True),
        "responses": lambda: encode_responses(request, model, 100, extra),
        "anthropic": lambda: anthropic(request, model, 4000, extra),
        "bedrock": lambda: bedrock(request, model, 4000, extra),
        "ollama": lambda: ollama(request, model, 100, 4096, native_tools=True),
        "nirmata": lambda: nirmata(request, model, 100, native_tools=True, streaming=True),
    }
    told: Mapping[str, Any] = orjson.loads(encoded[wire]())
    return told


def choice(wire: str, request: CompleteRequest, model: str, **extra: object) -> object:
    told = body(wire, request, model, **extra)
    return told.get("tool_choice") or told.get("toolConfig", {}).get("toolChoice")


@pytest.mark.parametrize(
    ("wire", "model", "wanted"),
    [
        ("openai", "gpt-4.1", "required"),
        ("responses", "gpt-6.1-sol", "required"),
        ("anthropic", "claude-opus-4-6", {"type": "any"}),
        ("bedrock", "eu.anthropic.claude-sonnet-4-6-v1:0", {"any": {}}),
        ("bedrock", "amazon.nova-pro-v1:0", {"any": {}}),
        ("anthropic", "claude-mythos-5-1", None),  # never takes it
        ("anthropic", "some-model", None),
        ("bedrock", "meta.llama3-70b-instruct-v1:0", None),
        ("ollama", "qwen3", None),
        ("nirmata", "", "auto"),
    ],
)
def test_a_tool_is_required_where_wire_and_model_support_it(
    wire: str, model: str, wanted: object
) -> None:
    assert choice(wire, REQUEST, model) == wanted


@pytest.mark.parametrize("wire", ["openai", "responses", "anthropic", "bedrock"])
def test_a_tool_is_required_only_on_request_and_if_it_exists(wire: str) -> None:
    model = "claude-opus-4-6"

    assert choice(wire, replace(REQUEST, require_tool=False), model) is None
    assert choice(wire, replace(REQUEST, tools=()), model) is None


@pytest.mark.parametrize("wire", ["anthropic", "bedrock"])
def test_a_thinking_model_is_not_forced_to_call(wire: str) -> None:
    assert choice(wire, REQUEST, "claude-opus-4-6", effort="high") is None


@pytest.mark.parametrize("wire", ["anthropic", "bedrock"])
def test_forcing_a_call_does_not_discard_a_cached_conversation(wire: str) -> None:
    assert choice(wire, replace(REQUEST, messages=ANSWERED), "claude-opus-4-6") is None
