"""What of a body has come and was not read yet, however its server cut it."""

import aiohttp


class Gathered(aiohttp.StreamReader):
    """aiohttp's reader without the bounds between pieces, which cost more than what is in them."""

    __slots__ = ()

    def begin_http_chunk_receiving(self) -> None:
        """Nobody asks where a piece begins."""

    def end_http_chunk_receiving(self) -> None:
        """Nor where it ends."""

    def _read_nowait(self, n: int) -> bytes:
        if n != -1 or self._buffer_offset:
            return super()._read_nowait(n)
        self._timer.assert_timeout()
        data = b"".join(self._buffer)
        self._buffer.clear()
        self._cursor += self._size
        self._size = 0
        self._http_chunk_splits = None
        self._protocol.resume_reading()
        return data
