"""An image beside a question, as each vendor's wire wants it; without one nothing changes."""

import json
from dataclasses import replace
from typing import Any

import pytest

from adapters.llm.anthropic.encode import encode as encode_anthropic
from adapters.llm.bedrock.encode import encode as encode_bedrock
from adapters.llm.messages import CompleteRequest, Message, Picture, Role, ToolSpec
from adapters.llm.model_table import ModelOverride, model_table
from adapters.llm.ollama.encode import encode as encode_ollama
from adapters.llm.openai.encode import encode as encode_openai
from adapters.llm.openai.responses_encode import encode_responses
from adapters.llm.pseudo_tools import emulated

SHOT = Picture("shot.png", "image/png", "iVBORw0KGgo=")
PHOTO = Picture("board.jpg", "image/jpeg", "/9j/4AAQ")
ASKED = CompleteRequest("s", (Message(Role.USER, "What is this?", images=(SHOT, PHOTO)),))
PLAIN = CompleteRequest("s", (Message(Role.USER, "What is this?"),))


def wires(request: CompleteRequest) -> dict[str, Any]:
    """The newest message on every wire."""
    bodies = {
        "anthropic": json.loads(encode_anthropic(request, "claude-opus-5-5", 99, {}))["messages"],
        "openai": json.loads(encode_openai(request, "gpt-4o", 99, {}, is_vendors_own=True))["messages"],
        "responses": json.loads(encode_responses(request, "gpt-6-sol", 99, {}))["input"],
        "ollama": json.loads(encode_ollama(request, "llava", 99, 8192, native_tools=True))["messages"],
        "bedrock": json.loads(encode_bedrock(request, "mistral.pixtral-large", 99, {}))["messages"],
    }  # fmt: skip
    return {name: messages[-1]["content"] for name, messages in bodies.items()} | {
        "ollama_images": bodies["ollama"][-1].get("images")
    }


def test_each_wire_sends_images_in_its_own_shape() -> None:
    found = wires(ASKED)

    assert found["anthropic"] == [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": SHOT.data}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": PHOTO.data}},
        {"type": "text", "text": "What is this?", "cache_control": {"type": "ephemeral"}},
    ]  # fmt: skip
    assert found["openai"] == [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{SHOT.data}"}},
        {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{PHOTO.data}"}},
    ]
    assert found["responses"] == [
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{SHOT.data}"},
        {"type": "input_image", "image_url": f"data:image/jpeg;base64,{PHOTO.data}"},
    ]
    assert (found["ollama"], found["ollama_images"]) == ("What is this?", [SHOT.data, PHOTO.data])
    assert found["bedrock"] == [
        {"image": {"format": "png", "source": {"bytes": SHOT.data}}},
        {"image": {"format": "jpeg", "source": {"bytes": PHOTO.data}}},
        {"text": "What is this?"},
    ]


def test_without_images_the_text_is_unchanged() -> None:
    found = wires(PLAIN)

    assert (found["openai"], found["responses"], found["ollama"]) == ("What is this?",) * 3
    assert found["bedrock"] == [{"text": "What is this?"}]
    assert found["ollama_images"] is None


def test_a_model_without_tools_gets_images_too() -> None:
    tooled = replace(ASKED, tools=(ToolSpec("core__get_logs", "Lines.", {}),))

    assert emulated(tooled).messages[0].images == (SHOT, PHOTO)


@pytest.mark.parametrize(
    ("provider", "model", "sees"),
    [
        ("anthropic", "claude-sonnet-5-5", True),
        ("anthropic", "claude-haiku-4-5-20251001", True),
        ("anthropic", "claude-of-tomorrow", False),
        ("openai", "gpt-4o-2024-08-06", True),
        ("bedrock", "us.anthropic.claude-sonnet-4-6", True),
        ("bedrock", "us.amazon.nova-micro-v1:0", False),
        ("bedrock", "openai.gpt-oss-120b-1:0", False),
        ("ollama", "llava", False),
    ],
)
def test_the_table_lists_vision_models(provider: str, model: str, sees: bool) -> None:
    assert model_table(provider).sees_images(model) is sees


def test_an_operators_vision_setting_wins() -> None:
    table = model_table(
        "openai", {"gpt-4o": ModelOverride(images=False), "ours": ModelOverride(images=True)}
    )

    assert (table.sees_images("gpt-4o"), table.sees_images("ours")) == (False, True)


def test_an_image_is_in_no_representation_of_a_request() -> None:
    assert SHOT.data not in repr(ASKED)
