"""Encode a request as the body of POST /v1/responses.

The vendor stores nothing: reasoning comes back encrypted and is sent again with the items that
followed it. Without them the API answers 400.
"""

from collections.abc import Mapping, Sequence

from adapters.llm.chat_completions import call_arguments, data_url
from adapters.llm.messages import CompleteRequest, Picture, ToolSpec
from adapters.llm.openai.encode import PROVIDER, cache_key, is_reasoning
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import as_object, as_text, dump, parse

Json = Mapping[str, object]


def encode_responses(
    request: CompleteRequest, model: str, max_tokens: int, extra: Mapping[str, object]
) -> bytes:
    """The request body; equal requests give equal bytes. The API knows no stop sequences."""
    body: dict[str, object] = {
        "model": model,
        "input": [item for turn in turns(request.messages) for item in _items(turn)],
        "max_output_tokens": max_tokens,
        "store": False,
        "stream": True,
    }
    if request.system.strip():
        body["instructions"] = request.system
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        if request.require_tool:
            body["tool_choice"] = "required"
    key = cache_key(request)
    if key:
        body["prompt_cache_key"] = key
    effort = as_text(extra.get("effort"))
    if is_reasoning(model):
        body["include"] = ["reasoning.encrypted_content"]
        if effort:
            body["reasoning"] = {"effort": effort}
    elif request.temperature is not None:
        body["temperature"] = request.temperature
    return dump(body)


def _tool(tool: ToolSpec) -> Json:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": False,
    }


def _items(turn: Turn) -> Sequence[Json]:
    match turn:
        case UserTurn(text, images):
            return [{"role": "user", "content": _said(text, images)}]
        case ResultsTurn(results):
            return [
                {
                    "type": "function_call_output",
                    "call_id": result.call_id,
                    "output": result.content,
                }
                for result in results
            ]
        case AssistantTurn():
            return _assistant(turn)


def _said(text: str, images: Sequence[Picture]) -> object:
    if not images:
        return text
    shown = [{"type": "input_image", "image_url": data_url(each)} for each in images]
    return [{"type": "input_text", "text": text}, *shown]


def _assistant(turn: AssistantTurn) -> Sequence[Json]:
    own = turn.provider_blocks if turn.provider == PROVIDER else ()
    native = [as_object(parse(block)) for block in own]
    calls = [item.get("call_id") for item in native if item.get("type") == "function_call"]
    if native and calls == [call.id for call in turn.calls]:
        return native
    said: list[Json] = [{"role": "assistant", "content": turn.text}] if turn.text else []
    return [
        *said,
        *(
            {
                "type": "function_call",
                "call_id": call.id,
                "name": call.name,
                "arguments": call_arguments(call),
            }
            for call in turn.calls
        ),
    ]
