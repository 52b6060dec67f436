"""Requests as the vendors want them: what is sent, what is left out, and what stays byte-equal."""

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.llm.anthropic.encode import encode as encode_anthropic
from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult, ToolSpec
from adapters.llm.ollama.encode import encode as encode_ollama
from adapters.llm.openai.encode import encode as encode_openai

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
LOGS = ToolSpec("core__get_logs", "Log lines.", SCHEMA)
METRICS = ToolSpec("core__get_metrics", "Series.", SCHEMA)
CALLS = (
    ToolCall("toolu_1", "core__get_logs", '{"product":"checkout"}'),
    ToolCall("toolu_2", "core__get_metrics", "{broken"),
)
ASKED = CompleteRequest(
    system="Investigate.",
    messages=(
        Message(Role.USER, "Why?"),
        Message(Role.ASSISTANT, "Looking.", tool_calls=CALLS),
        Message(Role.TOOL, tool_result=ToolResult("toolu_1", "core__get_logs", '{"lines":[]}')),
        Message(
            Role.TOOL,
            tool_result=ToolResult("toolu_2", "core__get_metrics", '"bad"', is_error=True),
        ),
        Message(Role.USER, "And?"),
    ),
    tools=(LOGS, METRICS),
    temperature=0.2,
    stop=("END",),
)
EPHEMERAL = {"type": "ephemeral"}


def anthropic(request: CompleteRequest = ASKED, model: str = "claude-opus-5-5") -> Any:
    return json.loads(encode_anthropic(request, model, 1000, {}))


def openai(request: CompleteRequest = ASKED, model: str = "gpt-4o", **more: Any) -> Any:
    extra = more.pop("extra", {})
    return json.loads(
        encode_openai(request, model, 1000, extra, is_vendors_own=more.pop("own", True))
    )


def ollama(request: CompleteRequest = ASKED, *, native: bool = True) -> Any:
    return json.loads(encode_ollama(request, "qwen3", 1000, 8192, native_tools=native))


def test_anthropic_puts_all_results_first_into_one_user_message() -> None:
    messages = anthropic()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": '{"lines":[]}'},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": '"bad"', "is_error": True},
        {"type": "text", "text": "And?", "cache_control": EPHEMERAL},
    ]


def test_anthropic_gets_call_arguments_as_objects_even_for_invalid_json() -> None:
    blocks = anthropic()["messages"][1]["content"]
    assert [block.get("input") for block in blocks] == [None, {"product": "checkout"}, {}]


def test_anthropic_caches_the_static_prefix_and_where_this_request_and_the_last_one_end() -> None:
    body = anthropic()
    assert [message["content"][-1].get("cache_control") for message in body["messages"]] == [
        EPHEMERAL,
        None,
        EPHEMERAL,
    ]
    assert body["system"] == [{"type": "text", "text": "Investigate.", "cache_control": EPHEMERAL}]
    assert json.dumps(body).count("cache_control") == 3


def test_anthropic_caches_the_tools_when_there_is_no_system_prompt() -> None:
    body = anthropic(replace(ASKED, system=" "))
    assert "system" not in body
    assert body["tools"][-1]["cache_control"] == EPHEMERAL


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("claude-opus-4-6", True),
        ("claude-haiku-4-5-20251001", True),
        ("claude-opus-4-7", False),
        ("claude-sonnet-5", False),
        ("claude-fable-5-1", False),
        ("something-unknown", False),
    ],
)
def test_anthropic_sampling_goes_only_to_models_known_to_take_it(model: str, sent: bool) -> None:
    assert ("temperature" in anthropic(model=model)) is sent


def test_anthropic_is_never_forced_to_use_a_tool() -> None:
    assert "tool_choice" not in anthropic()


def test_anthropic_never_gets_a_conversation_that_ends_with_the_model() -> None:
    request = replace(
        ASKED, messages=(Message(Role.USER, "Why?"), Message(Role.ASSISTANT, "Because"))
    )
    assert anthropic(request)["messages"][-1]["role"] == "user"


def replayed(provider: str, *blocks: str) -> Any:
    message = Message(
        Role.ASSISTANT,
        "Looking.",
        tool_calls=CALLS[:1],
        provider=provider,
        provider_blocks=blocks,
    )
    request = replace(ASKED, messages=(Message(Role.USER, "Why?"), message))
    return anthropic(request)["messages"][1]["content"]


THINKING = '{"type":"thinking","thinking":"Hm","signature":"EqQB"}'
USED = '{"type":"tool_use","id":"toolu_1","name":"core__get_logs","input":{"product":"checkout"}}'


def test_anthropic_gets_its_signed_thinking_back_unchanged_and_first() -> None:
    blocks = replayed("anthropic", THINKING)
    assert blocks[0] == json.loads(THINKING)
    assert [block["type"] for block in blocks] == ["thinking", "text", "tool_use"]


