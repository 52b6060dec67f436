"""What servers that speak a wire loosely send, and what it still means."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.llm.anthropic.decode import AnthropicDecoder
from adapters.llm.bedrock.decode import BedrockDecoder
from adapters.llm.decoding import Decoder
from adapters.llm.messages import DoneChunk, ErrorChunk, StreamChunk, TextChunk, ToolCallChunk
from adapters.llm.nirmata.decode import NirmataDecoder
from adapters.llm.ollama.decode import OllamaDecoder
from adapters.llm.openai.decode import OpenAIDecoder
from adapters.llm.openai.responses_decode import ResponsesDecoder
from tests.fakes import aws_frames

Json = dict[str, Any]


def summary_of(decoder: Decoder, *data: bytes) -> list[object]:
    """Text, calls and the end, as short as can be."""
    chunks = [chunk for piece in data for chunk in decoder.feed(piece)] + decoder.close()
    return [_short(chunk) for chunk in chunks]


def _short(chunk: StreamChunk) -> object:
    match chunk:
        case TextChunk(text):
            return text
        case ToolCallChunk(call):
            return (call.name, json.loads(call.arguments))
        case DoneChunk(reason):
            return reason.value
        case ErrorChunk(kind):
            return f"error: {kind.value}"


def sse(*events: Json | str) -> bytes:
    texts = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def block(index: int, content: Json, *deltas: Json) -> list[Json]:
    at = {"index": index}
    return [
        {"type": "content_block_start", **at, "content_block": content},
        *({"type": "content_block_delta", **at, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", **at},
    ]


START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}
STOP = {"type": "message_stop"}
TEXT = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "hi"})


def ending(reason: str | None) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": None}


def arguments(text: str) -> Json:
    return {"type": "input_json_delta", "partial_json": text}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (sse(START, *TEXT, ending("end_turn"), ending(None), STOP), ["hi", "end_turn"]),
        (sse(START, {"type": "new"}, *TEXT, ending("end_turn"), STOP, STOP), ["hi", "end_turn"]),
        (b": ping\n\nretry: 9\n\n" + sse(START, *TEXT, ending("x"), STOP), ["hi", "end_turn"]),
        (sse(START, *TEXT, {"error": {"type": "overloaded_error"}}), ["hi", "error: overloaded"]),
        (sse(START, {"type": "error", "error": "busy"}), ["error: overloaded"]),
        (
            sse(
                START,
                *block(0, {"type": "tool_use", "id": "a", "name": "t", "input": {"x": 1}}),
                ending("tool_use"),
                STOP,
            ),
            [("t", {"x": 1}), "tool_use"],
        ),
        (
            sse(
                START,
                *block(
                    0,
                    {"type": "tool_use", "id": "a", "name": "t", "input": {"x": 1}},
                    arguments('{"x"'),
                    arguments(":2}"),
                ),
                ending("tool_use"),
                STOP,
            ),
            [("t", {"x": 2}), "tool_use"],
        ),
        (sse(START, *TEXT, ending("refusal"), STOP), ["hi", "error: refused"]),
    ],
)
def test_messages_api_tolerates_variants(data: bytes, expected: list[object]) -> None:
    assert summary_of(AnthropicDecoder(), data) == expected


def chunk(delta: Json | None, finish: str | None = None, **more: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}


def call(name: str | None, text: str | None, **more: Any) -> Json:
    return {"tool_calls": [{"function": {"name": name, "arguments": text}, **more}]}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            sse(
                {"choices": []}, chunk({"content": None}), chunk({"content": "a"}), chunk(None),
                chunk({}, "stop"), {"choices": [], "usage": {"prompt_tokens": 3.0}}, "[DONE]", "[DONE]",
            ),
            ["a", "end_turn"],
        ),
        (
            sse(
                chunk(call("t", "{", index=0, id="1")), chunk(call("u", '{"b":', index=1, id="2")),
                chunk(call(None, "}", index=0)), chunk(call(None, "2}", index=1)),
                chunk({}, "tool_calls"), "[DONE]",
            ),
            [("t", {}), ("u", {"b": 2}), "tool_use"],
        ),
        (
            sse(
                chunk(call("t", "", index=0, id="1")), chunk(call("u", "", index=1, id="2")),
                chunk(call(None, '{"a":', index=2)), chunk(call(None, "1}", index=2)),
                chunk(call(None, '{"b":2}', index=3)), chunk({}, "tool_calls"), "[DONE]",
            ),
            [("t", {"a": 1}), ("u", {"b": 2}), "tool_use"],
        ),
        (
            sse(
                chunk(call("now", "", index=0, id="1")), chunk(call("u", None, index=1, id="2")),
                chunk(call("", '{"b":2}', index=5)), chunk({}, "tool_calls"), "[DONE]",
            ),
            [("now", {}), ("u", {"b": 2}), "tool_use"],
        ),
        (
            sse(chunk({"content": "a"}), "ping", "null", '""', "[]", "1", chunk({}, "stop")).replace(b"\n", b"\r"),
            ["a", "end_turn"],
        ),
        (
            sse(
                chunk(call("t", "", index=0, id="1")), chunk(call("t", '{"a":1}', index=1, id="1")),
                chunk(call("t", '{"a":2}', index=2, id="1")), chunk({}, "tool_calls"), "[DONE]",
            ),
            [("t", {"a": 1}), ("t", {"a": 2}), "tool_use"],
        ),
        (
            sse(
                chunk({"function_call": {"name": "t", "arguments": '{"a"'}}),
                chunk({"function_call": {"arguments": ":1}"}}),
                chunk({}, "function_call"), "[DONE]",
            ),
            [("t", {"a": 1}), "tool_use"],
        ),
        (sse(chunk({"content": "a"}), {"error": {"code": 502}}), ["a", "error: overloaded"]),
        (sse({"object": "error", "message": "down", "code": 503}), ["error: overloaded"]),
        (sse(chunk({"content": "a"}), chunk({}, "content_filter"), "[DONE]"), ["a", "error: refused"]),
        (sse(chunk({"refusal": "no"}), chunk({}, "stop"), "[DONE]"), ["error: refused"]),
        (sse(chunk({"content": "a"}), chunk({}, "stop")), ["a", "end_turn"]),
        (sse(chunk({"content": "a"}), chunk({}, "length")), ["a", "max_tokens"]),
        (sse(chunk({"content": "a"})), ["a", "error: cut"]),
        (sse(chunk(call("t", "{}", index=0)), chunk({}, "tool_calls")), [("t", {}), "tool_use"]),
        (  # the rest of the second call has another index than its head
            sse(
                chunk(call("core__get_recent_deploys", "", index=0, id="a")),
                chunk({"tool_calls": [{"index": 0, "function": {"arguments": '{"product":"checkout"}'}}]}),
                chunk(call("core__get_metrics", "", index=0, id="b")),
                chunk({"tool_calls": [{"index": 1, "function": {"arguments": '{"product":"cart"}'}}]}, "tool_calls"),
                "[DONE]",
            ),
            [
                ("core__get_recent_deploys", {"product": "checkout"}),
                ("core__get_metrics", {"product": "cart"}), "tool_use",
            ],
        ),
        (sse(chunk({"content": "a"}), '{"choices": [{'), ["a", "error: protocol"]),
    ],
)  # fmt: skip
def test_chat_completions_tolerates_variants(data: bytes, expected: list[object]) -> None:
    assert summary_of(OpenAIDecoder(), data) == expected


SAID = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
# What servers and gateways send to keep a stream alive; none of it is part of the answer.
KEEP_ALIVES = (
    b": keepalive\n\n",  # as the standard has it
    b"data: : keepalive\n\n",  # OpenRouter's comment, wrapped once more by a gateway
    b"data: :\n\n",
    b"data:\n\n",
    b"data: \n\n",
    b"data: ping\n\n",
    b"event: keepalive\ndata: still here\n\n",
    b"event: heartbeat\ndata:\n\n",
    b'event: ping\ndata: {"type": "ping"}\n\n',
    b"event: usage\nid: 7\nretry: 100\ndata: null\n\n",
    b'data: {"error": null}\n\n',
    b'data: {"type": "heartbeat", "at": 18446744073709551616}\n\n',
    b'event: proxy.status\ndata: {"status": "processing"}\n\n',
    b"data: \xff\xfe\n\n",
    b"data: []\r\n\r\n",
    b"\xef\xbb\xbf: a byte order mark\n\n",
    b"event: done\n\n",
    b"event: error\ndata:\n\n",
    b'data: ""\n\n',
    b"data\n\n",
    b"retry: 3000\r\n\r\n",
    b"\x00\n\n",
    b"data: \xe2\x80\xa8\n\n",
    b'data: {"error": ""}\n\n',
    b'data: {"choices": [null], "usage": null}\n\n',
    b'data: {"choices": [{"index": 0, "delta": null, "finish_reason": null}]}\n\n',
    b":" + b"x" * 70_000 + b"\n\n",
    b"data: : keepalive\n",  # without the blank line, so that it joins the next event
)
ANSWERS: dict[str, tuple[type[Decoder], list[bytes], list[object]]] = {
    "openai": (
        OpenAIDecoder,
        [
            sse(chunk({"content": "hi"})),
            sse(chunk(call("t", '{"a"', index=0, id="1"))),
            sse(chunk(call(None, ":1}", index=0))),
            sse(chunk({}, "tool_calls")),
            sse("[DONE]"),
        ],
        ["hi", ("t", {"a": 1}), "tool_use"],
    ),
    "anthropic": (
        AnthropicDecoder,
        [sse(each) for each in (START, *TEXT, ending("end_turn"), STOP)],
        ["hi", "end_turn"],
    ),
    "openai-responses": (
        ResponsesDecoder,
        [
            sse({"type": "response.output_item.done", "output_index": 0, "item": SAID}),
            sse({"type": "response.completed", "response": {"status": "completed"}}),
        ],
        ["hi", "end_turn"],
    ),
}


@pytest.mark.parametrize("keep_alive", KEEP_ALIVES)
@pytest.mark.parametrize("wire", sorted(ANSWERS))
def test_a_keep_alive_between_any_two_events_changes_nothing(wire: str, keep_alive: bytes) -> None:
    decoder, events, expected = ANSWERS[wire]
    with_them = [piece for event in events for piece in (keep_alive, event)]

    assert summary_of(decoder(), *with_them, keep_alive) == expected
    assert summary_of(decoder(), b"".join(with_them)) == expected


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    edges = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


NAMES = st.sampled_from(["core__get_logs", "core__get_metrics", "core__propose_action"])
FILLED = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), min_size=1)
CUTS = st.lists(st.integers(0, 60), max_size=4)
# How the pieces after a call's head name it: its index, another one, none; its id, a new one, none.
TAILS = st.sampled_from(
    [
        {"index": 0}, {"index": 0, "id": "same"}, {"index": 0, "id": "new"}, {"index": 1}, {"index": 7},
        {}, {"id": "same"}, {"id": "new"}, {"index": 1, "id": "same"}, {"index": 7, "id": "new"},
    ]
)  # fmt: skip


@given(st.lists(st.tuples(NAMES, FILLED, CUTS), min_size=1, max_size=3), TAILS)
@example(  # an empty piece after a whole call
    [("core__get_logs", {"": 0}, [7]), ("core__get_logs", {"": 0}, [])], {"index": 7, "id": "new"}
)
def test_calls_are_assembled_from_pieces_in_any_form(
    calls: list[tuple[str, Json, list[int]]], tail: Json
) -> None:
    ids = itertools.count()
    events = []
    for number, (name, given_arguments, cuts) in enumerate(calls):
        events.append(chunk(call(name, "", index=0, id=f"call-{number}")))
        for piece in pieces_of(json.dumps(given_arguments), cuts):
            own = {"same": f"call-{number}", "new": f"other-{next(ids)}"}
            mark = {key: own.get(str(value), value) for key, value in tail.items()}
            events.append(chunk(call(None, piece, **mark)))

    assert summary_of(OpenAIDecoder(), sse(*events, chunk({}, "tool_calls"), "[DONE]")) == [
        *((name, given_arguments) for name, given_arguments, _ in calls),
        "tool_use",
    ]


@pytest.mark.parametrize(
    ("entry", "finish", "expected"),
    [
        (call("", "", index=0), "stop", ["Looking.", "end_turn"]),
        (call(None, None, index=0), "tool_calls", ["Looking.", "end_turn"]),
        ({"tool_calls": [{}, None, 3]}, "stop", ["Looking.", "end_turn"]),
    ],
)
def test_an_entry_without_name_and_arguments_is_not_a_call(
    entry: Json, finish: str, expected: list[object]
) -> None:
    events = (chunk({"content": "Looking."}), chunk(entry), chunk({}, finish), "[DONE]")

    assert summary_of(OpenAIDecoder(), sse(*events)) == expected


ASKED = {"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}


def item(of: Json) -> Json:
    return {"type": "response.output_item.done", "output_index": 0, "item": of}


def completed(*output: Json) -> Json:
    whole = {"status": "completed", "output": list(output), "usage": None}
    return {"type": "response.completed", "response": whole}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (sse(item(ASKED), item(ASKED), completed(ASKED)), [("t", {}), "tool_use"]),
        (sse(item(SAID), item(SAID), completed(SAID)), ["hi", "end_turn"]),
        (sse(completed(SAID, ASKED)), ["hi", ("t", {}), "tool_use"]),
        (sse({"type": "response.cancelled", "response": {"status": "cancelled"}}), ["error: cut"]),
        (sse(item(SAID), {"type": "error", "code": "server_error"}), ["hi", "error: overloaded"]),
    ],
)
def test_responses_tolerates_variants(data: bytes, expected: list[object]) -> None:
    assert summary_of(ResponsesDecoder(), data) == expected


def test_a_bedrock_answer_may_send_usage_before_the_stop_and_padded_events() -> None:
    frames = [
        aws_frames.event("contentBlockDelta", {"p": "abcd", "delta": {"text": "hi"}}),
        aws_frames.event("newEvent", {"p": "a"}),
        aws_frames.event("metadata", {"usage": {"inputTokens": 1, "outputTokens": 2}}),
        aws_frames.event("messageStop", {"stopReason": "end_turn"}),
    ]

    assert summary_of(BedrockDecoder(), *frames) == ["hi", "end_turn"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([{"message": None}, {"message": {"content": "a"}}, {"done": True}], ["a", "end_turn"]),
        ([{"message": {"content": "a"}}, {"error": "server busy"}], ["a", "error: overloaded"]),
        ([{"message": {"content": "a"}, "done": False}], ["a", "error: cut"]),
        ([{"message": {"content": "a"}}, {"done_reason": "stop"}], ["a", "end_turn"]),
    ],
)
def test_ollama_tolerates_variants(lines: list[Json], expected: list[object]) -> None:
    data = "\r\n\r\n".join(json.dumps(line) for line in lines).encode()

    assert summary_of(OllamaDecoder(), data) == expected


@pytest.mark.parametrize(
    "keep_alive",
    [b"\n", b": ping\n", b"data:\n", b"data: : keepalive\n", b"event: ping\n", b"id: 7\n", b"{}\n",
     b"null\n", b'{"error": null}\n', b'{"status": "loading"}\n'],
)  # fmt: skip
@pytest.mark.parametrize(
    ("make", "lines"),
    [
        (OllamaDecoder, [b'{"message":{"content":"hi"}}\n', b'{"done":true}\n']),
        (OllamaDecoder, [b'data: {"message":{"content":"hi"}}\n\n', b'data: {"done":true}\n\n']),
        (NirmataDecoder, [b'{"type":"content","delta":"hi"}\n', b'{"type":"done"}\n']),
        (NirmataDecoder, [b'{"type":"Text","data":"hi"}\n']),
    ],
)
def test_a_keep_alive_between_two_lines_changes_nothing(
    make: type[Decoder], lines: list[bytes], keep_alive: bytes
) -> None:
    data = keep_alive + b"".join(line + keep_alive for line in lines)

    assert summary_of(make(), data) == ["hi", "end_turn"]
    assert summary_of(make(), *(bytes([each]) for each in data)) == ["hi", "end_turn"]


STOPPED = aws_frames.event("messageStop", {"stopReason": "end_turn"})
HI = aws_frames.event("contentBlockDelta", {"delta": {"text": "hi"}})


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (AnthropicDecoder, [sse(START, *TEXT, ending("end_turn"))]),
        (AnthropicDecoder, [sse(START, *TEXT, ending("end_turn"), "[DONE]")]),
        (AnthropicDecoder, [sse(START, *TEXT, ending("end_turn"), STOP, "[DONE]")]),
        (BedrockDecoder, [HI, STOPPED]),
        (BedrockDecoder, [aws_frames.event("ping", {}), HI, STOPPED, aws_frames.event("ping", {})]),
        (ResponsesDecoder, [*ANSWERS["openai-responses"][1], b"data: [DONE]\n\n"]),
    ],
)
def test_a_stop_reason_and_a_clean_end_are_a_normal_end(
    make: type[Decoder], pieces: list[bytes]
) -> None:
    assert summary_of(make(), *pieces) == ["hi", "end_turn"]


@pytest.mark.parametrize(
    ("make", "pieces"),
    [
        (AnthropicDecoder, [sse(START, *TEXT, ending("end_turn"))]),
        (BedrockDecoder, [HI, STOPPED]),
    ],
)
def test_a_stop_reason_before_a_broken_connection_is_not_an_end(
    make: type[Decoder], pieces: list[bytes]
) -> None:
    decoder = make()
    shown = [chunk for piece in pieces for chunk in decoder.feed(piece)]

    assert [_short(chunk) for chunk in shown + decoder.close(is_delimited=False)] == [
        "hi",
        "error: cut",
    ]


def choice(index: int | None, **delta: Any) -> Json:
    at = {} if index is None else {"index": index}
    return {**at, "delta": delta, "finish_reason": None}


CALL = [{"index": 0, "id": "a", "function": {"name": "t", "arguments": "{}"}}]


@pytest.mark.parametrize(
    "chunks",
    [
        [[choice(0, content="hi")], [choice(1, content="no")]],
        [[choice(1, content="no")], [choice(0, content="hi")]],
        [[choice(1, content="no"), choice(0, content="hi"), choice(2, tool_calls=CALL)]],
        [[choice(None, content="hi")], [choice(3, content="no")]],
        [[choice(0, content="hi")], [{**choice(1), "finish_reason": "content_filter"}]],
    ],
)
def test_only_the_first_of_several_choices_is_used(chunks: list[list[Json]]) -> None:
    stream = sse(*({"choices": each} for each in chunks), "[DONE]")
    assert summary_of(OpenAIDecoder(), stream) == ["hi", "end_turn"]


def test_a_complete_answer_is_its_first_choice() -> None:
    choices = [
        {"index": 1, "message": {"content": "no"}, "finish_reason": "length"},
        {"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"},
    ]
    assert summary_of(OpenAIDecoder(), json.dumps({"choices": choices}).encode()) == [
        "hi",
        "end_turn",
    ]
