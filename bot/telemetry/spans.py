"""A finished span as a value, and the port that takes it. Without `[otel]`, spans are dropped.

The ids of a turn's trace are digests of the turn's id, so a replica that resumes the turn continues
its trace. This module does not import OpenTelemetry.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol

Value = str | int | float | tuple[str, ...]


class SpanKind(Enum):
    """What a span is to the process; the numbers are OTLP's."""

    INTERNAL = 1
    CLIENT = 3
    CONSUMER = 5


@dataclass(frozen=True, slots=True)
class FinishedSpan:
    """Times are nanoseconds since the epoch; `parent_id` is empty at the root.

    `content` is what people, models and tools said: it leaves only where that was asked for.
    `error` is a few words of a bounded set, empty where nothing failed.
    """

    name: str
    kind: SpanKind
    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    started_ns: int
    ended_ns: int
    attributes: Mapping[str, Value]
    content: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


class Spans(Protocol):
    """Where spans go. Nothing here blocks or raises."""

    @property
    def with_content(self) -> bool:
        """Whether the messages are wanted too."""
        ...

    def takes(self, trace_id: bytes) -> bool:
        """Whether this trace is among those kept. Every replica says the same."""
        ...

    def ended(self, span: FinishedSpan) -> None: ...


class NoSpans(Spans):
    """Takes none of them, and costs nothing."""

    @property
    def with_content(self) -> bool:
        return False

    def takes(self, trace_id: bytes) -> bool:  # noqa: ARG002 - the protocol's
        """None is kept."""
        return False

    def ended(self, span: FinishedSpan) -> None: ...


NO_SPANS: Final = NoSpans()


def trace_of(turn: str) -> bytes:
    """The 16 bytes of a turn's trace id."""
    return _digest("trace", turn, 16)


def root_of(turn: str) -> bytes:
    """The 8 bytes of the span with which a turn's trace begins: its message was accepted."""
    return _digest("accepted", turn, 8)


def turn_span_of(turn: str) -> bytes:
    """The 8 bytes of the turn's own span, in any process."""
    return _digest("turn", turn, 8)


def log_ids(turn: str, session: str) -> Mapping[str, str]:
    """What the log lines of a turn, and of what came of it, are found by."""
    return {"trace": trace_of(turn).hex(), "session": session, "turn": turn}


def _digest(what: str, turn: str, size: int) -> bytes:
    text = f"{what}:{turn}".encode("utf-8", "replace")
    return hashlib.blake2b(text, digest_size=size, person=b"kortex-trace").digest()
