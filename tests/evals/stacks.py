"""One case for each kind of stack. `CASES` has them by name; `write` puts them into a folder."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from tests.evals.signals import NOW, Row, Stack, since

SET: Final = "simulated"


@dataclass(frozen=True)
class Told:
    """A stack with what is asked about it and what is right."""

    stack: Stack
    products: Sequence[str]
    asked: str
    culprit: str = ""  # empty: nothing is wrong
    words: Sequence[Sequence[str]] = ()
    documents: Mapping[str, JsonValue] = field(default_factory=dict)


def opentelemetry() -> Told:
    """A currency service turns slow and fails; its callers wait for it."""
    stack = Stack("opentelemetry")
    slow = {"frontend": 4.0, "cart": 1.0, "currency": 12.0, "shipping": 1.0}
    for name, times in slow.items():
        route = {"service_name": name, "http_request_method": "GET"}
        for status, usual, then in (("200", 20.0, 20.0), ("500", 0.01, 0.4 if times > 1 else 0.01)):
            stack.histogram(
                "http_server_request_duration_seconds",
                {**route, "http_response_status_code": status},
                since(14, usual, then * (6 if name == "currency" else 1)),
                since(14, 0.06, 0.06 * times),
            )
    errors = {"service_name": "currency"}
    stack.log(errors, "ERROR", "rates provider: connection reset after {n} ms", since(14, 0.05, 9))
    stack.log({"service_name": "frontend"}, "INFO", "GET /product/{n} 200", lambda _: 2.0)
    stack.log({"service_name": "cart"}, "INFO", "cart {n} stored", lambda _: 1.0)
    for before in range(58, 0, -3):
        own = 1.1 if before <= 14 else 0.05
        stack.request(
            before,
            [
                ("frontend", "GET /product", 0.05, False),
                ("currency", "Convert", own, before <= 14 and before % 2 == 0),
            ],
        )
        stack.request(
            before + 0.5, [("frontend", "GET /cart", 0.05, False), ("cart", "Get", 0.04, False)]
        )
    return Told(stack, tuple(slow), "why is the frontend slow?", "currency")


def kubernetes() -> Told:
    """Nothing but kube-state-metrics, cAdvisor and the API: a worker is killed for its memory."""
    stack = Stack("kubernetes")
    pods: list[JsonValue] = []
    for name in ("web", "api", "worker", "redis"):
        ill, pod = name == "worker", f"{name}-7d9c8b6f5d-x2x4z"
        at = {"namespace": "shop", "pod": pod, "container": name}
        stack.counter("container_cpu_usage_seconds_total", at, since(18, 0.2, 0.25 if ill else 0.2))
        stack.gauge(
            "container_memory_working_set_bytes", at, since(18, 2e8, 5e8 if ill else 2e8), 0.02
        )
        restarts = since(16, 0.0, 0.012 if ill else 0.0)
        stack.counter("kube_pod_container_status_restarts_total", at, restarts, 0.0)
        waits = {**at, "reason": "CrashLoopBackOff"}
        waiting = since(12, 0.0, 1.0 if ill else 0.0)
        stack.gauge("kube_pod_container_status_waiting_reason", waits, waiting, 0.0)
        missing = since(16, 0.0, 1.0 if ill else 0.0)
        of = {"namespace": "shop", "deployment": name}
        stack.gauge("kube_deployment_status_replicas_unavailable", of, missing, 0.0)
        pods.append(_pod(name, pod, ill=ill))
    said = (NOW - timedelta(minutes=2)).isoformat()
    event: JsonValue = {
        "type": "Warning",
        "reason": "BackOff",
        "message": "Back-off restarting failed container worker",
        "count": 21,
        "lastTimestamp": said,
        "metadata": {"namespace": "shop", "name": "worker.1"},
        "involvedObject": {"kind": "Pod", "name": "worker-7d9c8b6f5d-x2x4z", "namespace": "shop"},
    }
    return Told(
        stack,
        ("web", "api", "worker", "redis"),
        "jobs are not done since 13:45, what is wrong with the worker?",
        "worker",
        [["OOMKilled", "memory"]],
        {"kubernetes": {"objects": pods, "events": [event]}},
    )


def _pod(name: str, pod: str, *, ill: bool) -> JsonValue:
    waiting: JsonValue = {"waiting": {"reason": "CrashLoopBackOff"}}
    killed: JsonValue = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    state: Row = {
        "name": name,
        "ready": not ill,
        "restartCount": 8 if ill else 0,
        "state": waiting if ill else {"running": {"startedAt": "2026-11-18T06:00:00Z"}},
    }
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": pod,
            "namespace": "shop",
            "labels": {"app": name},
            "creationTimestamp": "2026-11-18T06:00:00Z",
        },
        "spec": {"containers": [{"name": name, "image": f"shop/{name}:4"}]},
        "status": {
            "phase": "Running",
            "containerStatuses": [{**state, "lastState": killed} if ill else state],
        },
    }


def metrics_only() -> Told:
    """A shop with Prometheus clients and nothing else: the payments' connection pool is used up."""
    stack = Stack("metrics-only")
    slow = {"shop": 5.0, "basket": 1.0, "payments": 9.0, "stock": 1.0}
    for name, times in slow.items():
        of = {"service": name, "env": "prod"}
        stack.histogram(
            "http_request_duration_seconds",
            of,
            lambda _: 25.0,
            since(11, 0.08, 0.08 * times),
        )
        for code, usual, then in (("200", 25.0, 25.0), ("503", 0.02, 1.0 if times > 1 else 0.02)):
            stack.counter("http_requests_total", {**of, "code": code}, since(11, usual, then))
        used = since(12, 6.0, 19.6 if name == "payments" else 6.0)
        stack.gauge("hikaricp_connections_active", {**of, "pool": "main"}, used, 0.01)
        stack.gauge("hikaricp_connections_max", {**of, "pool": "main"}, lambda _: 20.0, 0.0)
    return Told(
        stack, tuple(slow), "why does the shop fail?", "payments", [["pool", "connections"]]
    )


