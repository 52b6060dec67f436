"""From a canonical request to the body of POST /v1/chat/completions."""

from collections.abc import Mapping, Sequence

from adapters.llm.messages import CompleteRequest, ToolCall, ToolSpec
from adapters.llm.openai.capabilities import is_reasoning, must_not_reason_with_tools
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import arguments_object, as_text, dump, dump_text, is_complete


def encode(
    request: CompleteRequest,
    model: str,
    max_tokens: int,
    extra: Mapping[str, object],
    *,
    is_vendors_own: bool,
) -> bytes:
    """The request body; equal requests give equal bytes.

    `is_vendors_own` chooses the newer `max_completion_tokens`, which all of OpenAI's models take
    and many compatible servers do not know.
    """
    reasoning = is_reasoning(model)
    newer = reasoning or is_vendors_own
    body: dict[str, object] = {
        "model": model,
        "messages": _messages(request.system, turns(request.messages)),
        "max_completion_tokens" if newer else "max_tokens": max_tokens,
        "stream": True,
    }
    if extra.get("stream_usage") is not False:
        body["stream_options"] = {"include_usage": True}
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    effort = as_text(extra.get("reasoning_effort"))
    if request.tools and must_not_reason_with_tools(model):
        effort = effort or "none"
    if effort:
        body["reasoning_effort"] = effort
    if not reasoning and request.temperature is not None:
        body["temperature"] = request.temperature
    if not reasoning and request.stop:
        body["stop"] = list(request.stop[:4])  # the API takes at most 4
    return dump(body)


def _tool(tool: ToolSpec) -> dict[str, object]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    return {"type": "function", "function": function}


def _messages(system: str, conversation: Sequence[Turn]) -> list[dict[str, object]]:
    out: list[dict[str, object]] = []
    if system.strip():
        out.append({"role": "system", "content": system})
    for turn in conversation:
        match turn:
            case UserTurn(text):
                out.append({"role": "user", "content": text})
            case ResultsTurn(results):
                out.extend(
                    {"role": "tool", "tool_call_id": result.call_id, "content": result.content}
                    for result in results
                )
            case AssistantTurn():
                out.append(_assistant(turn))
    return out


def _assistant(turn: AssistantTurn) -> dict[str, object]:
    message: dict[str, object] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [_call(call) for call in turn.calls]
    return message


def _call(call: ToolCall) -> dict[str, object]:
    """Chat templates of compatible servers parse the arguments, so they must be an object."""
    whole = is_complete(call.arguments) and call.arguments.lstrip().startswith("{")
    arguments = call.arguments if whole else dump_text(arguments_object(call.arguments))
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }
