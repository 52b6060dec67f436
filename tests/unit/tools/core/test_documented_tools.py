"""The eight core tools take and answer what their design document says: names, kinds, limits."""

from typing import Any, get_args

import pytest
from pydantic import BaseModel

from tools.contract import ToolContract
from tools.core.all import core_tools
from tools.cursor import CursorSigner
from tools.schema import input_schema

CONTRACTS = {
    tool.contract.short_name: tool.contract for tool in core_tools(CursorSigner(b"k" * 32))
}
TEXT, NUMBER, TRUTH, OBJECT = "string", "integer", "boolean", "object"
LEVELS = ["debug", "info", "warn", "error", "fatal"]
# Properties and their types, those required, and the paths that a result may be read by.
DOCUMENTED: dict[str, tuple[dict[str, str], list[str], list[str]]] = {
    "get_logs": (
        {"product": TEXT, "time_range": TEXT, "query": TEXT, "level": TEXT, "limit": NUMBER,
         "cursor": TEXT},
        ["product", "time_range"],
        ["lines.ts", "lines.level", "lines.host", "lines.message", "truncated", "total_matches",
         "next_cursor", "query_latency_ms"],
    ),
    "get_metrics": (
        {"product": TEXT, "metric_name": TEXT, "time_range": TEXT, "labels": OBJECT, "step": TEXT},
        ["product", "metric_name", "time_range"],
        ["samples.ts", "samples.value", "stats.min", "stats.max", "stats.mean", "stats.p50",
         "stats.p95", "stats.p99", "unit", "truncated"],
    ),
    "get_traces": (
        {"request_id": TEXT, "include_logs": TRUTH},
        ["request_id"],
        ["trace_id", "root.service", "root.operation", "root.start_us", "root.duration_us",
         "root.status", "root.tags", "root.children", "errors.span_id", "errors.message",
         "logs.message"],
    ),
    "compare_to_baseline": (
        {"product": TEXT, "metric_name": TEXT, "time_range": TEXT},
        ["product", "metric_name", "time_range"],
        ["baseline_window", "baseline_mean", "baseline_stddev", "samples.ts", "samples.value",
         "samples.z_score", "samples.anomalous", "anomaly_count", "max_z_score"],
    ),
    "get_recent_deploys": (
        {"product": TEXT, "time_range": TEXT},
        ["product", "time_range"],
        ["deploys.ts", "deploys.version", "deploys.actor", "deploys.host", "deploys.duration_s",
         "deploys.status", "deploys.commit", "deploys.rolled_back"],
    ),
    "get_incident_history": (
        {"query": TEXT, "product": TEXT, "time_range": TEXT, "limit": NUMBER},
        ["query"],
        ["incidents.id", "incidents.title", "incidents.opened_at", "incidents.closed_at",
         "incidents.severity", "incidents.resolution_summary"],
    ),
    "get_admin_info": (
        {"product": TEXT},
        ["product"],
        ["product", "version", "uptime_s", "health", "build", "config_hash", "feature_flags"],
    ),
    "propose_action": (
        {"action": TEXT, "product": TEXT, "params": OBJECT, "rationale": TEXT,
         "blast_radius": TEXT, "reversible": TRUTH},
        ["action", "product", "rationale"],
        ["proposal_id", "posted_to_chat", "awaits_confirmation"],
    ),
}  # fmt: skip


def schema_of(contract: ToolContract) -> Any:
    return input_schema(contract.input)


def paths(model: type[BaseModel], prefix: str = "", depth: int = 2) -> set[str]:
    """The fields of a result, and those of the objects in it."""
    found = {f"{prefix}{name}" for name in model.model_fields}
    for name, field in model.model_fields.items():
        for inner in inside(field.annotation) if depth > 1 else ():
            found |= paths(inner, f"{prefix}{name}.", depth - 1)
    return found


def inside(annotation: Any) -> set[type[BaseModel]]:
    """The models that an annotation holds, in lists and unions too."""
    own = (
        {annotation}
        if isinstance(annotation, type) and issubclass(annotation, BaseModel)
        else set()
    )
    return own.union(*(inside(part) for part in get_args(annotation)))


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_tool_accepts_its_documented_arguments(name: str) -> None:
    properties, required, _ = DOCUMENTED[name]
    schema = schema_of(CONTRACTS[name])
    assert {key: one["type"] for key, one in schema["properties"].items()} == properties
    assert schema["required"] == required


@pytest.mark.parametrize("name", DOCUMENTED)
def test_a_tool_returns_its_documented_fields(name: str) -> None:
    contract = CONTRACTS[name]
    wanted = set(DOCUMENTED[name][2])
    assert wanted <= paths(contract.output)
    allowed = {path.replace("[]", "").removesuffix("...") for path in contract.redaction}
    assert {path for path in wanted if not shown(path, allowed)} == set()


def shown(path: str, allowed: set[str]) -> bool:
    """Whether the allowlist lets it through, itself or the whole of what holds it."""
    return path in allowed or path.partition(".")[0] in allowed


def test_limits_and_levels_equal_the_documented_ones() -> None:
    logs = schema_of(CONTRACTS["get_logs"])["properties"]
    assert (logs["limit"]["minimum"], logs["limit"]["maximum"], logs["limit"]["default"]) == (
        1,
        100,
        100,
    )
    assert logs["level"]["enum"] == LEVELS
    history = schema_of(CONTRACTS["get_incident_history"])["properties"]["limit"]
    assert (history["minimum"], history["maximum"], history["default"]) == (1, 25, 10)
    assert schema_of(CONTRACTS["get_traces"])["properties"]["include_logs"]["default"] is False
    assert "maxLength" not in schema_of(CONTRACTS["get_metrics"])["properties"]["labels"]
