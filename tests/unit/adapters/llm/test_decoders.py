"""Every golden transcript, fed in every way a network may cut it."""

import json
from codecs import BOM_UTF8
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.llm.anthropic.decode import AnthropicDecoder
from adapters.llm.bedrock.decode import BedrockDecoder
from adapters.llm.decoding import Decoder
from adapters.llm.messages import (
    DoneChunk,
    ErrorChunk,
    ErrorKind,
    StreamChunk,
    TextChunk,
    ToolCallChunk,
)
from adapters.llm.nirmata.decode import NirmataDecoder
from adapters.llm.ollama.decode import OllamaDecoder
from adapters.llm.openai.decode import OpenAIDecoder
from adapters.llm.openai.responses_decode import ResponsesDecoder
from tests.fakes import aws_frames
from tests.fixtures_providers import joined

GOLDEN = Path(__file__).parents[3] / "golden" / "wire"
TRANSCRIPTS = sorted(
    path for path in GOLDEN.glob("*/*") if not path.name.endswith(".expected.json")
)
STREAMS = [path for path in TRANSCRIPTS if path.suffix not in {".json", ".eventstream"}]
# Backends whose answers end with their bytes: a cut between two lines looks like the end.
# There the transfer's own end (the last HTTP chunk) is what counts.
UNMARKED = {"scoped.jsonl", "shipped_text.jsonl", "shipped_calls.jsonl", "shipped_error.jsonl"}
MARKED = [path for path in TRANSCRIPTS if path.name not in UNMARKED]
DECODERS: dict[str, Callable[[Callable[[], str]], Decoder]] = {
    "anthropic": AnthropicDecoder,
    "openai": OpenAIDecoder,
    "openai-responses": ResponsesDecoder,
    "ollama": OllamaDecoder,
    "bedrock": BedrockDecoder,
    "nirmata": NirmataDecoder,
}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def decode(wire: str, pieces: Iterable[bytes], *, is_delimited: bool = True) -> list[StreamChunk]:
    numbers = count(1)
    decoder = DECODERS[wire](lambda: f"made-{next(numbers)}")
    chunks = [chunk for piece in pieces for chunk in decoder.feed(piece)]
    return joined(chunks + decoder.close(is_delimited=is_delimited))


def answered(chunks: list[StreamChunk]) -> list[Any]:
    """Text, calls and the reason, without what is counted."""
    return [chunk.stop_reason if isinstance(chunk, DoneChunk) else plain(chunk) for chunk in chunks]


def plain(chunk: StreamChunk) -> dict[str, Any]:
    match chunk:
        case TextChunk():
            return {"text": chunk.text}
        case ToolCallChunk():
            return {"call": asdict(chunk.call)}
        case DoneChunk():
            return {
                "done": without(
                    asdict(chunk), {"usage_known": True, "at_list_price": True, **EMPTY}
                )
            }
        case ErrorChunk():
            return {"error": without(asdict(chunk), EMPTY)}


EMPTY: dict[str, Any] = {
    "provider_blocks": (),
    "warnings": (),
    "retry_after_s": None,
    "fault": None,
    "status": None,
    "should_retry": None,
    "began": False,
}


def without(fields: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in fields.items() if defaults.get(key, ...) != value}
    return {key: value for key, value in kept.items() if (key, value) != ("usage", None)}


def expected(path: Path) -> Any:
    return json.loads(path.with_name(f"{path.stem}.expected.json").read_text("utf-8"))


def as_json(chunks: list[StreamChunk]) -> Any:
    return json.loads(json.dumps([plain(chunk) for chunk in chunks]))


def pieces_of(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    edges = [0, *sorted(cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=name_of)
def test_a_transcript_gives_its_chunks(path: Path) -> None:
    assert as_json(decode(path.parent.name, [path.read_bytes()])) == expected(path)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=name_of)
def test_byte_by_byte_gives_the_same_chunks(path: Path) -> None:
    data = path.read_bytes()
    pieces = [data[at : at + 1] for at in range(len(data))]
    assert as_json(decode(path.parent.name, pieces)) == expected(path)


@pytest.mark.parametrize("path", STREAMS, ids=name_of)
def test_crlf_gives_the_same_chunks(path: Path) -> None:
    data = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert as_json(decode(path.parent.name, [data])) == expected(path)


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
@pytest.mark.parametrize("path", [p for p in STREAMS if p.suffix == ".sse"], ids=name_of)
def test_a_lone_cr_ends_a_line_of_server_sent_events(path: Path, size: int) -> None:
    data = path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r")
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    assert as_json(decode(path.parent.name, pieces)) == expected(path)


@pytest.mark.parametrize("path", STREAMS, ids=name_of)
def test_a_byte_order_mark_is_skipped(path: Path) -> None:
    data = BOM_UTF8 + path.read_bytes()
    pieces = [data[at : at + 1] for at in range(8)]
    assert as_json(decode(path.parent.name, [*pieces, data[8:]])) == expected(path)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=name_of)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_cut_gives_the_same_chunks(path: Path, data: st.DataObject) -> None:
    wire = path.read_bytes()
    cuts = data.draw(st.lists(st.integers(0, len(wire)), max_size=8))
    assert as_json(decode(path.parent.name, pieces_of(wire, cuts))) == expected(path)


