"""What the product counts, as Prometheus metrics. Every label has a bounded set of values.

Names a model or an outsider can make up become `other` once a label has `MAX_VALUES` values.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample

from adapters.llm.messages import Usage
from bot.domain.tool_status import ToolHealth
from tools.records import ToolInvocationRecord

MAX_VALUES: Final = 200
MAX_VALUE_CHARS: Final = 80
OTHER: Final = "other"
# Seconds. The tool classes' defaults and ceilings are 5, 10, 30, 60 and 300 s.
TRANSLATION_BUCKETS_S: Final = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.1,
    1.0,
)
ACKNOWLEDGE_BUCKETS_S: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
TOOL_BUCKETS_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
# As the semantic conventions advise for these two (gen-ai-metrics).
MODEL_BUCKETS_S: Final = (
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
)  # fmt: skip
MODEL_BUCKETS_TOKENS: Final = tuple(4**power for power in range(14))


class Metrics:
    """The process's counters in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._seen: defaultdict[str, set[str]] = defaultdict(set)
        self._turns = self._counter("turns", "Turns by how they ended.", "end")
        self._rounds = self._counter(
            "rounds", "Rounds by provider and outcome.", "provider", "outcome"
        )
        self._tool_calls = self._counter(
            "tool_calls", "Tool calls by tool and outcome.", "tool", "outcome"
        )
        self._tool_seconds = self._histogram(
            "tool_seconds", "Wall time of tool calls.", TOOL_BUCKETS_S, "tool"
        )
        self._tool_bugs = self._counter("tool_bugs", "Bugs of tools: alert on any.", "tool")
        self._model_seconds = self._histogram(
            "model_seconds",
            "Wall time of rounds that a provider was asked for.",
            MODEL_BUCKETS_S,
            "provider",
        )
        self._model_tokens = self._histogram(
            "model_tokens",
            "Tokens of a round, by direction and cache use.",
            MODEL_BUCKETS_TOKENS,
            "provider",
            "kind",
        )
        self._fallbacks = self._counter("fallbacks", "Failovers and takeovers, by kind.", "kind")
        self._translation_seconds = self._histogram(
            "translation_seconds",
            "CPU time to encode and decode a provider's messages, per round.",
            TRANSLATION_BUCKETS_S,
            "provider",
            "direction",
        )
        self._count_what_goes_out()

    def _count_what_goes_out(self) -> None:
        self._acknowledged = self._histogram(
            "acknowledge_seconds", "Time until Slack got an acknowledgement.", ACKNOWLEDGE_BUCKETS_S
        )
        self._edits = self._counter("slack_edits", "Edits of live answers sent to Slack.")
        self._rate_limited = self._counter("slack_rate_limited", "429s from Slack.")
        self._proposals = self._counter(
            "proposals", "Proposals by the state they entered.", "state"
        )
        self._alerts = self._counter(
            "alerts",
            "Alerts received, by sender and whether a rule took them.",
            "sender",
            "outcome",
        )
        self._alert_threads = self._counter(
            "alert_threads", "Threads that alerts opened, and investigations they began.", "what"
        )
        self._telemetry_dropped = self._counter(
            "telemetry_dropped", "Spans and points that no collector accepted."
        )
        self._jobs_failed = self._counter(
            "jobs_failed", "Runs of recurring jobs that failed or met their deadline.", "name"
        )
        self._spent = self._counter(
            "spent_usd_micros", "Micro-dollars spent on rounds with a known price.", "provider"
        )

    def turn_ended(self, end: str) -> None:
        self._turns.labels(self._value("end", end)).inc()

    def round_ended(self, provider: str, outcome: str) -> None:
        """One round, by its stop reason or error kind."""
        self._rounds.labels(
            self._value("provider", provider), self._value("outcome", outcome)
        ).inc()

    def model_asked(self, provider: str, seconds: float, usage: Usage) -> None:
        """The duration of a round, retries included, and the billed usage."""
        name = self._value("provider", provider)
        self._model_seconds.labels(name).observe(seconds)
        for kind, tokens in (("input", usage.input), ("output", usage.output)):
            self._model_tokens.labels(name, kind).observe(tokens)

    def fallback(self, kind: str) -> None:
        """Something else took over: another `provider`, the full `model`, text for `tools`."""
        self._fallbacks.labels(self._value("fallback", kind)).inc()

    def translated(self, provider: str, direction: str, seconds: float) -> None:
        """Time spent between our messages and a provider's wire, `request` or `answer`."""
        self._translation_seconds.labels(self._value("provider", provider), direction).observe(
            seconds
        )

    def tool_called(self, record: ToolInvocationRecord) -> None:
        tool = self._value("tool", record.name)
        outcome = "ok" if record.ok else str(record.error_code or "failed")
        self._tool_calls.labels(tool, self._value("tool_outcome", outcome)).inc()
        self._tool_seconds.labels(tool).observe(record.latency_ms / 1000)

    def tool_broke(self, tool: str) -> None:
        """A tool's bug; the traceback is in the log."""
        self._tool_bugs.labels(self._value("tool", tool)).inc()

    def tool_health(self) -> Mapping[str, ToolHealth]:
        outcomes: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for sample in samples(self._tool_calls, "_total"):
            outcomes[sample.labels["tool"]][sample.labels["outcome"]] = round(sample.value)
        buckets: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
        for sample in samples(self._tool_seconds, "_bucket"):
            buckets[sample.labels["tool"]].append((float(sample.labels["le"]), sample.value))
        return {
            tool: ToolHealth(found, _under(buckets[tool], 0.5), _under(buckets[tool], 0.95))
            for tool, found in outcomes.items()
        }

    def acknowledged(self, seconds: float) -> None:
        """One request of Slack's, which waits for three seconds."""
        self._acknowledged.observe(seconds)

    def edited(self) -> None:
        self._edits.inc()

    def rate_limited(self) -> None:
        """One 429 from Slack."""
        self._rate_limited.inc()

    def proposal_became(self, state: str) -> None:
        self._proposals.labels(self._value("state", state)).inc()

    def alerts_received(self, sender: str, outcome: str, number: int) -> None:
        """So many alerts of one request were `taken` by a rule, or `unmatched`."""
        self._alerts.labels(self._value("sender", sender), outcome).inc(number)

    def alert_thread(self, what: str) -> None:
        """A thread was `opened`, or `investigated`. About right: a crash may repeat one."""
        self._alert_threads.labels(what).inc()

    def telemetry_dropped(self, number: int) -> None:
        """So many spans or points are gone untold."""
        self._telemetry_dropped.inc(number)

    def job_failed(self, name: str) -> None:
        """One run of a recurring job; the traceback is in the log."""
        self._jobs_failed.labels(self._value("name", name)).inc()

    def spent(self, provider: str, usd_micros: int) -> None:
        self._spent.labels(self._value("provider", provider)).inc(max(0, usd_micros))

    def _counter(self, name: str, documentation: str, *labels: str) -> Counter:
        return Counter(f"kortex_{name}", documentation, labels, registry=self.registry)

    def _histogram(
        self, name: str, documentation: str, buckets: Sequence[float], *labels: str
    ) -> Histogram:
        return Histogram(
            f"kortex_{name}", documentation, labels, registry=self.registry, buckets=buckets
        )

    def _value(self, label: str, value: str) -> str:
        seen = self._seen[label]
        if value in seen:
            return value
        if len(value) > MAX_VALUE_CHARS or len(seen) >= MAX_VALUES:
            return OTHER
        seen.add(value)
        return value


def samples(collector: Counter | Histogram, suffix: str) -> Iterator[Sample]:
    """The samples of one kind, as a scrape would read them."""
    families: list[Metric] = list(collector.collect())
    return (s for family in families for s in family.samples if s.name.endswith(suffix))


def _under(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    counted = max((count for _, count in buckets), default=0.0)
    bound = next((bound for bound, count in sorted(buckets) if count >= share * counted), 0.0)
    return bound if isfinite(bound) else None
