"""Byte streams cut into lines and events."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.llm.framing import LineSplitter, SseSplitter


def events(data: bytes) -> list[bytes]:
    splitter = SseSplitter()
    return splitter.feed(data) + splitter.close()


@pytest.mark.parametrize(
    ("wire", "payloads"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data: a\r\n\r\n", [b"a"]),
        (b"data: a\r\rdata: b\r\n\rdata: c\r\r\n", [b"a", b"b", b"c"]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": ping\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"]),
        (b" data: a\n\n", [b"a"]),
        (b"data: a\n\n\n\n", [b"a"]),
        (b"data: [DONE]", [b"[DONE]"]),
        (b"event: x\n\n", []),
        (b"", []),
    ],
)
def test_events_are_their_data(wire: bytes, payloads: list[bytes]) -> None:
    assert events(wire) == payloads


@given(st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=5))
def test_lines_come_out_as_they_went_in(lines: list[bytes]) -> None:
    splitter = LineSplitter()
    data = b"".join(line + b"\n" for line in lines)
    found = [line for at in range(len(data)) for line in splitter.feed(data[at : at + 1])]
    assert found == [line.removesuffix(b"\r") for line in lines]
    assert splitter.close() == b""