def test_anthropic_gets_interleaved_blocks_back_in_their_order() -> None:
    text = '{"type":"text","text":"Looking."}'
    blocks = replayed("anthropic", text, THINKING, USED)
    assert [block["type"] for block in blocks] == ["text", "thinking", "tool_use"]


def test_anthropic_blocks_with_foreign_calls_are_dropped() -> None:
    other = USED.replace("toolu_1", "toolu_9")
    assert [block.get("id") for block in replayed("anthropic", THINKING, other)] == [
        None,
        None,
        "toolu_1",
    ]


def test_anthropic_never_sees_another_providers_blocks() -> None:
    assert [block["type"] for block in replayed("openai", THINKING)] == ["text", "tool_use"]


def test_openai_answers_every_call_under_its_id() -> None:
    messages = openai()["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert [call["function"]["arguments"] for call in messages[2]["tool_calls"]] == [
        '{"product":"checkout"}',
        "{}",
    ]
    assert [message.get("tool_call_id") for message in messages[3:5]] == ["toolu_1", "toolu_2"]


@pytest.mark.parametrize(
    ("model", "own", "field"),
    [
        ("gpt-4o", True, "max_completion_tokens"),
        ("gpt-5", False, "max_completion_tokens"),
        ("o3-mini", False, "max_completion_tokens"),
        ("openai/gpt-5.4", False, "max_completion_tokens"),
        ("qwen3", False, "max_tokens"),
        ("gpt-4o", False, "max_tokens"),
    ],
)
def test_openai_bounds_the_output_under_the_name_the_model_takes(
    model: str, own: bool, field: str
) -> None:
    assert {"max_tokens", "max_completion_tokens"} & set(openai(model=model, own=own)) == {field}


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        ("gpt-4o", True),
        ("gpt-4.1", True),
        ("gpt-oss-120b", True),
        ("gpt-5", False),
        ("gpt-5.6-sol", False),
        ("gpt-6-astra", False),
        ("o3", False),
    ],
)
def test_openai_reasoning_models_get_no_sampling_and_no_stop(model: str, sent: bool) -> None:
    body = openai(model=model)
    assert ("temperature" in body, "stop" in body) == (sent, sent)


@pytest.mark.parametrize(
    ("model", "effort"),
    [
        ("gpt-4o", None),
        ("gpt-5", None),
        ("gpt-5.4-mini", None),
        ("gpt-5.5", "none"),
        ("gpt-5.6-luna", "none"),
        ("gpt-6.1-terra", "none"),
        ("openai/gpt-6-sol", "none"),
    ],
)
def test_openai_models_that_refuse_tools_while_reasoning_do_not_reason(
    model: str, effort: str | None
) -> None:
    assert openai(model=model).get("reasoning_effort") == effort


def test_openai_models_may_reason_when_there_are_no_tools() -> None:
    assert "reasoning_effort" not in openai(replace(ASKED, tools=()), model="gpt-5.6-sol")


def test_openai_operators_choose_effort_and_usage() -> None:
    body = openai(model="gpt-5", extra={"effort": "low", "stream_options": False})
    assert body["reasoning_effort"] == "low"
    assert "stream_options" not in body
    assert openai()["stream_options"] == {"include_usage": True}


def test_ollama_gets_its_context_window_and_no_silent_truncation() -> None:
    body = ollama()
    assert (body["truncate"], body["shift"]) == (False, False)
    assert body["options"] == {
        "num_ctx": 8192,
        "num_predict": 1000,
        "temperature": 0.2,
        "stop": ["END"],
    }


def test_ollama_takes_arguments_as_objects_and_results_by_tool_name() -> None:
    messages = ollama()["messages"]
    assert [call["function"]["arguments"] for call in messages[2]["tool_calls"]] == [
        {"product": "checkout"},
        {},
    ]
    assert messages[3] == {
        "role": "tool",
        "tool_name": "core__get_logs",
        "content": '{"lines":[]}',
    }


def test_emulated_tools_live_in_the_prompt_and_the_past_shows_their_form() -> None:
    body = ollama(native=False)
    system, _, looked, results, _ = (message["content"] for message in body["messages"])
    assert "tools" not in body
    assert system.startswith("Investigate.\n\n")
    assert "core__get_metrics: Series." in system
    assert '<<TOOL name="core__get_logs" args=\'{"product":"checkout"}\'>>' in looked
    assert 'Tool core__get_logs answered:\n{"lines":[]}' in results
    assert "Tool core__get_metrics failed with:" in results


@pytest.mark.parametrize("encode", [anthropic, openai, ollama])
def test_without_tools_none_are_sent(encode: Any) -> None:
    assert "tools" not in encode(replace(ASKED, tools=()))


@pytest.mark.parametrize("encode", [anthropic, openai, ollama])
def test_the_askers_identity_is_never_part_of_a_request(encode: Any) -> None:
    request = replace(ASKED, meta=replace(ASKED.meta, user_id="U-4711", session_id="S-4711"))
    assert "4711" not in json.dumps(encode(request))
