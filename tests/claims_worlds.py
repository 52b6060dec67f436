"""Made-up incidents of several kinds, each with its results, for fabricated sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson

from bot.domain.turn_events import Evidence

_SHOP = ("basket", "billing", "catalogue", "delivery", "identity", "loyalty", "quotes", "tickets")
_STAFF = ("amara", "bjorn", "chiara", "dmitri", "esther")


@dataclass(frozen=True)
class World:
    name: str
    evidence: tuple[Evidence, ...]
    arguments: Mapping[str, Mapping[str, Any]]
    values: Mapping[str, Any]


class _Results:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.began = datetime(
            2026, 5, 12, self.random.randrange(2, 20), self.random.randrange(12, 45), 10, tzinfo=UTC
        )
        self.sick, self.calm, self.third = self.random.sample(_SHOP, 3)
        self.who, self.absent = self.random.sample(_STAFF, 2)
        self.rows: list[tuple[str, dict[str, Any], Any]] = []

    def at(self, minutes: float) -> str:
        return f"{self.began + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"

    def clock(self, minutes: float) -> str:
        return f"{self.began + timedelta(minutes=minutes):%H:%M}"

    def add(self, tool: str, arguments: dict[str, Any], value: Any) -> None:
        self.rows.append((tool, arguments, value))

    def world(self, name: str, **values: Any) -> World:
        evidence = tuple(
            Evidence(n, f"c{n}", f"core__{tool}", "", True, 9, truncated=False, content=orjson.dumps(value).decode())
            for n, (tool, _, value) in enumerate(self.rows, 1)
        )  # fmt: skip
        asked = {f"c{n}": arguments for n, (_, arguments, _) in enumerate(self.rows, 1)}
        told = {
            "sick": self.sick,
            "calm": self.calm,
            "third": self.third,
            "who": self.who,
            "absent": self.absent,
        }
        return World(name, evidence, asked, told | values)


def _shift(
    r: _Results, product: str, role: str, usual: float, worst: float, **more: Any
) -> dict[str, Any]:
    signals = {"latency": ("http_request_duration_seconds_p99", "seconds"), "errors": ("http_request_error_ratio", "ratio"),
               "traffic": ("http_requests_per_second", "per second"), "memory": ("process_resident_memory_bytes", "bytes"),
               "pool": ("db_connections_in_use_ratio", "ratio"), "cpu": ("cpu_utilization_ratio", "ratio")}  # fmt: skip
    signal, unit = signals[role]
    return {"product": product, "role": role, "signal": signal, "unit": unit, "usual": usual, "worst": worst, "last": round(worst * 0.96, 4),
            "direction": "up" if worst > usual else "down", "score": 41.5, "beyond_all_before": True, "since": r.at(0), "since_before": False,
            "under_way": False, "requests": 20.5} | more  # fmt: skip


def _sweep(
    r: _Results, shifts: Sequence[dict[str, Any]], within: Mapping[str, str]
) -> dict[str, Any]:
    return {"range": f"{r.at(-8)}/{r.at(22)}", "baseline_from": r.at(-128), "step_s": 60.0, "shifts": list(shifts), "within": dict(within),
            "too_short": {}, "least_before_s": 600.0, "comparable": {}, "standing": [], "gaps": [], "traffic": {r.sick: 20.5, r.calm: 71.0},
            "without": [], "requests": 0, "truncated": False}  # fmt: skip


def _deploy(
    r: _Results,
    product: str,
    version: str,
    before: str,
    minutes: float,
    who: str,
    *,
    back: bool = False,
) -> dict[str, Any]:
    return {"ts": r.at(minutes), "product": product, "version": version, "previous_version": before, "actor": who, "duration_s": 94.0,
            "status": "ok", "commit": "4be71d2", "rolled_back": back}  # fmt: skip


def release(seed: int) -> World:
    """A release slowed one product down; another was released after the onset and is calm."""
    r = _Results(seed)
    slow, usual = round(r.random.uniform(1.4, 3.2), 2), round(r.random.uniform(0.2, 0.34), 3)
    ratio, lines = round(r.random.uniform(0.05, 0.2), 3), r.random.randrange(31, 88)
    minor = r.random.randrange(4, 30)
    new, old, later = f"v5.{minor}.0", f"v5.{minor - 1}.2", f"v8.{minor}.1"
    r.add("get_recent_deploys", {"product": "*"}, {"range": f"{r.at(-340)}/{r.at(20)}", "deploys": [
        _deploy(r, r.calm, later, f"v8.{minor}.0", 6, r.who), _deploy(r, r.sick, new, old, -3, r.who)], "truncated": False, "total_matches": 2})  # fmt: skip
    r.add("sweep_metrics", {}, _sweep(r, [_shift(r, r.sick, "latency", usual, slow), _shift(r, r.sick, "errors", 0.004, ratio),
          _shift(r, r.third, "latency", usual, round(slow * 1.1, 2))],
          {r.sick: "cpu memory traffic", r.calm: "cpu errors latency memory traffic", r.third: "cpu errors memory"}))  # fmt: skip
    r.add("error_patterns", {}, {"range": f"{r.at(-8)}/{r.at(22)}", "changes": [
        {"product": r.sick, "level": "error", "change": "new", "before": 0, "after": lines, "expected": 0.0, "size": 30.0, "since": r.at(0),
         "since_before": False, "example": "deadline exceeded while collecting offers", "hosts": [f"{r.sick}-1", f"{r.sick}-2"]}],
         "lines": {r.sick: "120/160", r.calm: "80/81"}, "without": [], "truncated": False})  # fmt: skip
    r.add("kubectl_get", {"kind": "pods", "selector": f"app={r.sick}"}, {"columns": ["Name", "Ready", "Status", "Restarts", "Age"],
          "rows": [[f"{r.sick}-{n}", "1/1", "Running", "0", "25m"] for n in (1, 2, 3)], "truncated": False})  # fmt: skip
    r.add("sweep_traces", {}, {"traces_before": 70, "traces_after": 91, "shifts": [
          {"product": r.sick, "what": "own", "operation": "POST /offers", "callee": "", "before": 31.0, "after": 812.0, "n": 44}]})  # fmt: skip
    return r.world("release", slow=slow, usual=usual, ratio=ratio, lines=lines, new=new, old=old, later=later,
                   at=r.clock(0), went=r.clock(-3), later_at=r.clock(6), never=r.clock(171))  # fmt: skip


def crash(seed: int) -> World:
    """A node lost its kubelet: pods pend and crash, one product's memory grew."""
    r = _Results(seed)
    restarts = r.random.randrange(5, 19)
    pod, other = f"{r.sick}-6c9d8f7b45-q2w4e", f"{r.sick}-6c9d8f7b45-z8x7c"
    r.add("kubectl_get", {"kind": "pods", "selector": f"app={r.sick}"}, {"columns": ["Name", "Ready", "Status", "Restarts", "Age"],
          "rows": [[pod, "0/1", "CrashLoopBackOff", str(restarts), "31m"], [other, "1/1", "Running", "0", "4h"]], "truncated": False})  # fmt: skip
    r.add("sweep_cluster", {}, {"range": f"{r.at(-8)}/{r.at(22)}", "ill": [
          {"kind": "Node", "name": "worker-07", "product": "", "state": "NotReady", "mechanism": "node not ready", "detail": "Kubelet stopped posting node status."}],
          "warnings": [{"ts": r.at(2), "object": f"Pod/{pod}", "product": r.sick, "reason": "BackOff", "message": "Back-off restarting failed container",
                        "mechanism": "container crashes", "count": 12, "over": False}],
          "pods": {r.sick: "1 of 2 well", r.calm: "3 of 3 well"}, "nodes": "5 of 6 ready", "others_ill": 0, "requests": 3, "truncated": False})  # fmt: skip
    r.add("get_logs", {"product": r.sick, "time_range": "last 30m"}, {"range": f"{r.at(-8)}/{r.at(22)}", "lines": [
          {"ts": r.at(n), "level": "error", "host": pod, "message": "java.lang.OutOfMemoryError: Java heap space"} for n in (9, 6, 3)], "truncated": False})  # fmt: skip
    r.add("compare_to_baseline", {"product": r.sick, "metric_name": "process_resident_memory_bytes"}, {
          "range": f"{r.at(-8)}/{r.at(22)}", "baseline_window": f"{r.at(-1448)}/{r.at(-8)}", "unit": "bytes", "baseline_median": 4.0e8, "baseline_mean": 4.1e8,
          "n": 1400, "coverage": 0.99, "window_mean": 1.7e9, "window_median": 1.8e9, "window_max": 2.0e9, "relative_change": 3.5, "direction": "up",
          "anomalous": True, "anomaly_count": 20, "max_z_score": 28.0, "first_anomaly_at": r.at(0), "samples": []})  # fmt: skip
    r.add(
        "get_recent_deploys",
        {"product": r.sick},
        {
            "range": f"{r.at(-340)}/{r.at(20)}",
            "deploys": [],
            "truncated": False,
            "total_matches": 0,
        },
    )
    return r.world(
        "crash",
        pod=pod,
        other=other,
        restarts=restarts,
        at=r.clock(0),
        warned=r.clock(2),
        never=r.clock(199),
    )