def cuts_before_the_end(path: Path) -> list[bytes]:
    """Every beginning of a short transcript; of a long one, one in a few, and every line's end."""
    wire = path.read_bytes().rstrip(b"\r\n")
    step = max(1, len(wire) // 400)
    line_ends = [at for at, byte in enumerate(wire) if byte == ord("\n")]
    return [wire[:at] for at in sorted({*range(0, len(wire), step), *line_ends})]


@pytest.mark.parametrize("path", MARKED, ids=name_of)
def test_a_stream_cut_anywhere_never_succeeds_nor_asks_for_a_tool(path: Path) -> None:
    ends = [
        decode(path.parent.name, [data], is_delimited=False) for data in cuts_before_the_end(path)
    ]
    assert all(isinstance(chunks[-1], ErrorChunk) for chunks in ends)
    assert not any(isinstance(chunk, ToolCallChunk) for chunks in ends for chunk in chunks)


@pytest.mark.parametrize("path", MARKED, ids=name_of)
def test_a_clean_end_anywhere_is_an_error_or_the_whole_answer(path: Path) -> None:
    whole = answered(decode(path.parent.name, [path.read_bytes()]))
    ends = [decode(path.parent.name, [data]) for data in cuts_before_the_end(path)]

    assert [
        chunks
        for chunks in ends
        if not isinstance(chunks[-1], ErrorChunk) and answered(chunks) != whole
    ] == []
    assert not any(
        isinstance(chunk, ToolCallChunk)
        for chunks in ends
        for chunk in chunks
        if isinstance(chunks[-1], ErrorChunk)
    )


@pytest.mark.parametrize("name", sorted(UNMARKED))
def test_without_an_end_marker_the_transfer_must_be_delimited(name: str) -> None:
    path = GOLDEN / "nirmata" / name
    decoders = [NirmataDecoder() for _ in cuts_before_the_end(path)]
    for decoder, data in zip(decoders, cuts_before_the_end(path), strict=True):
        decoder.feed(data)
    ends = [chunks for decoder in decoders if (chunks := decoder.close(is_delimited=False))]
    assert ends
    assert all(isinstance(chunk, ErrorChunk) for chunks in ends for chunk in chunks[-1:])
    assert not any(isinstance(chunk, ToolCallChunk) for chunks in ends for chunk in chunks)


@pytest.mark.parametrize("name", sorted(UNMARKED))
def test_a_stream_without_an_end_marker_cut_within_a_line_never_succeeds(name: str) -> None:
    path = GOLDEN / "nirmata" / name
    lines = path.read_bytes().splitlines(keepends=True)
    starts = [b"".join(lines[:number]) for number in range(len(lines))]
    middles = [start + line[: len(line) // 2] for start, line in zip(starts, lines, strict=True)]
    ends = [decode("nirmata", [data])[-1] for data in middles]
    assert all(isinstance(end, ErrorChunk) for end in ends)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "message",
                    "delta",
                    "index",
                    "content_block",
                    "usage",
                    "error",
                    "choices",
                    "content",
                    "text",
                    "done",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "id",
                    "finish_reason",
                    "stop_reason",
                    "refusal",
                    "model",
                    "data",
                    "item",
                    "response",
                    "stopReason",
                    "toolUse",
                    "reasoningContent",
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
EVENT_TYPES = st.sampled_from(
    [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "error",
        "ping",
        "response.output_item.done",
        "response.completed",
        "contentBlockStart",
        "contentBlockDelta",
        "messageStop",
        "metadata",
        "content",
        "tool_call",
        "ToolStart",
        "done",
    ]
)
EVENTS = st.lists(
    st.builds(
        lambda kind, fields: {**fields, "type": kind} if isinstance(fields, dict) else fields,
        EVENT_TYPES,
        JSON,
    ),
    max_size=6,
)


def as_sse(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def as_line(event: Any) -> bytes:
    return json.dumps(event).encode() + b"\n"


def as_frame(event: Any) -> bytes:
    kind = event.get("type", "metadata") if isinstance(event, dict) else "metadata"
    return aws_frames.frame({":event-type": str(kind)}, json.dumps(event).encode())


FRAMED: dict[str, Callable[[Any], bytes]] = {
    "ollama": as_line,
    "nirmata": as_line,
    "bedrock": as_frame,
}


@pytest.mark.parametrize("wire", DECODERS)
@given(events=EVENTS)
def test_json_of_any_shape_ends_in_exactly_one_terminal_chunk(wire: str, events: list[Any]) -> None:
    chunks = decode(wire, [FRAMED.get(wire, as_sse)(event) for event in events])
    terminal = [chunk for chunk in chunks if isinstance(chunk, DoneChunk | ErrorChunk)]
    assert terminal == chunks[-1:]


@pytest.mark.parametrize("wire", DECODERS)
@given(data=st.binary(max_size=200))
def test_bytes_of_any_kind_end_in_an_error(wire: str, data: bytes) -> None:
    chunks = decode(wire, [data])
    assert [type(chunk) for chunk in chunks] == [ErrorChunk]


@pytest.mark.parametrize("wire", sorted(set(DECODERS) - {"bedrock"}))
def test_a_line_that_never_ends_is_refused(wire: str) -> None:
    decoder = DECODERS[wire](str)
    decoder.feed(b"data: ")
    chunks = [chunk for _ in range(9) for chunk in decoder.feed(b"x" * 1024 * 1024)]
    assert [chunk.kind for chunk in chunks if isinstance(chunk, ErrorChunk)] == [ErrorKind.PROTOCOL]


@pytest.mark.parametrize("wire", DECODERS)
def test_nothing_follows_the_terminal_chunk(wire: str) -> None:
    decoder = DECODERS[wire](str)
    decoder.close()
    assert decoder.feed(b'data: {"type":"ping"}\n\n{"done":true}\n') == []
    assert decoder.close() == []
