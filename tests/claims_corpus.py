"""Generated answers over generated results: honest sentences, and fabricated ones by kind."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import orjson

from bot.domain.turn_events import Evidence

SEEDS = range(16)
_PRODUCTS = ("checkout", "payments", "orders", "ledger", "search", "pricing", "shipping")
_PEOPLE = ("mira", "jonas", "kofi", "ines")


@dataclass(frozen=True)
class Said:
    """One sentence over the results of its world. `kind`: how it was made up; empty if honest."""

    kind: str
    world: str
    text: str
    evidence: tuple[Evidence, ...]
    arguments: Mapping[str, Mapping[str, Any]]


class Incident:
    """A made-up incident and what each tool returned of it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.bad, self.well, self.other = self.random.sample(_PRODUCTS, 3)
        self.who, self.nobody = self.random.sample(_PEOPLE, 2)
        self.began = datetime(
            2026, 4, 7, self.random.randrange(1, 22), self.random.randrange(10, 50), 20, tzinfo=UTC
        )
        self.deployed = self.began - timedelta(minutes=2)
        minor = self.random.randrange(2, 30)
        self.version, self.previous = f"v3.{minor}.0", f"v3.{minor - 1}.4"
        self.usual = round(self.random.uniform(0.12, 0.4), 4)
        self.slow = round(self.usual * self.random.uniform(4, 9), 3)
        self.wrong_ratio = round(self.random.uniform(0.03, 0.2), 4)
        self.pool = round(self.random.uniform(0.93, 0.999), 3)
        self.took_ms = self.random.randrange(700, 2900)
        self.lines = self.random.randrange(4, 9)
        self.at = f"{self.began:%H:%M}"
        self.went = f"{self.deployed:%H:%M}"
        self.never = f"{self.began + timedelta(hours=3, minutes=7):%H:%M}"
        self.rows: list[tuple[str, dict[str, Any], Any, bool, str]] = [
            ("get_recent_deploys", {"product": "*"}, self._deploys(), True, "2 deploys, last 6h"),
            ("compare_to_baseline", self._of(self.bad, "http_request_duration_seconds_p99"), self._compared("up", self.usual, self.slow, "seconds"), True, "p99"),
            ("compare_to_baseline", self._of(self.bad, "http_request_error_ratio"), self._compared("up", 0.0041, self.wrong_ratio, "ratio"), True, "errors"),
            ("get_logs", {"product": self.bad}, self._logs(), True, f"{self.lines} error lines, last 30m"),
            ("get_traces", {"request_id": "6b027d7b778b00e4"}, self._trace(), True, "3 spans"),
            ("compare_to_baseline", self._of(self.well, "http_request_duration_seconds_p99"), self._compared("flat", 0.051, 0.053, "seconds"), True, "within baseline"),
            ("get_metrics", self._of(f"{self.bad}-db", "db_connections_in_use_ratio"), self._metrics(), True, "30 points"),
            ("kubectl_get", {"kind": "pods"}, self._pods(), True, "3 pods"),
            ("get_logs", {"product": self.other}, {"error": "upstream: 503"}, False, ""),
            ("kubectl_events", {"kind": "deployment", "name": self.bad}, self._events(), True, "1 event"),
            ("compare_to_baseline", self._of(self.other, "http_requests_per_second"), self._compared("down", 412.0, 97.0, "requests/s"), True, "0.2x"),
            ("compare_to_baseline", self._of(f"{self.other}-db", "cpu_utilization_ratio"), self._empty(), True, "no data"),
            ("sweep_metrics", {}, self._swept(), True, "3 products moved"),
            ("sweep_traces", {}, self._changed(), True, "2 operations changed"),
            ("error_patterns", {}, self._patterns(), True, "1 new kind of errors, 3 changes"),
        ]  # fmt: skip

    @staticmethod
    def _of(product: str, metric: str) -> dict[str, Any]:
        return {"product": product, "metric_name": metric, "time_range": "last 30m"}

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The numbered results."""
        return tuple(
            Evidence(n, f"c{n}", f"core__{tool}", summary, ok, 20, truncated=False, content=orjson.dumps(value).decode())
            for n, (tool, _, value, ok, summary) in enumerate(self.rows, 1)
        )  # fmt: skip

    @property
    def arguments(self) -> dict[str, dict[str, Any]]:
        return {f"c{n}": asked for n, (_, asked, _, _, _) in enumerate(self.rows, 1)}

    def _stamp(self, minutes: float) -> str:
        return f"{self.began + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"

    def _deploys(self) -> dict[str, Any]:
        return {
            "range": f"{self._stamp(-335)}/{self._stamp(25)}",
            "deploys": [
                {"ts": self._stamp(-2), "product": self.bad, "version": self.version, "previous_version": self.previous,
                 "actor": self.who, "duration_s": 118.0, "status": "ok", "commit": "9f2ab17", "rolled_back": False},
                {"ts": self._stamp(-61), "product": self.well, "version": "v1.19.3", "previous_version": "v1.19.2",
                 "actor": self.who, "duration_s": 74.0, "status": "ok", "commit": "c41d09e", "rolled_back": False},
            ],
            "truncated": False, "total_matches": 2,
        }  # fmt: skip

    def _compared(self, way: str, usual: float, now: float, unit: str) -> dict[str, Any]:
        odd = way != "flat"
        return {
            "range": f"{self._stamp(-5)}/{self._stamp(25)}", "baseline_window": f"{self._stamp(-1465)}/{self._stamp(-25)}",
            "unit": unit, "baseline_median": usual, "baseline_mean": usual, "n": 1400, "coverage": 0.972,
            "window_median": now, "window_max": now, "relative_change": round(now / usual - 1, 3), "direction": way,
            "anomalous": odd, "anomaly_count": 24 if odd else 0, "max_z_score": 71.3 if odd else 0.4,
            **({"first_anomaly_at": self._stamp(0)} if odd else {}),
            "samples": [{"ts": self._stamp(m), "value": now, "anomalous": odd} for m in (3, 9, 14)],
        }  # fmt: skip

    def _empty(self) -> dict[str, Any]:
        return {"range": f"{self._stamp(-5)}/{self._stamp(25)}", "baseline_window": f"{self._stamp(-1465)}/{self._stamp(-25)}",
                "n": 0, "coverage": 0.0, "anomalous": False, "anomaly_count": 0, "samples": [], "notes": ["no data in the time range"]}  # fmt: skip

    def _swept(self) -> dict[str, Any]:
        """Each row in a unit of its own."""

        def row(product: str, role: str, unit: str, usual: float, worst: float) -> dict[str, Any]:
            return {"product": product, "role": role, "signal": f"{role}_signal", "unit": unit, "usual": usual, "worst": worst,
                    "last": round(worst * 0.93, 4), "direction": "up", "score": 34.7, "since": self._stamp(0), "requests": 10.5}  # fmt: skip

        return {
            "range": f"{self._stamp(-5)}/{self._stamp(25)}", "step_s": 60.0,
            "shifts": [row(self.bad, "latency", "seconds", self.usual, self.slow), row(self.bad, "errors", "ratio", 0.0045, self.wrong_ratio),
                       row(f"{self.bad}-db", "pool", "ratio", 0.21, self.pool), row(self.well, "memory", "bytes", 4.1e8, 1.734e9)],
            "within": {self.bad: "cpu memory", self.well: "errors latency", self.other: "errors latency traffic"},
            "traffic": {self.bad: 10.5, self.well: 88.25, self.other: 412.5},
        }  # fmt: skip

    def _patterns(self) -> dict[str, Any]:
        """One product's are new, one's came more often, and one's come no more."""

        def row(
            product: str, level: str, change: str, before: int, after: int, text: str, minutes: int
        ) -> dict[str, Any]:
            return {"product": product, "level": level, "change": change, "before": before, "after": after, "expected": before / 2,
                    "size": 9.5, "since": self._stamp(minutes), "example": text}  # fmt: skip

        refused = {"names": [self.well], "hosts": [f"{self.bad}-1"]}
        return {
            "range": f"{self._stamp(-5)}/{self._stamp(25)}",
            "changes": [
                {**row(self.bad, "error", "new", 0, 240 + self.lines, f"no answer from {self.well} within 750 ms", 0), **refused},
                row(self.well, "warn", "grown", 31, 163, "retrying", 3),
                row(self.other, "error", "gone", 57, 0, "cache is cold", -31),
            ],
            "lines": {self.bad: "1840/1911", self.well: "902/1034", self.other: "611/380"}, "without": [],
        }  # fmt: skip

    def _changed(self) -> dict[str, Any]:
        return {"traces_before": 62, "traces_after": 87, "shifts": [
            {"product": self.bad, "what": "failing", "operation": "POST /buy", "callee": "", "before": 0.004, "after": self.wrong_ratio, "n": 40},
            {"product": self.bad, "what": "own", "operation": "POST /buy", "callee": "", "before": 35.1, "after": float(self.took_ms), "n": 40},
        ]}  # fmt: skip

    def _logs(self) -> dict[str, Any]:
        said = orjson.dumps(
            {
                "msg": "request failed",
                "error": "deadline exceeded within 3000 ms",
                "duration_ms": self.took_ms,
            }
        ).decode()
        return {
            "range": f"{self._stamp(-5)}/{self._stamp(25)}",
            "lines": [{"ts": self._stamp(n), "level": "error", "host": f"{self.bad}-{n % 3 + 1}", "message": said} for n in range(self.lines)],
        }  # fmt: skip

    def _trace(self) -> dict[str, Any]:
        own = self.took_ms * 1000
        inner = {"span_id": "b2", "service": self.bad, "operation": "POST /v1/orders", "start_us": 900, "duration_us": own,
                 "self_us": own - 90_000, "tags": {"host": f"{self.bad}-2"},
                 "children": [{"span_id": "c3", "service": self.well, "operation": "GET /q", "start_us": 1200, "duration_us": 90_000}]}  # fmt: skip
        return {"trace_id": "6b027d7b778b00e4", "duration_us": own + 6_000, "span_count": 3,
                "root": {"span_id": "a1", "service": "edge", "operation": "POST /buy", "start_us": 0, "duration_us": own + 6_000,
                         "self_us": 6_000, "children": [inner]}, "errors": [], "truncated": False}  # fmt: skip

    def _metrics(self) -> dict[str, Any]:
        low = round(self.pool - 0.5, 3)
        return {
            "range": f"{self._stamp(-5)}/{self._stamp(25)}", "step_s": 60.0, "unit": "ratio",
            "stats": {"min": low, "max": self.pool, "mean": round(self.pool - 0.2, 3)},
            "samples": [{"ts": self._stamp(m), "value": low if m < 8 else self.pool} for m in range(0, 24, 2)], "truncated": False,
        }  # fmt: skip

    def _pods(self) -> dict[str, Any]:
        rows = [
            [f"{self.bad}-7d9f8b6c5-{tail}", "0/1", "CrashLoopBackOff", "14", "25m"]
            for tail in ("x2x4z", "k8l2p", "m4n7q")
        ]
        return {
            "columns": ["Name", "Ready", "Status", "Restarts", "Age"],
            "rows": rows,
            "truncated": False,
        }

    def _events(self) -> dict[str, Any]:
        return {"events": [{"ts": self._stamp(1), "object": f"Deployment/{self.bad}", "type": "Warning", "reason": "BackOff",
                            "message": "Back-off restarting failed container"}], "truncated": False}  # fmt: skip


