"""A triage played against answers that a test makes up, round by round as the loop would."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any

import orjson

from adapters.llm.messages import (
    CompleteRequest,
    Message,
    Meta,
    Role,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from adapters.llm.port import collect
from adapters.llm.triage.provider import Triage
from bot.chat.claims.answer import checked
from bot.chat.loop import wrap_evidence
from bot.domain.turn_events import Evidence

TOOLS = (
    "core__get_recent_deploys",
    "core__compare_to_baseline",
    "core__get_logs",
    "core__get_traces",
    "core__propose_action",
    "core__kubectl_get",
    "core__kubectl_events",
    "core__get_application",
    "core__list_workflows",
    "core__get_incident_history",
    "core__search_patterns",
)
LATENCY = "http_request_duration_seconds_p99"
ERRORS = "http_request_error_ratio"
MOST_ROUNDS = 8  # what the loop allows by default

# What a tool answers to arguments: a value (or a coroutine of one), an exception for a failed call.
Answer = Callable[[str, Mapping[str, Any]], object]


@dataclass
class Investigation:
    """What a triage asked and concluded."""

    text: str = ""
    rounds: int = 0
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)

    def asked(self, tool: str) -> list[dict[str, Any]]:
        """The arguments of the calls of a tool."""
        return [arguments for name, arguments in self.calls if name == tool]

    @property
    def marks(self) -> tuple[str, ...]:
        """The marks that its answer would bear."""
        pairs = zip(self.evidence, self.calls, strict=True)
        asked = {e.tool_call_id: arguments for e, (_, arguments) in pairs}
        _, claims = checked(self.text, self.evidence, asked, "")
        return tuple(claim.note for claim in claims if claim.note)

    @property
    def cited(self) -> set[int]:
        """The numbers of the evidence cited."""
        return {int(n) for n in re.findall(r"\[E(\d*)\]", self.text)}


async def investigate(
    answer: Answer,
    question: str = "why is checkout slow?",
    products: Sequence[str] = ("checkout", "cart", "payments"),
    tools: Sequence[str] = TOOLS,
) -> Investigation:
    """Play until the triage concludes, at most one round more than the loop allows."""
    found = Investigation()
    messages = [Message(Role.USER, text=question)]
    for _ in range(MOST_ROUNDS + 1):
        request = CompleteRequest(
            system="s",
            messages=tuple(messages),
            tools=tuple(ToolSpec(name, "", {}) for name in tools),
            meta=Meta(products=tuple(products)),
        )
        said = await collect(Triage().stream(request))
        found.rounds += 1
        found.text = said.text
        if not said.tool_calls:
            break
        messages.append(Message(Role.ASSISTANT, tool_calls=said.tool_calls))
        messages += [await _answered(found, call, answer) for call in said.tool_calls]
    return found


async def _answered(found: Investigation, call: ToolCall, answer: Answer) -> Message:
    arguments = orjson.loads(call.arguments)
    value = answer(call.name, arguments)
    if isawaitable(value):
        value = await value
    failed = isinstance(value, Exception)
    content = orjson.dumps({"error": str(value)} if failed else value).decode()
    number = len(found.evidence) + 1
    found.calls.append((call.name, arguments))
    found.evidence.append(
        Evidence(number, call.id, call.name, "", not failed, 1, truncated=False, content=content)
    )
    result = ToolResult(call.id, call.name, wrap_evidence(number, content), is_error=failed)
    return Message(Role.TOOL, tool_result=result)


def usual(mean: float = 0.2) -> dict[str, object]:
    """A metric within its baseline."""
    return {
        "unit": "seconds",
        "baseline_mean": mean,
        "window_max": mean * 1.1,
        "direction": "flat",
        "anomalous": False,
        "max_z_score": 0.4,
    }


def unusual(since: str, *, most: float = 1.9, mean: float = 0.2, z: float = 30.0) -> object:
    """A metric that left its baseline upwards."""
    return {
        **usual(mean),
        "window_max": most,
        "direction": "up",
        "anomalous": True,
        "max_z_score": z,
        "first_anomaly_at": since,
    }


def unknown() -> dict[str, object]:
    """A metric that has no data."""
    return {"n": 0, "coverage": 0.0, "anomalous": False, "samples": [], "notes": ["no data"]}


def deploy(product: str, at: str, version: str = "v2", previous: str = "v1") -> dict[str, object]:
    """A row of the deploys tool."""
    return {"ts": at, "product": product, "version": version, "previous_version": previous}


def world(
    metrics: Mapping[tuple[str, str], object] | None = None,
    deploys: Sequence[object] = (),
    logs: Mapping[str, Sequence[object]] | None = None,
    traces: Mapping[str, object] | None = None,
    around: Mapping[str, object] | None = None,
) -> Answer:
    """Answers from tables; a metric not listed is within its baseline.

    `around` is what the other tools answer, by short name.
    """

    def answer(tool: str, arguments: Mapping[str, Any]) -> object:
        match tool:
            case "core__get_recent_deploys":
                return {"deploys": list(deploys), "total_matches": len(deploys)}
            case "core__compare_to_baseline":
                key = (arguments["product"], arguments["metric_name"])
                return (metrics or {}).get(key, usual())
            case "core__get_logs":
                return {"lines": list((logs or {}).get(arguments["product"], ()))}
            case "core__get_traces":
                return (traces or {}).get(arguments["request_id"], {"span_count": 0})
            case "core__propose_action":
                return {"proposal_id": "p1", "state": "pending"}
            case _:
                return (around or {}).get(tool.removeprefix("core__"), {})

    return answer
