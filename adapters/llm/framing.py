"""Split a byte stream into messages, server-sent events or JSON lines, within size limits.

Data beyond these limits only costs memory and time.
"""

import re
from typing import Final

from tools.admission import MAX_ARGUMENT_CHARS as _TAKEN

# An event as models send it: an optional name, and its data on one line.
_EVENT: Final = re.compile(rb"^(?:event: [^\n]*+\n)?data: ([^\n]*+)\n\n", re.MULTILINE)
# A line longer than this is not a model's answer (64 KiB of arguments is already extreme).
MAX_LINE_BYTES: Final = 8 * 1024 * 1024

# The largest outputs sold are 128k tokens: some 600 KB of text, in events of 150 to 350 bytes each.
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
MAX_TEXT_CHARS: Final = 1024 * 1024
# Data kept beside the text: thinking, signatures, blocks.
MAX_KEPT_CHARS: Final = 2 * 1024 * 1024
MAX_WHOLE_BYTES: Final = 8 * 1024 * 1024  # of an answer that is not streamed
MAX_CALLS: Final = 128  # as many tools as OpenAI and Nirmata let a request have
# One more than a tool accepts: the tool then refuses it, and the model sees the refusal.
MAX_ARGUMENT_CHARS: Final = _TAKEN + 1
MAX_NAME_CHARS: Final = 128  # Anthropic's bound; of tools, models and ids
# A round kept alive by pings takes no longer; a reasoning model may think for minutes.
ROUND_LIMIT_S: Final = 600.0


class BadFraming(ValueError):
    pass


class FrameTooLong(BadFraming):
    """A line grew past `MAX_LINE_BYTES`."""


class LineSplitter:
    """Lines of a byte stream, without their LF or CRLF, for any chunk boundaries."""

    __slots__ = ("_tail", "_tail_bytes")

    def __init__(self) -> None:
        self._tail: list[bytes] = []
        self._tail_bytes = 0

    @property
    def is_within(self) -> bool:
        return bool(self._tail)

    def feed(self, data: bytes) -> list[bytes]:
        """The completed lines. Raises FrameTooLong."""
        if b"\n" not in data:
            self._keep(data)
            return []
        lines = data.split(b"\n")
        if self._tail:
            self._tail.append(lines[0])
            lines[0] = b"".join(self._tail)
        rest = lines.pop()
        self._tail, self._tail_bytes = [], 0
        self._keep(rest)
        if b"\r" in data or lines[0][-1:] == b"\r":
            return [line[:-1] if line[-1:] == b"\r" else line for line in lines]
        return lines

    def close(self) -> bytes:
        """The last line, if the stream did not end with a newline; else empty."""
        rest = b"".join(self._tail).rstrip(b"\r")
        self._tail, self._tail_bytes = [], 0
        return rest

    def _keep(self, data: bytes) -> None:
        if data:
            self._tail.append(data)
            self._tail_bytes += len(data)
            if self._tail_bytes > MAX_LINE_BYTES:
                raise FrameTooLong(f"a line of more than {MAX_LINE_BYTES} bytes")


class SseSplitter:
    """The `data` of server-sent events (WHATWG HTML §9.2.6), names and ids left out.

    More lenient than the standard where real servers are: a space before a field name is
    ignored, and a last event without its blank line counts.
    """

    __slots__ = ("_after_cr", "_data", "_lines", "heard")

    def __init__(self) -> None:
        self._lines = LineSplitter()
        self._data: list[bytes] = []
        self._after_cr = False
        self.heard = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The completed payloads. Raises FrameTooLong."""
        payloads: list[bytes] = []
        if self._after_cr or b"\r" in data:
            data = self._with_lf(data)
        if self._data or self._lines.is_within:
            end = data.find(b"\n\n") + 2
            if end < 2:
                self._by_line(data, payloads)
                self.heard += len(payloads)
                return payloads
            self._by_line(data[:end], payloads)
            data = data[end:]
        *found, rest = _EVENT.split(data)
        if any(found[::2]):  # something precedes such events
            rest = data
        else:
            payloads += found[1::2]
        if rest:
            self._by_line(rest, payloads)
        self.heard += len(payloads)
        return payloads

    def close(self) -> list[bytes]:
        """The payloads that the end of the stream completes."""
        return self.feed(b"\n\n")

    def _by_line(self, data: bytes, payloads: list[bytes]) -> None:
        pending = self._data
        for line in self._lines.feed(data):
            field = line[:6]
            if field == b"data: ":  # nearly every line that matters
                pending.append(line[6:])
            elif not line:
                if pending:
                    payloads.append(pending[0] if len(pending) == 1 else b"\n".join(pending))
                    pending.clear()
            elif field != b"event:":
                self._field(line)

    def _with_lf(self, data: bytes) -> bytes:
        """The data with CR and CRLF as LF, for any chunk boundaries."""
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _field(self, line: bytes) -> None:
        line = line.lstrip(b" ")
        self.heard += line[:1] == b":"  # a comment, which servers send to keep a stream alive
        if line[:5] == b"data:":
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])


def round_limit_s(timeout_s: float) -> float:
    """The longest duration of a round, for a provider's configured silence.

    A long timeout implies a slow model: once for its first word, once more for the answer.
    """
    return max(ROUND_LIMIT_S, 2 * timeout_s)


class AnswerTooLarge(ValueError):
    """An answer exceeded a limit; the message names it."""