def _honest(i: Incident) -> Iterator[str]:
    times = i.slow / i.usual
    yield f"{i.version} of {i.bad} went out at {i.went} UTC, replacing {i.previous} [E1]."
    yield f"{i.who} deployed {i.bad} {i.version} at {i.went} UTC, and 2 deploys were made in all [E1]."
    yield f"**p99 latency of {i.bad} rose to {i.slow:.2g} s** (normally {i.usual:.2g} s) since {i.at} UTC [E2]."
    yield f"p99 is up from {i.usual * 1000:.0f} ms to {i.slow * 1000:.0f} ms, about {times:.1f}x its baseline [E2]."
    yield f"The latency of {i.bad} left its baseline at {i.at}, with a z-score of 71.3 [E2]."
    yield f"{i.wrong_ratio * 100:.1f} % of requests fail, normally 0.41 % [E3]."
    yield f"The error ratio climbed to {i.wrong_ratio:.3g} [E3]. It began at {i.at} UTC."
    yield f"Errors rose 2 minutes after the deploy of {i.bad} [E1] [E3]."
    yield f"{i.lines} error lines say `deadline exceeded within 3000 ms` on {i.bad}-1 and {i.bad}-2 [E4]."
    yield f"One request took {i.took_ms} ms, or {i.took_ms / 1000:.1f} s [E4]."
    yield f"Most of the time is spent in {i.bad} itself, on {i.bad}-2 [E5]."
    yield f"A trace shows {(i.took_ms - 90) / 1000:.2f} s in {i.bad} and 90 ms in {i.well} [E5]."
    yield f"{i.well} is not affected: its p99 stayed within its baseline at 53 ms [E6]."
    yield f"The latency of {i.well} did not rise [E6], so {i.bad} is slow on its own [E2]."
    yield f"Connections in use on {i.bad}-db grew to {i.pool * 100:.0f} % [E7]."
    yield "All 3 pods are in CrashLoopBackOff, with 14 restarts each [E8]."
    yield f"`{i.bad}-7d9f8b6c5-x2x4z` is crashing, 25m old [E8]."
    yield f"The logs of {i.other} could not be read: the call failed with 503 [E9]."
    yield f"Kubernetes reports BackOff for {i.bad} [E10]."
    yield f"Traffic to {i.other} dropped to 97 rps, usually 412 rps [E11]."
    yield f"There is no data for {i.other}-db, so its state is not established [E12]."
    yield f"The deploy of {i.bad} {i.version} is the most likely cause [E1] [E2]."
    yield f"Next: consider rolling {i.bad} back to {i.previous} [E1]; it takes 2 minutes."
    yield f"p99 latency rose to {i.slow:.2g} s at {i.at} UTC (normally {i.usual:.2g} s) [E13]."
    yield f"{i.wrong_ratio * 100:.2g} % of requests fail since {i.at} UTC (normally 0.45 %) [E13]."
    yield f"The pool of {i.bad}-db is {i.pool * 100:.1f} % full, normally 21 % [E13]."
    yield f"Memory of {i.well} rose to 1.7 GB at {i.at} UTC (normally 410 MB) [E13]."
    yield f"{i.wrong_ratio * 100:.2g} % of POST buy of {i.bad} fail (normally 0.4 %) [E14]."
    yield f"{i.bad} itself spends {i.took_ms / 1000:.2g} s in POST buy (normally 35 ms) [E14]."
    yield f"`{i.bad}` is slow: its p99 rose to {i.slow:.2g} s, while {i.other} is within its usual [E13]."
    yield f"The latency of {i.well} is normal, its memory rose to 1.7 GB [E13]."
    yield f"{i.bad} gets 10.5 requests a second, {i.other} 412.5 [E13]."
    yield f"{i.bad}'s pool is {i.pool * 100:.1f} % full, on {i.bad}-db [E13]."
    yield f"Errors of {i.bad} rose since {i.at} UTC: {240 + i.lines} new lines, naming {i.well} [E15]."
    yield f"`{i.bad}`'s errors mention `{i.well}`: {240 + i.lines} new error lines, such as `no answer within 750 ms` [E15]."
    yield f"Warnings of {i.well} grew from 31 to 163, so {i.bad} is slow [E13] [E15]."
    yield f"{i.other}'s errors stopped: 57 before, none since; nothing is wrong with {i.other} [E15]."
    yield f"Failures of {i.bad} went up [E14]. The share is {i.wrong_ratio * 100:.2g} % [E14]."
    yield "Could you tell me which region is affected?"


