"""Requests for Responses, Bedrock and Nirmata: shapes their APIs accept, and nothing they refuse."""

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.llm.bedrock.encode import encode as encode_bedrock
from adapters.llm.messages import CompleteRequest, Message, Role, ToolCall, ToolResult, ToolSpec
from adapters.llm.nirmata.provider import encode as encode_nirmata
from adapters.llm.openai.responses_encode import encode_responses

SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
LOGS = ToolSpec("core__get_logs", "Log lines.", SCHEMA)
CALLS = (
    ToolCall("call_1", "core__get_logs", '{"product":"checkout"}'),
    ToolCall("call_2", "core__get_metrics", "{broken"),
)
LOOKED = Message(Role.ASSISTANT, "Looking.", tool_calls=CALLS)
ASKED = CompleteRequest(
    system="Investigate. It is noon.",
    messages=(
        Message(Role.USER, "Why?"),
        LOOKED,
        Message(Role.TOOL, tool_result=ToolResult("call_1", "core__get_logs", '{"lines":[]}')),
        Message(Role.TOOL, tool_result=ToolResult("call_2", "core__get_metrics", "", True)),
        Message(Role.USER, "And?"),
    ),
    tools=(LOGS,),
    temperature=0.2,
    stop=("END", " "),
    system_stable_chars=len("Investigate. "),
)
CLAUDE = "us.anthropic.claude-sonnet-4-6"
CACHED = {"cachePoint": {"type": "default"}}


def responses(request: CompleteRequest = ASKED, model: str = "gpt-6.1-sol", **extra: Any) -> Any:
    return json.loads(encode_responses(request, model, 1000, extra))


def bedrock(request: CompleteRequest = ASKED, model: str = CLAUDE, **extra: Any) -> Any:
    return json.loads(encode_bedrock(request, model, 4000, extra))


def nirmata(request: CompleteRequest = ASKED, *, native: bool = True) -> Any:
    return json.loads(encode_nirmata(request, "m", 1000, native_tools=native, streaming=True))


def test_responses_pairs_every_call_with_its_output() -> None:
    items = responses()["input"]
    assert [item.get("type", item.get("role")) for item in items] == [
        "user",
        "assistant",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "user",
    ]
    assert [item["arguments"] for item in items[2:4]] == ['{"product":"checkout"}', "{}"]
    assert [item["call_id"] for item in items[2:6]] == ["call_1", "call_2"] * 2


def test_responses_stores_nothing_and_asks_for_encrypted_reasoning() -> None:
    body = responses(effort="low")
    assert (body["store"], body["include"]) == (False, ["reasoning.encrypted_content"])
    assert body["reasoning"] == {"effort": "low"}
    assert "temperature" not in body


def test_responses_sends_sampling_to_models_that_do_not_reason() -> None:
    body = responses(model="gpt-4.1", effort="low")
    assert body["temperature"] == 0.2
    assert {"include", "reasoning"}.isdisjoint(body)


REASONED = '{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAAB"}'
CALLED = '{"type":"function_call","call_id":"call_1","name":"core__get_logs","arguments":"{}"}'


@pytest.mark.parametrize(
    ("provider", "blocks", "kinds"),
    [
        ("openai", (REASONED, CALLED), ["reasoning", "function_call"]),
        ("anthropic", (REASONED, CALLED), [None, "function_call"]),
        ("openai", (REASONED, CALLED.replace("call_1", "call_9")), [None, "function_call"]),
        ("openai", (), [None, "function_call"]),
    ],
)
def test_responses_replays_reasoning_only_with_the_calls_that_followed_it(
    provider: str, blocks: tuple[str, ...], kinds: list[str | None]
) -> None:
    said = replace(LOOKED, tool_calls=CALLS[:1], provider=provider, provider_blocks=blocks)
    request = replace(ASKED, messages=(Message(Role.USER, "Why?"), said))
    assert [item.get("type") for item in responses(request)["input"][1:3]] == kinds


