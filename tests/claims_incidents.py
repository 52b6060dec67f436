"""Two further incidents with their results: a growing queue, and a configuration rolled back."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import orjson

from bot.domain.turn_events import Evidence
from tests.claims_worlds import World

_BEGAN: Final = datetime(2026, 9, 3, 11, 17, 20, tzinfo=UTC)
_POD: Final = "courier-7b5d9c6f8d-h4kzq"
_TOLD: Final = (-190, -12, -6, -2, 0, 1, 3, 9, 15, 18, 19, 21, 22, 25, 40)  # minutes of statements


def _at(minutes: float) -> str:
    return f"{_BEGAN + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"


def _world(name: str, rows: Sequence[tuple[str, dict[str, Any], Any]]) -> World:
    """A row is a tool, its arguments and its result; one with an error failed."""
    evidence = tuple(
        Evidence(
            number, f"c{number}", f"core__{tool}", "", "error" not in value, 9, truncated=False,
            content=orjson.dumps(value).decode(),
        )
        for number, (tool, _, value) in enumerate(rows, 1)
    )  # fmt: skip
    asked = {f"c{number}": arguments for number, (_, arguments, _) in enumerate(rows, 1)}
    clocks = {
        f"{'m' if each < 0 else 'p'}{abs(each)}": f"{_BEGAN + timedelta(minutes=each):%H:%M}"
        for each in _TOLD
    }
    return World(name, evidence, asked, {"pod": _POD, **clocks})


def _shift(
    product: str, role: str, unit: str, usual: float, worst: float, signal: str, **more: Any
) -> dict[str, Any]:
    return {
        "product": product, "role": role, "signal": signal, "unit": unit, "usual": usual, "worst": worst,
        "last": round(worst * 0.97, 4), "direction": "up" if worst > usual else "down", "score": 38.0,
        "beyond_all_before": True, "since": _at(0), "since_before": False, "under_way": False,
        "requests": 22.0,
    } | more  # fmt: skip


def _sweep(
    shifts: Sequence[dict[str, Any]], within: Mapping[str, str], traffic: Mapping[str, float]
) -> dict[str, Any]:
    return {
        "range": f"{_at(-10)}/{_at(20)}", "baseline_from": _at(-130), "step_s": 60.0, "shifts": list(shifts),
        "within": dict(within), "too_short": {}, "least_before_s": 600.0, "comparable": {}, "standing": [],
        "gaps": [], "traffic": dict(traffic), "without": [], "requests": 0, "truncated": False,
    }  # fmt: skip


def _deploys(*rows: tuple[str, str, str, float, str]) -> dict[str, Any]:
    """A row is a product, its version, the one before, minutes and who deployed it."""
    deploys = [
        {
            "ts": _at(minutes), "product": product, "version": version, "previous_version": before,
            "actor": who, "duration_s": 77.0, "status": "ok", "commit": "e90d3fa", "rolled_back": False,
        }
        for product, version, before, minutes, who in rows
    ]  # fmt: skip
    return {
        "range": f"{_at(-350)}/{_at(30)}",
        "deploys": deploys,
        "truncated": False,
        "total_matches": len(deploys),
    }


def _pods(*rows: Sequence[str]) -> dict[str, Any]:
    columns = ["Name", "Ready", "Status", "Restarts", "Age"]
    return {"columns": columns, "rows": [list(row) for row in rows], "truncated": False}


def _span(
    service: str, operation: str, took_ms: int, own_ms: int, children: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    return {
        "span_id": f"{service}-1", "service": service, "operation": operation, "start_us": 5,
        "duration_us": took_ms * 1000, "self_us": own_ms * 1000, "children": list(children),
    }  # fmt: skip


def _kind(
    product: str, level: str, change: str, before: int, after: int, example: str, **more: Any
) -> dict[str, Any]:
    return {
        "product": product, "level": level, "change": change, "before": before, "after": after,
        "expected": float(before), "size": 20.0, "since": _at(0), "since_before": False, "example": example,
    } | more  # fmt: skip


def backlog() -> World:
    """A consumer loses its lease: its queue grows, one of its four pods runs out of memory."""
    kinds = [
        _kind("courier", "error", "new", 0, 412, "lease lost for partition 7: rebalance in progress", since=_at(1), hosts=["courier-2"]),
        _kind("courier", "warn", "grown", 20, 390, "commit took 4100 ms", hosts=["courier-2"]),
        _kind("mailroom", "error", "gone", 14, 0, "smtp relay greylisted us", since=_at(-40), until=_at(-9)),
    ]  # fmt: skip
    events = [
        {"ts": _at(3), "object": f"Pod/{_POD}", "type": "Warning", "reason": "OOMKilling", "message": "Memory cgroup out of memory: Killed process 1 (java)", "count": 6},
        {"ts": _at(4), "object": f"Pod/{_POD}", "type": "Warning", "reason": "BackOff", "message": "Back-off restarting failed container courier", "count": 17},
    ]  # fmt: skip
    consumed = _span(
        "courier", "consume", 14_160, 11_900,
        [_span("ledgerbot", "append", 2_180, 2_180), _span("mailroom", "deliver", 80, 80)],
    )  # fmt: skip
    usual = {
        "range": f"{_at(-10)}/{_at(20)}", "baseline_window": f"{_at(-1450)}/{_at(-10)}", "unit": "requests/s",
        "baseline_median": 208.0, "baseline_mean": 209.0, "n": 1400, "coverage": 0.99, "window_mean": 210.0,
        "window_median": 210.0, "window_max": 223.0, "relative_change": 0.01, "direction": "flat",
        "anomalous": False, "anomaly_count": 0, "max_z_score": 0.9, "first_anomaly_at": None, "samples": [],
    }  # fmt: skip
    return _world("backlog", [
        ("get_recent_deploys", {"product": "*"}, _deploys(
            ("ledgerbot", "v3.9.1", "v3.9.0", -12, "tamsin"), ("mailroom", "v12.0.4", "v12.0.3", -190, "ci"))),
        ("sweep_metrics", {}, _sweep(
            [_shift("courier", "queue", "", 140.0, 91250.0, "consumer_queue_depth"),
             _shift("courier", "latency", "seconds", 0.4, 12.6, "handler_duration_seconds_p95"),
             _shift("courier", "errors", "ratio", 0.002, 0.31, "handler_error_ratio"),
             _shift("ledgerbot", "cpu", "ratio", 0.34, 0.93, "cpu_utilization_ratio", since=_at(-2))],
            {"courier": "memory cpu", "ledgerbot": "errors latency memory traffic", "mailroom": "cpu errors latency memory traffic"},
            {"courier": 64.0, "ledgerbot": 9.5, "mailroom": 210.0})),
        ("error_patterns", {}, {"range": f"{_at(-10)}/{_at(20)}", "changes": kinds,
            "lines": {"courier": "800/2300", "mailroom": "410/402"}, "without": [], "truncated": False}),
        ("kubectl_get", {"kind": "pods", "selector": "app=courier"}, _pods(
            (_POD, "0/1", "CrashLoopBackOff", "6", "3h"), *((f"courier-7b5d9c6f8d-{one}", "1/1", "Running", "0", "3h")
                                                             for one in ("m2wbn", "p8xtc", "v5rjd")))),
        ("kubectl_events", {"kind": "pod", "name": _POD}, {"events": events, "truncated": False}),
        ("get_traces", {"request_id": "5f0c2d9be1"}, {"trace_id": "5f0c2d9be1", "duration_us": 14_200_000, "span_count": 4,
            "root": _span("portal", "POST /send", 14_200, 40, [consumed]), "errors": [], "truncated": False}),
        ("compare_to_baseline", {"product": "mailroom", "metric_name": "http_requests_per_second"}, usual),
        ("get_logs", {"product": "ledgerbot"}, {"error": "upstream: 503"}),
    ])  # fmt: skip


def configuration() -> World:
    """A release lost a key of its configuration, and was rolled back; a cache stays large."""
    over = {"last": 0.001, "until": _at(21)}
    ratios = ((-8, 0.001), (2, 0.39), (8, 0.42), (15, 0.4), (24, 0.001))
    lines = [
        {"ts": _at(minute), "level": "error", "host": f"beacon-{minute % 6 + 1}",
         "message": "config key tiles.ttl missing, refusing to serve"}
        for minute in (18, 16, 13, 11, 9, 7, 5, 3, 1)
    ]  # fmt: skip
    return _world("configuration", [
        ("get_recent_deploys", {"product": "*"}, _deploys(
            ("beacon", "v0.43.7", "v0.44.0", 19, "lindqvist"), ("beacon", "v0.44.0", "v0.43.7", -6, "okoro"))),
        ("sweep_metrics", {}, _sweep(
            [_shift("beacon", "errors", "ratio", 0.001, 0.42, "http_request_error_ratio", **over),
             _shift("beacon", "latency", "seconds", 0.15, 3.4, "http_request_duration_seconds_p99", last=0.16, until=_at(22)),
             _shift("cinder", "traffic", "per second", 310.0, 95.0, "http_requests_per_second", last=305.0, until=_at(22)),
             _shift("beacon-cache", "memory", "bytes", 1.2e9, 3.9e9, "process_resident_memory_bytes")],
            {"beacon": "cpu memory traffic", "cinder": "cpu errors latency memory", "beacon-cache": "cpu",
             "atlasmap": "cpu errors latency memory traffic"},
            {"beacon": 88.0, "cinder": 305.0, "atlasmap": 41.0})),
        ("get_metrics", {"product": "beacon", "metric_name": "http_request_error_ratio"}, {
            "range": f"{_at(-10)}/{_at(30)}", "step_s": 60.0, "unit": "ratio", "stats": {"min": 0.001, "max": 0.42, "mean": 0.21},
            "samples": [{"ts": _at(minute), "value": value} for minute, value in ratios], "truncated": False}),
        ("kubectl_get", {"kind": "pods", "selector": "app=beacon"}, _pods(
            *((f"beacon-{number}", "1/1", "Running", "0", "9h") for number in range(1, 7)))),
        ("sweep_traces", {}, {"traces_before": 66, "traces_after": 81, "shifts": [
            {"product": "beacon", "what": "failing", "operation": "GET /tiles", "callee": "", "before": 0.0, "after": 0.44, "n": 52},
            {"product": "beacon", "what": "own", "operation": "GET /tiles", "callee": "", "before": 22.0, "after": 940.0, "n": 52}]}),
        ("get_incident_history", {"query": "beacon"}, {"incidents": [
            {"id": "inc-221", "title": "beacon 500s after config change", "started_at": "2026-03-02T08:00:00Z",
             "resolution": "Reverted tiles.ttl"}], "total_matches": 1}),
        ("get_logs", {"product": "beacon", "time_range": "last 30m", "level": "error"}, {
            "range": f"{_at(-10)}/{_at(30)}", "lines": lines, "truncated": False}),
    ])  # fmt: skip
