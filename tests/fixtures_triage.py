"""A triage played against answers that a test makes up, round by round as the loop would."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
from adapters.llm.stated import said_by
from adapters.llm.triage.provider import Triage
from bot.chat.claims.answer import checked
from bot.chat.conversation import wrap_evidence
from bot.domain.turn_events import Evidence

TOOLS = (
    "core__get_recent_deploys",
    "core__sweep_metrics",
    "core__error_patterns",
    "core__sweep_traces",
    "core__sweep_cluster",
    "core__report_findings",
    "core__get_logs",
    "core__propose_action",
    "core__kubectl_get",
    "core__kubectl_events",
    "core__get_application",
    "core__list_workflows",
    "core__get_incident_history",
    "core__search_patterns",
)
NOW = datetime(2026, 4, 7, 14, 35, tzinfo=UTC)
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
    earlier: Sequence[Message] = (),
    before: Sequence[str] = (),
    told: str = "",
    now: datetime = NOW,
    elsewhere: Sequence[str] = (),
    reads_all: bool = False,
    tables: tuple[tuple[str, str], ...] = (),
    actions: tuple[str, ...] = (),
) -> Investigation:
    found = Investigation()
    messages = [*earlier, *(Message(Role.USER, text=one) for one in before)]
    beside = told or f"Now\n- {said_by('U7')}"
    messages.append(Message(Role.USER, text=question, told=beside))
    for _ in range(MOST_ROUNDS + 1):
        request = CompleteRequest(
            system="s",
            messages=tuple(messages),
            tools=tuple(ToolSpec(name, "", {}) for name in tools),
            meta=Meta(
                products=tuple(products),
                now=now,
                elsewhere=tuple(elsewhere),
                reads_all=reads_all,
                tables=tables,
                actions=actions,
            ),
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
    refused = {"error": "validation", "message": str(value)}
    content = orjson.dumps(refused if failed else value).decode()
    number = len(found.evidence) + 1
    found.calls.append((call.name, arguments))
    found.evidence.append(
        Evidence(number, call.id, call.name, "", not failed, 1, truncated=False, content=content)
    )
    result = ToolResult(call.id, call.name, wrap_evidence(number, content), is_error=failed)
    return Message(Role.TOOL, tool_result=result)


def behind_evidence(found: Investigation) -> str:
    """What the answer has no room for, one line each."""
    (stated,) = found.asked("core__report_findings")
    return "\n".join(stated["also_found"])


def moved(product: str, role: str, since: str = "", **more: object) -> dict[str, object]:
    return {
        "product": product,
        "role": role,
        "signal": f"{role}_signal",
        "unit": "seconds" if role == "latency" else "ratio",
        "usual": 0.2,
        "worst": 1.9,
        "last": 1.8,
        "direction": "up",
        "score": 30.0,
        "beyond_all_before": True,
        "since": since or None,
        "since_before": False,
        "requests": None,
        **more,
    }


def deploy(product: str, at: str, version: str = "v2", previous: str = "v1") -> dict[str, object]:
    """A row of the deploys tool."""
    return {"ts": at, "product": product, "version": version, "previous_version": previous}


def world(
    shifts: Sequence[object] = (),
    deploys: Sequence[object] = (),
    within: Mapping[str, str] | None = None,
    calls: Sequence[str] = (),
    around: Mapping[str, object] | None = None,
) -> Answer:
    """Answers from tables. `around` is what the other tools answer, by short name."""
    looked = dict.fromkeys(("checkout", "cart", "payments"), "errors latency traffic")

    def answer(tool: str, arguments: Mapping[str, Any]) -> object:
        del arguments
        told = (around or {}).get(tool.removeprefix("core__"))
        if told is not None:
            return told
        match tool:
            case "core__get_recent_deploys":
                return {"deploys": list(deploys), "total_matches": len(deploys)}
            case "core__sweep_metrics":
                return {"shifts": list(shifts), "within": looked if within is None else within}
            case "core__sweep_traces":
                return {"calls": list(calls), "traces_before": 9, "traces_after": 9}
            case "core__propose_action":
                return {"proposal_id": "p1", "state": "pending"}
            case _:
                return {}

    return answer
