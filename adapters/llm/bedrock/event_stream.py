"""AWS event-stream framing (`application/vnd.amazon.eventstream`), by botocore, as JSON payloads."""

import struct
from typing import TYPE_CHECKING

from adapters.llm.framing import BadFraming, FrameTooLong
from adapters.llm.wire_json import dump

if TYPE_CHECKING:
    from botocore.eventstream import EventStreamMessage


class EventStreamSplitter:
    """Split a byte stream into messages, each one JSON object.

    `{"event": name, "data": payload}` or `{"exception": name, "data": payload}`.
    """

    __slots__ = ("_buffer", "heard")

    def __init__(self) -> None:
        from botocore.eventstream import EventStreamBuffer  # the extra kortex[aws]

        self._buffer = EventStreamBuffer()
        self.heard = 0

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are now complete. Raises BadFraming, also for a wrong checksum."""
        from botocore.eventstream import (
            ChecksumMismatch,
            InvalidHeadersLength,
            InvalidPayloadLength,
            ParserError,
        )

        self._buffer.add_data(data)
        try:
            payloads = [_payload(message) for message in self._buffer]
        except (InvalidHeadersLength, InvalidPayloadLength) as error:
            raise FrameTooLong(str(error)) from error
        except ChecksumMismatch as error:
            raise BadFraming("a message does not match its checksum") from error
        except (ParserError, struct.error, KeyError, ValueError) as error:
            raise BadFraming(f"a message cannot be read: {type(error).__name__}") from error
        self.heard += len(payloads)
        return payloads

    def close(self) -> list[bytes]:
        """Always empty: an incomplete message is dropped."""
        return []


def _payload(message: "EventStreamMessage") -> bytes:
    answer = message.to_response_dict()
    headers, body = answer["headers"], answer["body"] or b"{}"
    match headers.get(":message-type"):
        case "exception":
            return _wrapped("exception", headers.get(":exception-type"), body)
        case "error":
            words = dump({"message": _text(headers.get(":error-message"))})
            return _wrapped("exception", headers.get(":error-code"), words)
        case _:
            return _wrapped("event", headers.get(":event-type"), body)


def _wrapped(kind: str, name: object, body: bytes) -> bytes:
    return b'{"%s":%s,"data":%s}' % (kind.encode("ascii"), dump(_text(name)), body)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