def _fabricated(i: Incident) -> Iterator[tuple[str, str]]:
    off = i.random.uniform(2.5, 6.0)
    yield "figure", f"p99 rose to {i.slow * off:.2f} s [E2]."
    yield "figure", f"{min(99.0, i.wrong_ratio * 100 * off + 11):.1f} % of requests fail [E3]."
    yield "figure", f"It affects {i.random.randrange(10_000, 90_000):,} users [E4]."
    yield "figure", f"`latency = {i.slow * 100 + 7:.1f} ms` [E2]."
    yield "figure", f"The trace lasted {i.took_ms + 431} ms [E5]."
    yield "figure", f"{i.lines + 31} error lines were logged [E4]."
    yield "figure of another result", f"p99 is at {i.slow:.3g} s [E6]."
    yield "figure of another result", f"The pool is {i.pool * 100:.1f} % full [E3]."
    yield "host", f"The errors come from {i.bad}-9 [E4]."
    yield "host", f"Node ip-10-3-7-{i.random.randrange(2, 99)} is out of memory [E8]."
    yield "pod", f"`{i.bad}-5c6d7e8f9-zzz9z` is in CrashLoopBackOff [E8]."
    yield "version", f"v9.{i.random.randrange(40, 99)}.1 of {i.bad} went out at {i.went} UTC [E1]."
    yield "version", f"Version 7.{i.random.randrange(40, 99)}.2 broke it [E1]."
    yield "product", f"The deploy of {i.other} caused it [E1]."
    yield "product", f"The latency of {i.other} is above its baseline [E2]."
    yield "product", "The logs of billing-gateway show the same errors [E4]."
    yield "person", f"{i.bad} was deployed by {i.nobody} [E1]."
    yield "time", f"Latency rose at {i.never} UTC [E2]."
    yield "time", f"{i.version} was deployed at {i.never} [E1]."
    yield "direction", f"The latency of {i.bad} fell [E2]."
    yield "direction", f"p99 of {i.bad} is within its baseline [E2]."
    yield "direction", "The error ratio is normal [E3]."
    yield "direction", f"{i.well} slowed down: its latency rose as well [E6]."
    yield "direction", f"Traffic to {i.other} increased [E11]."
    yield "direction", f"Connections in use on {i.bad}-db fell [E7]."
    yield "direction", f"p99 fell from {i.usual:.3g} s to {i.slow:.3g} s [E2]."
    yield "direction", "All 3 pods are running and ready [E8]."
    yield "direction", f"{i.previous} replaced {i.version} at {i.went} [E1]."
    yield "direction", f"Most of the time is spent in {i.well} [E5]."
    yield "direction", "There were no deploys in that time [E1]."
    yield "failed call", f"The logs of {i.other} show no errors [E9]."
    yield "failed call", f"{i.other} is healthy [E9]."
    yield "missing call", f"The deploy of {i.bad} is to blame [E41]."
    yield "missing call", f"p99 is {i.slow:.2g} s [E2, E77]."
    yield "no data", f"{i.other}-db is saturated [E12]."
    # Not a percentage of what is none, nor one that no ratio rounds to.
    yield "percentage", f"{i.slow * 100:.4g} % of requests fail [E13]."
    yield "percentage", f"{i.wrong_ratio:.3g} % of requests fail [E13]."
    yield "percentage", f"{i.wrong_ratio * 100 + 31:.1f} % of requests fail [E13]."
    yield (
        "percentage",
        f"{i.wrong_ratio * 100:.2g} % of requests fail (normally {i.wrong_ratio * 100:.2g} %) [E13].",
    )
    yield "percentage", f"{i.wrong_ratio * 10:.3g} % of POST buy fail [E14]."
    yield "percentage", "34.7 % of requests fail [E13]."
    yield "unit", f"p99 latency rose to {i.slow:.3g} ms [E13]."
    yield "unit", "Memory rose to 1.7 MB [E13]."
    yield "unit", f"{i.bad} itself spends {i.took_ms} s in POST buy [E14]."
    yield "unit", f"p99 rose to {i.slow:.3g} ms [E2]."
    yield "unit", f"p99 is {i.slow:.3g} minutes [E2]."
    yield "unit", f"{i.wrong_ratio:.3g} % of requests fail [E3]."


