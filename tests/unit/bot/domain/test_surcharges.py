"""What is billed beside the list price: long prompts by their own price, the rest as unknown."""

import json

import pytest

from adapters.llm.anthropic.decode import AnthropicDecoder
from adapters.llm.bedrock.decode import BedrockDecoder
from adapters.llm.decoding import Decoder
from adapters.llm.messages import DoneChunk, Usage
from adapters.llm.model_table import model_table
from adapters.llm.openai.decode import OpenAIDecoder
from adapters.llm.openai.responses_decode import ResponsesDecoder
from adapters.llm.port import Price


def listed(provider: str, model: str) -> Price:
    price = model_table(provider).price_of(model)
    assert price is not None
    return price


@pytest.mark.parametrize(
    ("provider", "model", "tokens", "usd_micros"),
    [
        ("openai", "gpt-6.1-sol", 272_000, 544_000 + 10),
        ("openai", "gpt-6.1-sol", 272_001, 1_088_004 + 15),
        ("anthropic", "claude-haiku-5-5", 100_000, 10_000 + 1),
        ("anthropic", "claude-haiku-5-5", 200_000, 100_000 + 3),
        ("anthropic", "claude-opus-5-5", 900_000, 3_600_000 + 20),
    ],
)
def test_a_long_prompt_has_the_vendors_surcharge(
    provider: str, model: str, tokens: int, usd_micros: int
) -> None:
    price = listed(provider, model)
    cost = price.cost_usd_micros(Usage(input_uncached=tokens, output=1))

    assert cost == usd_micros
    assert price.cost_usd_micros(Usage(output=1)) < price.cost_usd_micros(
        Usage(cache_read=tokens, output=1)
    )
    assert price.worst_case_usd_micros(tokens, 1) >= cost


def anthropic(**usage: object) -> dict[str, object]:
    return {"content": [], "stop_reason": "end_turn", "usage": {"input_tokens": 1, **usage}}


def chat(tier: str | None) -> dict[str, object]:
    return {"choices": [{"message": {"content": "a"}}], "service_tier": tier}


def responses(tier: str, *output: dict[str, object]) -> dict[str, object]:
    return {"status": "completed", "output": list(output), "service_tier": tier}


def converse(**more: object) -> dict[str, object]:
    return {"output": {}, "stopReason": "end_turn", "usage": {"inputTokens": 1}, **more}


@pytest.mark.parametrize(
    ("decoder", "answer", "is_listed"),
    [
        (AnthropicDecoder(), anthropic(service_tier="standard"), True),
        (AnthropicDecoder(), anthropic(service_tier="priority"), False),
        (AnthropicDecoder(), anthropic(server_tool_use={"web_search_requests": 1}), False),
        (AnthropicDecoder(), anthropic(server_tool_use={"web_search_requests": 0}), True),
        (AnthropicDecoder(), anthropic(cache_creation={"ephemeral_1h_input_tokens": 9}), False),
        (AnthropicDecoder(), anthropic(cache_creation={"ephemeral_5m_input_tokens": 9}), True),
        (OpenAIDecoder(), chat("default"), True),
        (OpenAIDecoder(), chat(None), True),
        (OpenAIDecoder(), chat("priority"), False),
        (ResponsesDecoder(), responses("default"), True),
        (ResponsesDecoder(), responses("flex"), False),
        (ResponsesDecoder(), responses("default", {"type": "web_search_call"}), False),
        (BedrockDecoder(), converse(serviceTier={"type": "default"}), True),
        (BedrockDecoder(), converse(serviceTier={"type": "priority"}), False),
        (BedrockDecoder(), converse(performanceConfig={"latency": "optimized"}), False),
    ],
)
def test_another_tier_or_a_vendors_tool_is_distinguished(
    decoder: Decoder, answer: dict[str, object], is_listed: bool
) -> None:
    (end,) = [
        c
        for c in [*decoder.feed(json.dumps(answer).encode()), *decoder.close()]
        if isinstance(c, DoneChunk)
    ]

    assert end.at_list_price is is_listed
