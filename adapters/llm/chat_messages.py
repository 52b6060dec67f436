"""Messages and tools in chat/completions form, which more than one vendor speaks."""

from collections.abc import Sequence

from adapters.llm.messages import ToolCall, ToolSpec
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn
from adapters.llm.wire_json import arguments_object


def chat_tool(tool: ToolSpec) -> dict[str, object]:
    """A tool as a function declaration."""
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    return {"type": "function", "function": function}


def chat_messages(system: str, conversation: Sequence[Turn]) -> list[dict[str, object]]:
    """The conversation under roles system, user, assistant and tool."""
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
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_text(call)},
    }


def arguments_text(call: ToolCall) -> str:
    """Chat templates of compatible servers parse the arguments, so they must be an object."""
    return call.arguments if arguments_object(call.arguments) else "{}"