def _of_another_product(i: Incident) -> Iterator[tuple[str, str]]:
    kind = "another product's"
    yield kind, f"p99 of {i.well} rose to {i.slow:.3g} s [E13]."
    yield kind, f"{i.wrong_ratio * 100:.3g} % of requests to {i.other} fail [E13]."
    yield kind, f"The pool of {i.well} is {i.pool * 100:.1f} % full [E13]."
    yield kind, f"Memory of {i.bad} is at 1.7 GB [E13]."
    yield kind, f"{i.bad} gets 88.25 requests a second [E13]."
    yield kind, f"`{i.well}` logged {240 + i.lines} new error lines [E15]."
    yield kind, f"{i.bad} logged 163 warnings, before 31 [E15]."
    yield kind, f"{i.other} waits 750 ms for an answer [E15]."
    yield kind, f"Errors of {i.bad} come since {i.began + timedelta(minutes=3):%H:%M} UTC [E15]."
    yield kind, f"{i.well} is slow since {i.at} UTC and logged 1911 lines [E15]."
    kind = "direction of a row"
    yield kind, f"The latency of {i.bad} fell [E13]."
    yield kind, f"Errors of {i.bad} are normal [E13]."
    yield kind, f"{i.bad} is fine [E13]."
    yield kind, f"Memory of {i.well} dropped at {i.at} UTC [E13]."
    yield kind, f"The latency of {i.other} rose at {i.at} UTC [E13]."
    yield kind, f"{i.well} is slower: its latency increased [E13]."
    yield kind, f"Connections in use on {i.bad}-db fell [E13]."
    yield kind, f"Failures of {i.bad} went down [E14]."
    yield kind, f"{i.bad} got faster: its latency fell [E14]."
    yield kind, f"Errors of {i.bad} declined [E15]."
    yield kind, f"Errors of {i.other} increased [E15]."
    yield kind, f"Errors of {i.bad} are as usual [E13] [E15]."


def _without_tools(i: Incident) -> Iterator[tuple[str, str]]:
    yield "no tools", f"The deploy of {i.bad} caused the slow requests."
    yield "no tools", f"{i.bad} is slow because its database is saturated."
    yield "no tools", f"p99 is {i.slow:.2g} s."
    yield "no tools", f"{i.bad}-db was down at {i.at} UTC."


def honest() -> list[Said]:
    """More than 200 honest sentences."""
    worlds = [(seed, Incident(seed)) for seed in SEEDS]
    return [
        Said("", f"h{n}", text, i.evidence, i.arguments) for n, i in worlds for text in _honest(i)
    ]


def fabrications() -> list[Said]:
    """More than 200 fabricated ones, by kind."""
    found: list[Said] = []
    for n, i in ((seed, Incident(seed)) for seed in SEEDS):
        evidence, asked = i.evidence, i.arguments
        made_up = [*_fabricated(i), *_of_another_product(i)]
        found += [Said(kind, f"f{n}", text, evidence, asked) for kind, text in made_up]
        found += [Said(kind, f"n{n}", text, (), {}) for kind, text in _without_tools(i)]
    return found
