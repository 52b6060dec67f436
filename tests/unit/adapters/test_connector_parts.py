"""However a server's bytes are cut, our connection reads of them what aiohttp's does."""

import asyncio
from itertools import pairwise
from unittest.mock import Mock

from aiohttp.client_exceptions import ClientPayloadError
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError
from hypothesis import given
from hypothesis import strategies as st

from adapters.connector import Connection

HEADS = [
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: y\r\n z\r\ncontent-length: 2\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n",
    b"HTTP/1.1 200 OK\n\n",
    b"HTP/1.1 200\r\n\r\n",
]
BODIES = [
    b"5\r\nhello\r\n4\r\n\r\n\r\n\r\n0\r\n\r\n",
    b"5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
    b"5\r\nhelloX\r\n",
    b"zz\r\n",
    b"\r\n\r\n12345\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    b"",
]


async def read(kind: type[ResponseHandler], parts: list[bytes]) -> tuple[object, ...]:
    connection = kind(asyncio.get_running_loop())
    connection.connection_made(Mock(spec=asyncio.Transport))
    connection.set_response_params(read_until_eof=True, auto_decompress=False, read_timeout=None)
    for part in parts:
        connection.data_received(part)
    connection.connection_lost(None)
    try:
        said, content = await connection.read()
        while said.code == 103:
            said, content = await connection.read()
        return said.code, await content.read(), connection.should_close
    except (HttpProcessingError, ClientPayloadError) as error:
        return (type(error),)
    except Exception as error:  # noqa: BLE001 - which it is is what is compared
        return type(error), str(error)


@given(
    st.sampled_from(HEADS),
    st.sampled_from(BODIES),
    st.lists(st.integers(0, 200), max_size=4).map(sorted),
)
async def test_an_answer_is_what_it_is_however_it_is_cut(
    head: bytes, body: bytes, cuts: list[int]
) -> None:
    data = head + body
    # What is wrong behind a body takes it away only where both come with the head in one part.
    ends: tuple[list[int], ...] = ([], [len(head)], [data.find(b"\r\n\r\n") + 4])
    usual = [await read(ResponseHandler, cut(data, sorted([*cuts, *end]))) for end in ends]

    assert await read(Connection, cut(data, cuts)) in usual


def cut(data: bytes, at: list[int]) -> list[bytes]:
    return [part for start, end in pairwise([0, *at, len(data)]) if (part := data[start:end])]
