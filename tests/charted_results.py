"""Results of the tools that hold points, and answers about them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import orjson
from pydantic import JsonValue

from bot.domain.claims import Claim, ClaimState, cited
from bot.domain.turn_events import Evidence, TurnFinished
from tests.golden.slack_views import finished, outcome
from tools.records import ToolOutcome

BEGIN = datetime(2026, 11, 21, 11, 30, tzinfo=UTC)
COMPARE = "core__compare_to_baseline"
GET = "core__get_metrics"
SWEEP = "core__sweep_metrics"
Fields = dict[str, JsonValue]


def at(minute: float) -> str:
    """So many minutes after the range's begin."""
    return (BEGIN + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")


def samples(values: Sequence[JsonValue]) -> list[JsonValue]:
    """A value a minute."""
    return [{"ts": at(minute), "value": value} for minute, value in enumerate(values)]


def compared(
    values: Sequence[JsonValue] = (0.2, 0.21, 0.2, 1.7, 1.8, 1.6), **more: JsonValue
) -> Fields:
    """core__compare_to_baseline: unusual since the fourth minute."""
    return {
        "range": f"{at(0)}/{at(30)}",
        "unit": "seconds",
        "baseline_median": 0.2,
        "first_anomaly_at": at(3),
        "samples": samples(values),
        **more,
    }


def swept(*shifts: Fields, end: str = at(30)) -> Fields:
    """core__sweep_metrics."""
    return {"range": f"{at(0)}/{end}", "shifts": list[JsonValue](shifts)}


def shift(product: str, role: str, signal: str, **more: JsonValue) -> Fields:
    """A signal that rose in the last ten minutes of thirty."""
    course: Fields = {"before_end_s": [1800, 1200, 600, 0], "values": [1.0, 1.0, 9.0, 8.0]}
    return {
        "product": product, "role": role, "signal": signal, "unit": "seconds", "usual": 1.0,
        "since": at(20), "course": course, **more,
    }  # fmt: skip


def result(
    tool: str, fields: Mapping[str, JsonValue] | str, call: str = "m", **arguments: JsonValue
) -> ToolOutcome:
    """A call of that tool, and its answer."""
    made = outcome(call, name=tool, summary="p99: 1 series")
    asked = {"product": "checkout", "metric_name": "p99", "time_range": "last 30m"} | arguments
    content = fields if isinstance(fields, str) else orjson.dumps(fields).decode()
    return replace(made, record=replace(made.record, arguments=asked), content=content)


def evidence(tool: str, fields: Mapping[str, JsonValue] | str) -> Evidence:
    """E1."""
    return Evidence.of(1, result(tool, fields))


def answered(
    *results: ToolOutcome, says: str, state: ClaimState = ClaimState.SUPPORTED
) -> TurnFinished:
    """An answer of one claim a line, each with the numbers that it cites."""
    claims = tuple(Claim(line, cited(line), state) for line in says.splitlines())
    numbered = tuple(Evidence.of(number, each) for number, each in enumerate(results, 1))
    return finished(text=says, outcomes=results, evidence=numbered, claims=claims)
