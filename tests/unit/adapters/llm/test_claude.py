"""What each Claude model takes, at every provider; an unknown one gets the minimum."""

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.llm.anthropic.encode import encode
from adapters.llm.claude import Capabilities, Thinking, capabilities, thinking_fields
from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult

ASKED = CompleteRequest(
    system="Investigate. It is noon.",
    messages=(Message(Role.USER, "Why?"),),
    temperature=0.2,
    system_stable_chars=len("Investigate. "),
)
CALL = ToolCall("toolu_1", "core__get_logs", "{}")
SIGNED = '{"type":"thinking","thinking":"Hm","signature":"EqQB"}'


def body(request: CompleteRequest = ASKED, model: str = "claude-opus-5-5", **extra: Any) -> Any:
    return json.loads(encode(request, model, 8000, extra))


@pytest.mark.parametrize(
    ("model", "sampling", "thinking", "prefill", "forced"),
    [
        ("claude-3-5-sonnet-20241022", True, "none", True, True),
        ("claude-3-7-sonnet-20250219", True, "budget", True, True),
        ("claude-haiku-4-5-20251001", True, "budget", True, True),
        ("claude-opus-4-20250514", True, "budget", True, True),
        ("claude-opus-4-5", True, "budget", True, True),
        ("claude-sonnet-4-6", True, "adaptive", False, True),
        ("claude-opus-4-7", False, "adaptive", False, True),
        ("claude-sonnet-5-5", False, "adaptive", False, True),
        ("claude-fable-5-1", False, "adaptive", False, False),
        ("claude-mythos-5", False, "adaptive", False, False),
        ("claude-of-next-year", False, "none", False, False),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", True, "budget", True, True),
        ("anthropic/claude-opus-4-7", False, "adaptive", False, True),
        ("qwen3", False, "none", False, False),
    ],
)
def test_the_model_table_lists_capabilities(
    model: str, sampling: bool, thinking: str, prefill: bool, forced: bool
) -> None:
    wanted = Capabilities(sampling, Thinking(thinking), prefill=prefill, forced_tools=forced)
    assert capabilities(model) == wanted


@pytest.mark.parametrize(
    ("model", "effort", "max_tokens", "fields"),
    [
        ("claude-opus-5", "high", 4096, {"type": "adaptive"}),
        ("claude-haiku-4-5", "medium", 8000, {"type": "enabled", "budget_tokens": 4096}),
        ("claude-haiku-4-5", "max", 8000, {"type": "enabled", "budget_tokens": 6976}),
        ("claude-haiku-4-5", "low", 2047, None),
        ("claude-opus-5", "", 4096, None),
        ("claude-opus-5", "none", 4096, None),
        ("unknown", "high", 4096, None),
    ],
)
def test_thinking_is_requested_in_the_models_form(
    model: str, effort: str, max_tokens: int, fields: Any
) -> None:
    assert thinking_fields(model, effort, max_tokens).get("thinking") == fields


def test_a_thinking_model_gets_no_temperature() -> None:
    assert "temperature" in body(model="claude-haiku-4-5")
    assert "temperature" not in body(model="claude-haiku-4-5", effort="low")


@pytest.mark.parametrize(("blocks", "thinks"), [((SIGNED,), True), ((), False)])
def test_a_thinking_budget_is_not_added_during_tool_use(
    blocks: tuple[str, ...], thinks: bool
) -> None:
    said = Message(
        Role.ASSISTANT, "", tool_calls=(CALL,), provider="anthropic", provider_blocks=blocks
    )
    result = Message(Role.TOOL, tool_result=ToolResult(CALL.id, CALL.name, "{}"))
    request = replace(ASKED, messages=(*ASKED.messages, said, result))
    assert ("thinking" in body(request, "claude-haiku-4-5", effort="low")) is thinks


@pytest.mark.parametrize(
    ("model", "words", "last"),
    [
        ("claude-opus-4-5", "Because", "assistant"),
        ("claude-opus-4-5", "Because ", "user"),
        ("claude-opus-4-7", "Because", "user"),
        ("claude-of-next-year", "Because", "user"),
    ],
)
def test_only_models_with_prefill_continue_their_own_words(
    model: str, words: str, last: str
) -> None:
    request = replace(ASKED, messages=(*ASKED.messages, Message(Role.ASSISTANT, words)))
    assert body(request, model)["messages"][-1]["role"] == last


def test_the_constant_part_is_cached_separately() -> None:
    cached = {"type": "ephemeral"}
    assert body()["system"] == [
        {"type": "text", "text": "Investigate. ", "cache_control": cached},
        {"type": "text", "text": "It is noon.", "cache_control": cached},
    ]


def test_at_most_four_breakpoints_are_sent() -> None:
    assert json.dumps(body()).count("cache_control") <= 4
