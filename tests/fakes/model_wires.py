"""The bytes of the model server's scripted rounds for Anthropic, chat/completions and Ollama."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A tool call; `arguments` may be raw text to be malformed. `id` empty: numbered by the server."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class Failure:
    """An HTTP error instead of an answer. `body` None: the wire's own error shape."""

    status: int
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None


@dataclass(frozen=True)
class Round:
    """One scripted answer: text pieces, then calls, then the end."""

    text: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    thought: tuple[str, str] = ("", "")  # what can be read of it, and its signature or ciphertext
    stop: str = ""  # "max_tokens", "refusal"; empty: what text and calls imply
    input_tokens: int = 100
    output_tokens: int = 20
    cache_read: int = 0
    args_piece_chars: int = 7  # tool arguments arrive in pieces of this size
    pace_s: float = 0.0  # wait before each event; for benchmarks
    hold: asyncio.Event | None = None  # wait for it before event `hold_at`
    hold_at: int = 0  # -1: before the response's headers
    cut_at: int | None = None  # close the connection instead of event number `cut_at`
    error_at: int | None = None  # an in-stream error instead of event number `error_at`
    at_once: bool = False  # all of it in one write
    failure: Failure | None = None


_SURROGATE = re.compile("[\ud800-\udc7f\udd00-\udfff]")


def pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def on_the_wire(text: str) -> bytes:
    """UTF-8; a lone surrogate as its escape, and U+DC80 to U+DCFF as the byte they stand for."""
    escaped = _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return escaped.encode("utf-8", "surrogateescape")


def sse(event: Json, *, named: bool) -> bytes:
    name = f"event: {event['type']}\n" if named else ""
    return on_the_wire(f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n")


def anthropic(chosen: Round, model: str, calls: list[tuple[str, str, str]]) -> list[bytes]:
    usage = {
        "input_tokens": chosen.input_tokens,
        "cache_read_input_tokens": chosen.cache_read,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": model}
    events: list[Json] = [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}}
    ]
    blocks: list[tuple[Json, list[Json]]] = []
    words, opaque = chosen.thought
    if words:
        told: list[Json] = [{"type": "thinking_delta", "thinking": words}]
        signed = {"type": "signature_delta", "signature": opaque}
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, [*told, signed]))
    elif opaque:
        blocks.append(({"type": "redacted_thinking", "data": opaque}, []))
    if chosen.text:
        deltas = [{"type": "text_delta", "text": piece} for piece in chosen.text]
        blocks.append(({"type": "text", "text": ""}, deltas))
    for call_id, name, arguments in calls:
        start = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        parts = ["", *pieces(arguments, chosen.args_piece_chars)]
        blocks.append(
            (start, [{"type": "input_json_delta", "partial_json": part} for part in parts])
        )
    for index, (start, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events.extend(
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        )
        events.append({"type": "content_block_stop", "index": index})
    stop = chosen.stop or ("tool_use" if calls else "end_turn")
    events.append(
        {
            "type": "message_delta",
            "delta": {"stop_reason": stop, "stop_sequence": None},
            "usage": {"output_tokens": chosen.output_tokens},
        }
    )
    events.append({"type": "message_stop"})
    return [sse(event, named=True) for event in events]


def openai(chosen: Round, model: str, calls: list[tuple[str, str, str]]) -> list[bytes]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
    deltas: list[Json] = [{"role": "assistant", "content": None}]
    deltas.extend({"content": piece} for piece in chosen.text)
    for index, (call_id, name, arguments) in enumerate(calls):
        begin = {"name": name, "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": begin}]}
        )
        deltas.extend(
            {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
            for piece in pieces(arguments, chosen.args_piece_chars)
        )
    stops = {"max_tokens": "length", "refusal": "content_filter"}
    stop = stops.get(chosen.stop, "tool_calls" if calls else "stop")
    events: list[Json] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in deltas
    ]
    events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": stop}]})
    prompt = chosen.input_tokens + chosen.cache_read
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": chosen.output_tokens,
        "total_tokens": prompt + chosen.output_tokens,
        "prompt_tokens_details": {"cached_tokens": chosen.cache_read},
    }
    events.append({**head, "choices": [], "usage": usage})
    return [*(sse(event, named=False) for event in events), b"data: [DONE]\n\n"]


_HERE = "arguments-stand-here"


def ollama(chosen: Round, model: str, calls: list[tuple[str, str, str]]) -> list[bytes]:
    head = {"model": model, "created_at": "2026-01-01T00:00:00Z"}

    def line(message: Json, **more: Any) -> bytes:
        said = {"role": "assistant", "content": "", **message}
        whole = {**head, "message": said, "done": False, **more}
        return on_the_wire(json.dumps(whole, ensure_ascii=False)) + b"\n"

    lines = [line({"content": piece}) for piece in chosen.text]
    for call_id, name, arguments in calls:
        # Ollama sends an object unchanged; an older server sends what may be no object as text.
        is_object = arguments.startswith("{") and arguments.endswith("}")
        written = on_the_wire(arguments if is_object else json.dumps(arguments))
        function = {"name": name, "arguments": _HERE}
        told = line({"tool_calls": [{"id": call_id, "function": function}]})
        lines.append(told.replace(json.dumps(_HERE).encode(), written))
    usage = {
        "prompt_eval_count": chosen.input_tokens + chosen.cache_read,
        "eval_count": chosen.output_tokens,
    }
    reason = "length" if chosen.stop == "max_tokens" else "stop"
    return [*lines, line({}, done=True, done_reason=reason, **usage)]
