"""The tools as an operator sees them. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue, TypeAdapter


@dataclass(frozen=True, slots=True)
class ToolHealth:
    """Calls of one tool in this process. Latencies are upper bounds in seconds, None above all."""

    outcomes: Mapping[str, int] = field(default_factory=dict)
    half_under_s: float | None = 0.0
    most_under_s: float | None = 0.0  # 95 of 100

    @property
    def calls(self) -> int:
        return sum(self.outcomes.values())

    def as_words(self) -> str:
        """`12 calls, 2 upstream, half under 0.25 s, 95 % under 2.5 s`."""
        if not self.calls:
            return "not called yet"
        failed = [
            f"{n} {outcome}" for outcome, n in sorted(self.outcomes.items()) if outcome != "ok"
        ]
        took = [
            f"{words} {_seconds(value)}"
            for words, value in (("half", self.half_under_s), ("95 %", self.most_under_s))
        ]
        counted = "1 call" if self.calls == 1 else f"{self.calls:,} calls"
        return ", ".join([counted, *failed, *took])


@dataclass(frozen=True, slots=True)
class ToolStatus:
    """One tool. `toolsets` are those with it; `reason` says why no model sees it, or ""."""

    id: str
    toolsets: tuple[str, ...] = ()
    reason: str = ""
    health: ToolHealth = field(default_factory=ToolHealth)

    def as_words(self, *, live: bool = True) -> str:
        """In one line, without the name; without `live` nothing is known of its calls."""
        where = ", ".join(self.toolsets) or "in no toolset"
        calls = f": {self.health.as_words()}" if live else ""
        return f"not offered: {self.reason}" if self.reason else f"{where}{calls}"


@dataclass(frozen=True, slots=True)
class ToolsetCost:
    """What a toolset's names, descriptions and schemas add to every request."""

    name: str
    tools: int
    max_tokens: int  # an upper estimate

    def as_words(self) -> str:
        """`13 tools, at most 2,900 tokens in every request`."""
        return f"{self.tools} tools, at most {self.max_tokens:,} tokens in every request"


@dataclass(frozen=True, slots=True)
class ToolReport:
    """The content of `/kortex tools`. `notes`: failures to load, with reasons; MCP servers."""

    tools: Sequence[ToolStatus]
    toolsets: Sequence[ToolsetCost]
    notes: Sequence[str] = ()

    def as_json(self) -> JsonValue:
        """For programs; `report_from_json` reads it back."""
        value: JsonValue = _REPORT.dump_python(self, mode="json")
        return value


_REPORT = TypeAdapter(ToolReport)


def report_from_json(text: bytes) -> ToolReport:
    """Raises pydantic's ValidationError for other text."""
    return _REPORT.validate_json(text)


def _seconds(value: float | None) -> str:
    return "over 5 minutes" if value is None else f"under {value:g} s"
