"""AWS event-stream framing: any cut, any flipped bit, any header."""

import struct
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.bedrock.event_stream import EventStreamSplitter
from adapters.llm.framing import BadFraming, FrameTooLong
from adapters.llm.wire_json import parse
from tests.fakes import aws_frames

NAMES = st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1, max_size=20)
HEADERS = st.dictionaries(NAMES, st.text(max_size=20), max_size=4)
TEXTS = st.lists(st.text(max_size=30), min_size=1, max_size=5)


def stream_of(texts: list[str]) -> bytes:
    return b"".join(aws_frames.event("contentBlockDelta", {"text": text}) for text in texts)


@given(texts=TEXTS, data=st.data())
def test_messages_are_complete_at_any_cut(texts: list[str], data: st.DataObject) -> None:
    wire = stream_of(texts)
    cuts = data.draw(st.lists(st.integers(0, len(wire)), max_size=9))
    splitter = EventStreamSplitter()
    payloads = [
        payload
        for start, end in pairwise([0, *sorted(cuts), len(wire)])
        for payload in splitter.feed(wire[start:end])
    ]
    assert [parse(payload) for payload in payloads] == [
        {"event": "contentBlockDelta", "data": {"text": text, "p": "abcd"}} for text in texts
    ]


@given(texts=TEXTS, data=st.data())
def test_a_flipped_bit_is_noticed(texts: list[str], data: st.DataObject) -> None:
    wire = bytearray(stream_of(texts))
    at = data.draw(st.integers(0, len(wire) * 8 - 1))
    wire[at // 8] ^= 1 << at % 8
    with pytest.raises(BadFraming):
        EventStreamSplitter().feed(bytes(wire))


@given(headers=HEADERS, texts=TEXTS)
def test_unknown_headers_change_nothing(headers: dict[str, str], texts: list[str]) -> None:
    whole = {**headers, ":event-type": "metadata", ":message-type": "event"}
    payloads = EventStreamSplitter().feed(aws_frames.frame(whole, b'{"usage":{}}'))
    assert payloads == [b'{"event":"metadata","data":{"usage":{}}}']


@given(data=st.binary(min_size=12, max_size=100))
def test_bytes_of_another_protocol_are_refused(data: bytes) -> None:
    with pytest.raises(BadFraming):
        EventStreamSplitter().feed(data)


def test_headers_of_every_type_are_skipped() -> None:
    values = [(0, b""), (1, b""), (2, b"a"), (3, b"ab"), (4, b"abcd"), (5, b"abcdefgh")]
    values += [(6, b"\0\2ab"), (8, b"abcdefgh"), (9, b"abcdefghijklmnop")]
    packed = b"".join(b"\1" + b"%d" % kind + bytes([kind]) + value for kind, value in values)
    named = b"\x0b:event-type\7\0\4ping"
    headers = packed + named
    lengths = struct.pack(">II", 16 + len(headers) + 2, len(headers))
    head = lengths + struct.pack(">I", zlib.crc32(lengths)) + headers + b"{}"
    message = head + struct.pack(">I", zlib.crc32(head))
    assert EventStreamSplitter().feed(message) == [b'{"event":"ping","data":{}}']


@pytest.mark.parametrize(
    ("total", "headers"), [(25_165_841, 0), (200_000, 131_073), (2**32 - 1, 0)]
)
def test_a_message_past_the_protocols_bounds_is_refused_before_it_is_read(
    total: int, headers: int
) -> None:
    lengths = struct.pack(">II", total, headers)
    with pytest.raises(FrameTooLong):
        EventStreamSplitter().feed(lengths + struct.pack(">I", zlib.crc32(lengths)))


@pytest.mark.parametrize(("total", "headers"), [(15, 0), (0, 0), (20, 5)])
def test_a_message_shorter_than_its_parts_is_refused(total: int, headers: int) -> None:
    lengths = struct.pack(">II", total, headers)
    with pytest.raises(BadFraming):
        EventStreamSplitter().feed(lengths + struct.pack(">I", zlib.crc32(lengths)) + b"\0" * 12)
