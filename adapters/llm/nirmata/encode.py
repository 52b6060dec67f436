"""From a canonical request to the body of POST /llm-apps/chat."""

from adapters.llm.chat_completions import chat_messages, chat_tool
from adapters.llm.messages import CompleteRequest
from adapters.llm.pseudo_tools import emulated
from adapters.llm.transcript import turns
from adapters.llm.wire_json import dump


def encode(
    request: CompleteRequest, model: str, max_tokens: int, *, native_tools: bool, streaming: bool
) -> bytes:
    """The request body. Without `native_tools` the tools are described in the instructions."""
    if request.tools and not native_tools:
        request = emulated(request)
    body: dict[str, object] = {
        "messages": chat_messages(request.system, turns(request.messages)),
        "max_tokens": max_tokens,
        "stream": streaming,
    }
    if model:
        body["model"] = model
    if request.tools:
        body["tools"] = [chat_tool(tool) for tool in request.tools]
        body["tool_choice"] = "auto"
    return dump(body)
