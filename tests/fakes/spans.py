"""Spans that a test reads."""

from dataclasses import dataclass, field

from bot.telemetry.spans import FinishedSpan, Spans


@dataclass
class KeptSpans(Spans):
    """Takes all of them."""

    content: bool = False
    kept: list[FinishedSpan] = field(default_factory=list)

    @property
    def with_content(self) -> bool:
        return self.content

    def takes(self, trace_id: bytes) -> bool:
        return len(trace_id) == 16

    def ended(self, span: FinishedSpan) -> None:
        self.kept.append(span)

    def named(self, name: str) -> list[FinishedSpan]:
        return [span for span in self.kept if span.name == name]
