"""From a canonical request to the body of POST /api/chat, with native or emulated tools.

`num_ctx` is always sent: Ollama's own default is small, and it cuts a longer prompt without a
word. `truncate` and `shift` are off for the same reason: what does not fit is an error.
"""

from collections.abc import Sequence

from adapters.llm.messages import CompleteRequest, ToolSpec
from adapters.llm.ollama.pseudo_tools import instructions, shown_call, shown_result
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import arguments_object, dump

Json = dict[str, object]


def encode(
    request: CompleteRequest, model: str, max_tokens: int, num_ctx: int, *, native_tools: bool
) -> bytes:
    """The request body. Without `native_tools` the tools are described in the system prompt."""
    emulated = bool(request.tools) and not native_tools
    system = request.system
    if emulated:
        system = f"{system}\n\n{instructions(request.tools)}".strip()
    options: Json = {"num_ctx": num_ctx, "num_predict": max_tokens}
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.stop:
        options["stop"] = list(request.stop)
    conversation = turns(request.messages)
    body: Json = {
        "model": model,
        "messages": _messages(system, conversation, emulated=emulated),
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": options,
    }
    if request.tools and native_tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
    return dump(body)


def _tool(tool: ToolSpec) -> Json:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    return {"type": "function", "function": function}


def _messages(system: str, conversation: Sequence[Turn], *, emulated: bool) -> list[Json]:
    out: list[Json] = []
    if system.strip():
        out.append({"role": "system", "content": system})
    for turn in conversation:
        match turn:
            case UserTurn(text):
                out.append({"role": "user", "content": text})
            case AssistantTurn():
                out.append(_shown(turn) if emulated else _assistant(turn))
            case ResultsTurn() if emulated:
                shown = "\n".join(shown_result(result) for result in turn.results)
                out.append({"role": "user", "content": shown})
            case ResultsTurn(results):
                out.extend(
                    {"role": "tool", "tool_name": result.name, "content": result.content}
                    for result in results
                )
    return out


def _assistant(turn: AssistantTurn) -> Json:
    message: Json = {"role": "assistant", "content": turn.text}
    if turn.calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": arguments_object(call.arguments)}}
            for call in turn.calls
        ]
    return message


def _shown(turn: AssistantTurn) -> Json:
    parts = [turn.text] if turn.text else []
    content = "\n".join([*parts, *(shown_call(call) for call in turn.calls)])
    return {"role": "assistant", "content": content}