def logs_only() -> Told:
    """Log lines and nothing else: orders cannot reach its broker any more."""
    stack = Stack("logs-only", length=120)
    for name, said in (("gateway", "POST /orders {n} 201"), ("mailer", "mail {n} sent")):
        stack.log({"service": name}, "info", said, lambda _: 3.0)
        stack.log({"service": name}, "warn", "slow answer, {n} ms", lambda _: 0.1)
    of = {"service": "orders"}
    stack.log(of, "info", "order {n} accepted", since(12, 3.0, 0.3))
    stack.log(
        of, "error", "BrokerNotAvailableException: no broker in 30 s, order {n}", since(12, 0, 8)
    )
    return Told(stack, ("gateway", "orders", "mailer"), "why do orders get lost?", "orders")


def noisy_day() -> Told:
    """Nothing is wrong: a day's rhythm, noise, a nightly spike, warnings as always, a deploy."""
    stack = Stack("noisy-day", length=24 * 60, every=5)

    def day(before: float) -> float:
        return 20 + 12 * math.sin((before + 300) / 1440 * 2 * math.pi)

    def nightly(before: float) -> float:
        return 0.4 if 680 < before < 700 else 0.07

    for name in ("shop", "basket", "payments"):
        of = {"service": name, "env": "prod"}
        stack.counter("http_requests_total", {**of, "code": "200"}, day, 0.08)
        stack.counter("http_requests_total", {**of, "code": "500"}, lambda _: 0.02, 0.5)
        stack.gauge("http_request_duration_seconds_p99", of, nightly, 0.12)
        stack.counter("process_cpu_seconds_total", of, lambda before: day(before) / 60, 0.08)
        stack.log(of, "info", "GET /item/{n} 200", lambda _: 0.5)
        stack.log(of, "warn", "retrying request {n}", lambda _: 0.2)
    deployed = _deploy("basket", "5.1.0", 95, "5.0.9")
    asked = "is anything wrong with the shop?"
    return Told(stack, ("shop", "basket", "payments"), asked, documents={"deploys": deployed})


def red_herring() -> Told:
    """Search was deployed just before and logs as always; the stock's database is what is slow."""
    stack = Stack("red-herring")
    slow = {"shop": 3.0, "search": 1.0, "stock": 8.0, "reviews": 1.0}
    for name, times in slow.items():
        of = {"service": name, "env": "prod"}
        duration = since(10, 0.09, 0.09 * times)
        stack.histogram("http_request_duration_seconds", of, lambda _: 25.0, duration)
        stack.counter("http_requests_total", {**of, "code": "200"}, lambda _: 25.0)
        stack.counter("process_cpu_seconds_total", of, lambda _: 0.3)
        stack.log(of, "info", "GET /{n} 200", lambda _: 1.0)
    stack.log({"service": "search"}, "error", "index shard {n} is stale", lambda _: 0.4)
    stack.log(
        {"service": "stock"}, "error", "canceling statement due to lock timeout, item {n}",
        since(10, 0.0, 4.0),
    )  # fmt: skip
    documents: dict[str, JsonValue] = {
        "deploys": _deploy("search", "2.8.0", 17, "2.7.3"),
        "graph": {"edges": [["shop", "search"], ["shop", "stock"], ["shop", "reviews"]]},
    }
    asked = "why is the shop slow since the deploy?"
    return Told(stack, tuple(slow), asked, "stock", [["lock"]], documents)


def _deploy(product: str, version: str, before: int, previous: str) -> JsonValue:
    at = (NOW - timedelta(minutes=before)).isoformat()
    row: Row = {"product": product, "version": version, "at": at, "previous_version": previous}
    return {"deploys": [row]}


CASES: Final[Mapping[str, Callable[[], Told]]] = {
    "opentelemetry": opentelemetry,
    "kubernetes": kubernetes,
    "metrics-only": metrics_only,
    "logs-only": logs_only,
    "noisy-day": noisy_day,
    "red-herring": red_herring,
}


def write(folder: Path, name: str) -> Path:
    """The case of that name as a folder of files; where it is."""
    told = CASES[name]()
    place = folder / SET / name
    place.mkdir(parents=True)
    about: Row = {
        "id": f"{SET}-{name}",
        "set": SET,
        "asked": told.asked,
        "now": NOW.isoformat(),
        "products": list(told.products),
    }
    truth: Row = {
        "healthy": not told.culprit,
        "culprit": [told.culprit] if told.culprit else [],
        "kind": name,
        "mechanism_words": [list(group) for group in told.words],
    }
    for stem, document in {"case": about, "truth": truth, **told.documents}.items():
        (place / f"{stem}.json").write_text(json.dumps(document, separators=(",", ":")))
    rows = {"metrics": told.stack.series, "logs": told.stack.lines, "traces": told.stack.spans}
    for stem, lines in rows.items():
        if lines:
            text = "\n".join(json.dumps(line, separators=(",", ":")) for line in lines)
            (place / f"{stem}.ndjson").write_text(text)
    return place
