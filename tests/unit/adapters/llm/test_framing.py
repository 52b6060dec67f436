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
def test_lines_are_unchanged(lines: list[bytes]) -> None:
    splitter = LineSplitter()
    data = b"".join(line + b"\n" for line in lines)
    found = [line for at in range(len(data)) for line in splitter.feed(data[at : at + 1])]
    assert found == [line.removesuffix(b"\r") for line in lines]
    assert splitter.close() == b""


def one_line_after_another(data: bytes) -> tuple[list[bytes], int]:
    """The payloads of a whole stream, and its signs of life, as the standard has them."""
    pending: list[bytes] = []
    payloads: list[bytes] = []
    comments = 0
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    for line in [*lines, b""]:
        field = line.lstrip(b" ")
        comments += field.startswith(b":")
        if field.startswith(b"data:"):
            pending.append(field[5:].removeprefix(b" "))
        elif not line and pending:
            payloads.append(b"\n".join(pending))
            pending = []
    return payloads, len(payloads) + comments


PIECES = [
    b"data: {}\n\n", b"event: x\ndata: {}\n\n", b"event: x\n", b"data: a\n", b"\n", b"\n\n", b"\r", b"\r\n",
    b": ping\n", b":", b" ", b"data: ", b"data:", b"event: ", b"event:", b"id: 1\n", b"a", b"event: data: b\n\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), st.lists(st.integers(1, 30)))
def test_events_are_equal_at_any_cut(data: bytes, sizes: list[int]) -> None:
    splitter = SseSplitter()
    found, at = [], 0
    for size in [*sizes, len(data)]:
        found += splitter.feed(data[at : at + size])
        at += size
    found += splitter.close()

    assert (found, splitter.heard) == one_line_after_another(data)