def test_bedrock_puts_all_results_into_one_user_message_without_blank_text() -> None:
    messages = bedrock()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[2]["content"] == [
        {"toolResult": {"toolUseId": "call_1", "content": [{"text": '{"lines":[]}'}]}},
        {
            "toolResult": {
                "toolUseId": "call_2",
                "content": [{"text": "(no output)"}],
                "status": "error",
            }
        },
        {"text": "And?"},
        CACHED,
    ]


def test_bedrock_caches_the_prefix_the_instructions_and_where_two_requests_end() -> None:
    body = bedrock()
    assert body["system"] == [{"text": "Investigate. "}, CACHED, {"text": "It is noon."}, CACHED]
    assert json.dumps(body).count("cachePoint") == 4


def test_bedrock_sends_no_cache_point_to_families_that_refuse_it() -> None:
    assert "cachePoint" not in json.dumps(bedrock(model="meta.llama4-scout-17b-instruct-v1:0"))


@pytest.mark.parametrize(
    ("model", "sent"),
    [
        (CLAUDE, True),
        ("global.anthropic.claude-opus-4-7", False),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-5", False),
        ("amazon.nova-pro-v1:0", True),
    ],
)
def test_bedrock_sampling_goes_only_to_models_that_take_it(model: str, sent: bool) -> None:
    assert ("temperature" in bedrock(model=model)["inferenceConfig"]) is sent


def test_bedrock_keeps_the_tools_of_the_past_when_none_may_be_used() -> None:
    tools = bedrock(replace(ASKED, tools=()))["toolConfig"]["tools"]
    assert [tool["toolSpec"]["name"] for tool in tools] == ["core__get_logs", "core__get_metrics"]
    first = replace(ASKED, tools=(), messages=ASKED.messages[:1])
    assert "toolConfig" not in bedrock(first)


def test_bedrock_gets_its_signed_reasoning_back_unchanged_and_first() -> None:
    block = '{"reasoningContent":{"reasoningText":{"text":"Hm","signature":"EqQB"}}}'
    said = replace(LOOKED, provider="bedrock", provider_blocks=(block,))
    content = bedrock(replace(ASKED, messages=(ASKED.messages[0], said)))["messages"][1]["content"]
    assert content[0] == json.loads(block)
    assert [next(iter(part)) for part in content[1:]] == ["text", "toolUse", "toolUse"]


def test_bedrock_asks_for_thinking_as_the_model_takes_it() -> None:
    adaptive = bedrock(effort="high")["additionalModelRequestFields"]
    assert adaptive == {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}
    older = bedrock(model="us.anthropic.claude-haiku-4-5-20251001-v1:0", effort="low")
    assert older["additionalModelRequestFields"] == {
        "thinking": {"type": "enabled", "budget_tokens": 1024}
    }
    assert "temperature" not in older["inferenceConfig"]
    assert "additionalModelRequestFields" not in bedrock(model="amazon.nova-pro-v1:0", effort="low")


def test_bedrock_leaves_blank_stops_out() -> None:
    assert bedrock()["inferenceConfig"]["stopSequences"] == ["END"]


def test_nirmata_speaks_in_function_declarations_and_tool_messages() -> None:
    body = nirmata()
    assert body["tools"][0]["function"]["name"] == "core__get_logs"
    assert body["tool_choice"] == "auto"
    assert [message["role"] for message in body["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]


def test_nirmata_without_tools_is_taught_markers_in_its_instructions() -> None:
    body = nirmata(native=False)
    assert {"tools", "tool_choice"}.isdisjoint(body)
    assert "core__get_logs: Log lines." in body["messages"][0]["content"]
    assert '<<TOOL name="core__get_logs"' in body["messages"][2]["content"]


@pytest.mark.parametrize("encode", [responses, bedrock, nirmata])
def test_the_askers_identity_is_never_part_of_a_request(encode: Any) -> None:
    request = replace(ASKED, meta=replace(ASKED.meta, user_id="U-4711", session_id="S-4711"))
    assert "4711" not in json.dumps(encode(request))
