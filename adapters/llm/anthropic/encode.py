"""Encode a request as the body of POST /v1/messages.

Cache breakpoints follow the tools and stable instructions, all instructions, the newest message and
the previous request's last message. Each round then pays only for new text. A breakpoint finds a
cache at most 20 blocks back and a round may be longer, so the previous end needs its own
breakpoint.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from adapters.llm.claude import Thinking, capabilities, ends, may_require, thinking_fields
from adapters.llm.messages import CompleteRequest, Picture, ToolResult, ToolSpec
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import arguments_object, as_object, as_text, dump, parse

PROVIDER: Final = "anthropic"

Block = dict[str, object]

# The default lifetime, 5 minutes; at most 4 breakpoints a request.
_CACHED: Final = {"type": "ephemeral"}
# Newer models answer 400 when a conversation ends with the assistant; this user message follows.
_GO_ON: Final = "Continue."


def encode(
    request: CompleteRequest, model: str, max_tokens: int, extra: Mapping[str, object]
) -> bytes:
    """The request body; equal requests give equal bytes."""
    body: dict[str, object] = {"model": model, "max_tokens": max_tokens, "stream": True}
    if request.tools:
        body["tools"] = _tools(request.tools, cached=not request.system.strip())
    if request.system.strip():
        body["system"] = _system(request)
    conversation = turns(request.messages)
    can = capabilities(model)
    thinking = thinking_fields(model, as_text(extra.get("effort")), max_tokens)
    if can.thinking is Thinking.BUDGET and _began_without(conversation):
        thinking = {}
    body["messages"] = _messages(conversation, prefill=can.prefill and not thinking)
    if thinking:
        body.update(thinking)
    elif request.temperature is not None and can.sampling:
        body["temperature"] = request.temperature
    is_first = not any(isinstance(turn, AssistantTurn) for turn in conversation)
    if may_require(request, is_first=is_first) and can.forced_tools and not thinking:
        body["tool_choice"] = {"type": "any"}
    stop = [text for text in request.stop if text.strip()]
    if stop:
        body["stop_sequences"] = stop
    return dump(body)


def _began_without(conversation: Sequence[Turn]) -> bool:
    """Whether the running turn already made calls without thinking.

    Models with a thinking budget answer 400 when it is switched on in the middle of tool use.
    """
    for turn in reversed(conversation):
        if isinstance(turn, UserTurn):
            return False
        if isinstance(turn, AssistantTurn) and turn.calls:
            return not (turn.provider == PROVIDER and turn.provider_blocks)
    return False


def _system(request: CompleteRequest) -> list[Block]:
    stable = request.system[: request.system_stable_chars]
    parts = [part for part in (stable, request.system[len(stable) :]) if part.strip()]
    return [{"type": "text", "text": part, "cache_control": _CACHED} for part in parts]


def _tools(tools: Sequence[ToolSpec], *, cached: bool) -> list[Block]:
    out: list[Block] = [
        {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
        for tool in tools
    ]
    if cached:
        out[-1]["cache_control"] = _CACHED
    return out


def _messages(conversation: Sequence[Turn], *, prefill: bool) -> list[Block]:
    """Alternating messages: what follows tool results joins their user message, after them."""
    out: list[tuple[str, list[Block]]] = []
    for turn in conversation:
        role, blocks = _blocks(turn)
        if out and out[-1][0] == role:
            out[-1][1].extend(blocks)
        else:
            out.append((role, blocks))
    if out and out[-1][0] == "assistant" and not _may_end(out[-1][1], prefill=prefill):
        out.append(("user", [{"type": "text", "text": _GO_ON}]))
    for at in ends([role for role, _ in out]):
        out[at][1][-1]["cache_control"] = _CACHED
    return [{"role": role, "content": blocks} for role, blocks in out]


def _may_end(blocks: Sequence[Block], *, prefill: bool) -> bool:
    """Whether a model can continue the assistant's last text, which may not end in white space."""
    last = as_text(blocks[-1].get("text"))
    return prefill and bool(last) and last == last.rstrip()


def _blocks(turn: Turn) -> tuple[str, list[Block]]:
    match turn:
        case UserTurn(text, images):
            return "user", [*map(_image, images), {"type": "text", "text": text}]
        case ResultsTurn(results):
            return "user", [_result(result) for result in results]
        case AssistantTurn():
            return "assistant", _assistant(turn)


def _image(picture: Picture) -> Block:
    source = {"type": "base64", "media_type": picture.media, "data": picture.data}
    return {"type": "image", "source": source}


def _assistant(turn: AssistantTurn) -> list[Block]:
    """Our own signed thinking goes back unchanged, before the rest or, interleaved, with it."""
    own = turn.provider_blocks if turn.provider == PROVIDER else ()
    native = [dict(as_object(parse(block))) for block in own]
    if _is_whole(native, turn):
        return native
    text: list[Block] = [{"type": "text", "text": turn.text}] if turn.text else []
    calls: list[Block] = [
        {
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": arguments_object(call.arguments),
        }
        for call in turn.calls
    ]
    thinking = [block for block in native if block.get("type") not in {"text", "tool_use"}]
    return [*thinking, *text, *calls]


def _is_whole(native: Sequence[Block], turn: AssistantTurn) -> bool:
    ids = [block.get("id") for block in native if block.get("type") == "tool_use"]
    is_more_than_thinking = bool(ids) or any(block.get("type") == "text" for block in native)
    return is_more_than_thinking and ids == [call.id for call in turn.calls]


def _result(result: ToolResult) -> Block:
    block: Block = {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": result.content,
    }
    if result.is_error:
        block["is_error"] = True
    return block
