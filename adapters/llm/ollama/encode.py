"""Encode a request as the body of POST /api/chat, with native or emulated tools.

`num_ctx` is always sent: Ollama's own default is small, and it silently cuts a longer prompt.
`truncate` and `shift` are off for the same reason: a prompt that does not fit is an error.
"""

from collections.abc import Sequence

from adapters.llm.chat_completions import chat_tool
from adapters.llm.messages import CompleteRequest
from adapters.llm.pseudo_tools import emulated
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import arguments_object, dump

Json = dict[str, object]


def encode(
    request: CompleteRequest, model: str, max_tokens: int, num_ctx: int, *, native_tools: bool
) -> bytes:
    """The request body. Without `native_tools` the tools are described in the system prompt."""
    if request.tools and not native_tools:
        request = emulated(request)
    options: Json = {"num_ctx": num_ctx, "num_predict": max_tokens}
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.stop:
        options["stop"] = list(request.stop)
    body: Json = {
        "model": model,
        "messages": _messages(request.system, turns(request.messages)),
        "stream": True,
        "truncate": False,
        "shift": False,
        "options": options,
    }
    if request.tools:
        body["tools"] = [chat_tool(tool) for tool in request.tools]
    return dump(body)


def _messages(system: str, conversation: Sequence[Turn]) -> list[Json]:
    out: list[Json] = []
    if system.strip():
        out.append({"role": "system", "content": system})
    for turn in conversation:
        match turn:
            case UserTurn(text, images):
                shown: Json = {"images": [each.data for each in images]} if images else {}
                out.append({"role": "user", "content": text, **shown})
            case AssistantTurn():
                out.append(_assistant(turn))
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
