"""The bytes of the model server's scripted rounds for Responses, Bedrock and Nirmata."""

import json
from typing import Any

from tests.fakes import aws_frames
from tests.fakes.model_wires import Json, Round, on_the_wire, pieces, sse

Calls = list[tuple[str, str, str]]


def responses(chosen: Round, model: str, calls: Calls) -> list[bytes]:
    def of(kind: str, **more: Any) -> Json:
        return {"type": kind, "sequence_number": len(events), **more}

    events: list[Json] = []
    head: Json = {"id": "resp_1", "object": "response", "model": model, "output": [], "error": None}
    events.append(of("response.created", response={**head, "status": "in_progress"}))
    words, opaque = chosen.thought
    if opaque:
        summary = [{"type": "summary_text", "text": words}] if words else []
        thought = {"id": "rs_1", "type": "reasoning", "summary": summary}
        thought["encrypted_content"] = opaque
        events.append(of("response.output_item.done", output_index=0, item=thought))
    if chosen.text:
        item = {"id": "msg_1", "type": "message", "role": "assistant"}
        events.extend(
            of("response.output_text.delta", output_index=0, content_index=0, delta=piece)
            for piece in chosen.text
        )
        whole = [{"type": "output_text", "text": "".join(chosen.text), "annotations": []}]
        events.append(
            of("response.output_item.done", output_index=0, item={**item, "content": whole})
        )
    for index, (call_id, name, arguments) in enumerate(calls, start=1):
        item = {"id": f"fc_{index}", "type": "function_call", "call_id": call_id, "name": name}
        started = {**item, "arguments": "", "status": "in_progress"}
        events.append(of("response.output_item.added", output_index=index, item=started))
        events.extend(
            of("response.function_call_arguments.delta", output_index=index, delta=piece)
            for piece in pieces(arguments, chosen.args_piece_chars)
        )
        done = {**item, "arguments": arguments, "status": "completed"}
        events.append(of("response.output_item.done", output_index=index, item=done))
    given = chosen.input_tokens + chosen.cache_read
    usage = {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": chosen.cache_read},
        "output_tokens": chosen.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + chosen.output_tokens,
    }
    reasons = {"max_tokens": "max_output_tokens", "refusal": "content_filter"}
    why = reasons.get(chosen.stop)
    status = "incomplete" if why else "completed"
    ending = {**head, "status": status, "usage": usage, "incomplete_details": None}
    if why:
        ending["incomplete_details"] = {"reason": why}
    events.append(of(f"response.{status}", response=ending))
    return [sse(event, named=True) for event in events]


def bedrock(chosen: Round, model: str, calls: Calls) -> list[bytes]:
    del model
    frames = [aws_frames.event("messageStart", {"role": "assistant"})]
    blocks: list[tuple[Json | None, list[Json]]] = []
    words, opaque = chosen.thought
    if words:
        told: list[Json] = [{"reasoningContent": {"text": words}}]
        blocks.append((None, [*told, {"reasoningContent": {"signature": opaque}}]))
    elif opaque:
        blocks.append((None, [{"reasoningContent": {"redactedContent": opaque}}]))
    if chosen.text:
        blocks.append((None, [{"text": piece} for piece in chosen.text]))
    for call_id, name, arguments in calls:
        parts = ["", *pieces(arguments, chosen.args_piece_chars)]
        start = {"toolUse": {"toolUseId": call_id, "name": name}}
        blocks.append((start, [{"toolUse": {"input": part}} for part in parts]))
    for index, (opening, deltas) in enumerate(blocks):
        at = {"contentBlockIndex": index}
        if opening is not None:
            frames.append(aws_frames.event("contentBlockStart", {**at, "start": opening}))
        frames.extend(
            aws_frames.event("contentBlockDelta", {**at, "delta": delta}) for delta in deltas
        )
        frames.append(aws_frames.event("contentBlockStop", at))
    stops = {"refusal": "guardrail_intervened"}
    stop = stops.get(chosen.stop, chosen.stop) or ("tool_use" if calls else "end_turn")
    frames.append(aws_frames.event("messageStop", {"stopReason": stop}))
    usage = {
        "inputTokens": chosen.input_tokens,
        "outputTokens": chosen.output_tokens,
        "cacheReadInputTokens": chosen.cache_read,
        "cacheWriteInputTokens": 0,
        "totalTokens": chosen.input_tokens + chosen.cache_read + chosen.output_tokens,
    }
    frames.append(aws_frames.event("metadata", {"usage": usage, "metrics": {"latencyMs": 1}}))
    return frames


def nirmata_whole(chosen: Round, calls: Calls) -> Json:
    """The answer to a request that does not stream."""
    told = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    usage = {"prompt_tokens": chosen.input_tokens, "completion_tokens": chosen.output_tokens}
    return {"message": "".join(chosen.text), "tool_calls": told, "usage": usage}


def nirmata(chosen: Round, model: str, calls: Calls) -> list[bytes]:
    del model
    lines: list[Json] = [{"type": "content", "delta": piece} for piece in chosen.text]
    for index, (call_id, name, arguments) in enumerate(calls):
        at = {"type": "tool_call", "index": index}
        begin = {"id": call_id, "type": "function", "function": {"name": name}}
        lines.append({**at, "delta": begin})
        lines.extend(
            {**at, "delta": {"function": {"arguments": piece}}}
            for piece in pieces(arguments, chosen.args_piece_chars)
        )
    ended = {"stop_reason": chosen.stop} if chosen.stop else {}
    lines.append({"type": "done", **ended})
    return [on_the_wire(json.dumps(line, ensure_ascii=False)) + b"\n" for line in lines]
