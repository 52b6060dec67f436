"""From a canonical request to the body of POST /model/{id}/converse(-stream).

Blank text is a 400 there, all results of a round go into one user message, and a conversation
that holds tool blocks needs a `toolConfig` even when no tool may be used any more.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from adapters.llm.claude import capabilities, ends, may_require, thinking_fields
from adapters.llm.messages import CompleteRequest, Picture, ToolResult, ToolSpec
from adapters.llm.transcript import AssistantTurn, ResultsTurn, Turn, UserTurn, turns
from adapters.llm.wire_json import arguments_object, as_object, as_text, dump, parse

PROVIDER: Final = "bedrock"

Json = dict[str, object]

_CACHE_POINT: Final[Mapping[str, object]] = {"cachePoint": {"type": "default"}}
# Families that answer 400 to a cache point are sent none.
_CACHING: Final = ("anthropic.claude-", "amazon.nova-")
_FORCED: Final = ("amazon.nova-", "mistral.mistral-large")
_GO_ON: Final = "Continue."
_NO_SCHEMA: Final[Mapping[str, object]] = {"type": "object", "properties": {}}


def encode(
    request: CompleteRequest, model: str, max_tokens: int, extra: Mapping[str, object]
) -> bytes:
    conversation = turns(request.messages)
    caching = any(family in model for family in _CACHING)
    body: Json = {"messages": _messages(conversation, caching=caching)}
    if request.system.strip():
        body["system"] = _system(request, caching=caching)
    inference: Json = {"maxTokens": max_tokens}
    thinking = thinking_fields(model, as_text(extra.get("effort")), max_tokens)
    if thinking:
        body["additionalModelRequestFields"] = thinking
    elif request.temperature is not None and _takes_sampling(model):
        inference["temperature"] = request.temperature
    stop = [text for text in request.stop if text.strip()]
    if stop:
        inference["stopSequences"] = stop
    body["inferenceConfig"] = inference
    tools = [_tool(tool) for tool in request.tools] or _past_tools(conversation)
    if tools:
        config: Json = {"tools": tools}
        is_first = not any(isinstance(turn, AssistantTurn) for turn in conversation)
        if may_require(request, is_first=is_first) and _takes_any(model) and not thinking:
            config["toolChoice"] = {"any": {}}
        body["toolConfig"] = config
    return dump(body)


def _takes_sampling(model: str) -> bool:
    return "claude-" not in model or capabilities(model).sampling


def _takes_any(model: str) -> bool:
    """Whether `toolChoice` may be "any" for the model's family (API reference, ToolChoice)."""
    if "claude-" in model:
        return capabilities(model).forced_tools
    return any(family in model for family in _FORCED)


def _system(request: CompleteRequest, *, caching: bool) -> list[Mapping[str, object]]:
    """The part that no turn changes, then the rest, each with a cache point after it."""
    stable = request.system[: request.system_stable_chars]
    parts = [part for part in (stable, request.system[len(stable) :]) if part.strip()]
    blocks: list[Mapping[str, object]] = []
    for part in parts:
        blocks.append({"text": part})
        if caching:
            blocks.append(_CACHE_POINT)
    return blocks


def _tool(tool: ToolSpec) -> Json:
    spec: Json = {"name": tool.name, "inputSchema": {"json": tool.input_schema}}
    if tool.description.strip():
        spec["description"] = tool.description
    return {"toolSpec": spec}


def _past_tools(conversation: Sequence[Turn]) -> list[Json]:
    names = dict.fromkeys(
        call.name for turn in conversation if isinstance(turn, AssistantTurn) for call in turn.calls
    )
    return [{"toolSpec": {"name": name, "inputSchema": {"json": _NO_SCHEMA}}} for name in names]


def _messages(conversation: Sequence[Turn], *, caching: bool) -> list[Json]:
    out: list[tuple[str, list[Mapping[str, object]]]] = []
    for turn in conversation:
        role, blocks = _blocks(turn)
        if out and out[-1][0] == role:
            out[-1][1].extend(blocks)
        else:
            out.append((role, blocks))
    if out and out[-1][0] == "assistant":
        out.append(("user", [{"text": _GO_ON}]))
    for at in ends([role for role, _ in out]) if caching else ():
        out[at][1].append(_CACHE_POINT)
    return [{"role": role, "content": blocks} for role, blocks in out]


def _blocks(turn: Turn) -> tuple[str, list[Mapping[str, object]]]:
    match turn:
        case UserTurn(text, images):
            return "user", [*map(_image, images), {"text": text}]
        case ResultsTurn(results):
            return "user", [_result(result) for result in results]
        case AssistantTurn():
            return "assistant", _assistant(turn)


def _image(picture: Picture) -> Mapping[str, object]:
    kind = picture.media.removeprefix("image/")
    return {"image": {"format": kind, "source": {"bytes": picture.data}}}


def _assistant(turn: AssistantTurn) -> list[Mapping[str, object]]:
    own = turn.provider_blocks if turn.provider == PROVIDER else ()
    blocks = [as_object(parse(block)) for block in own]
    if turn.text:
        blocks.append({"text": turn.text})
    blocks.extend(
        {
            "toolUse": {
                "toolUseId": call.id,
                "name": call.name,
                "input": arguments_object(call.arguments),
            }
        }
        for call in turn.calls
    )
    return blocks


def _result(result: ToolResult) -> Mapping[str, object]:
    answer: Json = {
        "toolUseId": result.call_id,
        # A blank text is refused.
        "content": [{"text": result.content if result.content.strip() else "(no output)"}],
    }
    if result.is_error:
        answer["status"] = "error"
    return {"toolResult": answer}
