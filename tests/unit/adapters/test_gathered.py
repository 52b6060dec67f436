"""aiohttp's reader gives the same, piece for piece, whether or not the bounds of chunks are kept."""

import asyncio
from collections.abc import Sequence

import aiohttp
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given
from hypothesis import strategies as st

from adapters.gathered import Gathered

LIMIT = 64
READ = b""


class Flow(BaseProtocol):
    """Counts nothing but whether the other side is to hold."""

    def __init__(self) -> None:
        super().__init__(asyncio.new_event_loop())
        self._loop.close()
        self.holds = False

    def pause_reading(self) -> None:
        self.holds = True

    def resume_reading(self, resume_parser: bool = True) -> None:
        self.holds = False


def told(steps: Sequence[bytes], taken_over_at: int) -> list[tuple[bytes, bool, int]]:
    """What each read gave, whether the other side was to hold before it, and what is left."""
    flow = Flow()
    reader = aiohttp.StreamReader(flow, LIMIT, loop=flow._loop)
    found = []
    for at, step in enumerate(steps):
        if at == taken_over_at:
            reader.__class__ = Gathered
        if step == READ:
            found.append((reader.read_nowait(), flow.holds, reader.total_bytes))
            continue
        reader.begin_http_chunk_receiving()
        reader.feed_data(step)
        reader.end_http_chunk_receiving()
    reader.feed_eof()
    return [*found, (reader.read_nowait(), flow.holds, reader.total_bytes)]


@given(
    st.lists(st.one_of(st.just(READ), st.binary(min_size=1, max_size=40)), max_size=40),
    st.integers(0, 40),
)
def test_nothing_but_the_bounds_of_chunks_is_left_out(steps: list[bytes], at: int) -> None:
    never = len(steps)

    assert told(steps, at) == told(steps, never)