def recovered(seed: int) -> World:
    """A full pool of connections; a rollback; latency is usual again, errors are not."""
    r = _Results(seed)
    slow, ratio, pool = (
        round(r.random.uniform(1.1, 2.9), 2),
        round(r.random.uniform(0.06, 0.22), 3),
        round(r.random.uniform(0.975, 0.999), 3),
    )
    r.add("sweep_metrics", {}, _sweep(r, [
          _shift(r, r.sick, "latency", 0.21, slow, last=0.212, until=r.at(14)), _shift(r, r.sick, "errors", 0.003, ratio),
          _shift(r, f"{r.sick}-db", "pool", 0.31, pool)],
          {r.sick: "cpu memory traffic", f"{r.sick}-db": "cpu memory", r.calm: "cpu errors latency memory traffic"}))  # fmt: skip
    r.add("get_recent_deploys", {"product": "*"}, {"range": f"{r.at(-340)}/{r.at(20)}", "deploys": [
          _deploy(r, r.sick, "v2.7.3", "v2.8.0", 11, r.who), _deploy(r, r.sick, "v2.8.0", "v2.7.3", -4, r.who, back=True)], "truncated": False, "total_matches": 2})  # fmt: skip
    r.add("get_traces", {"request_id": "0af7651916cd43dd"}, {"trace_id": "0af7651916cd43dd", "duration_us": 2_410_000, "span_count": 3,
          "root": {"span_id": "a", "service": "edge", "operation": "POST /pay", "start_us": 0, "duration_us": 2_410_000, "self_us": 10_000, "children": [
            {"span_id": "b", "service": r.sick, "operation": "pay", "start_us": 5, "duration_us": 2_400_000, "self_us": 300_000, "children": [
              {"span_id": "c", "service": f"{r.sick}-db", "operation": "UPDATE", "start_us": 9, "duration_us": 2_100_000, "self_us": 2_100_000, "children": []}]}]},
          "errors": [], "truncated": False})  # fmt: skip
    r.add("get_metrics", {"product": r.calm, "metric_name": "cpu_utilization_ratio"}, {"range": f"{r.at(-8)}/{r.at(22)}", "step_s": 60.0, "unit": "ratio",
          "stats": {"min": 0.41, "max": 0.58, "mean": 0.5}, "samples": [{"ts": r.at(m), "value": v} for m, v in ((0, 0.41), (8, 0.58), (16, 0.52))], "truncated": False})  # fmt: skip
    return r.world(
        "recovered",
        slow=slow,
        ratio=ratio,
        pool=pool,
        at=r.clock(0),
        back_at=r.clock(14),
        undone=r.clock(11),
        never=r.clock(200),
    )
