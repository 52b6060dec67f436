"""A first look with answers that a test makes up, and what a model reads of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from adapters.llm.first_look.calls import look_calls
from adapters.llm.first_look.tokens import most_tokens_of
from adapters.llm.messages import CompleteRequest, Message, Meta, Role, ToolResult, ToolSpec
from bot.chat.conversation import wrap_evidence
from tests.fixtures_triage import NOW, TOOLS, moved

PRODUCTS = ("checkout", "cart", "payments")
METRICS, LOGS, TRACES, CLUSTER, DEPLOYS = (
    "core__sweep_metrics", "core__error_patterns", "core__sweep_traces", "core__sweep_cluster",
    "core__get_recent_deploys",
)  # fmt: skip
RANGE = "2026-04-07T14:05:00Z/2026-04-07T14:35:00Z"


def asked(text: str = "why is checkout slow?", **changes: Any) -> CompleteRequest:
    request = CompleteRequest(
        system="s",
        messages=(Message(Role.USER, text=text),),
        tools=tuple(ToolSpec(name, "", {}) for name in TOOLS),
        meta=Meta(products=PRODUCTS, now=NOW),
    )
    return replace(request, **changes)


def looked(
    answers: Mapping[str, object], request: CompleteRequest | None = None
) -> CompleteRequest:
    """With the first look of these answers; an exception is a failed call."""
    request = request or asked()
    calls = tuple(look_calls(request))
    messages = [*request.messages, Message(Role.ASSISTANT, tool_calls=calls)]
    for number, call in enumerate(calls, start=1):
        value = answers.get(call.name, {})
        failed = isinstance(value, Exception)
        content = orjson.dumps({"error": str(value)} if failed else value).decode()
        result = ToolResult(call.id, call.name, wrap_evidence(number, content), is_error=failed)
        messages.append(Message(Role.TOOL, tool_result=result))
    return replace(request, messages=tuple(messages))


def results(request: CompleteRequest) -> dict[str, Any]:
    """The JSON that is read of each tool."""
    read = [m.tool_result for m in request.messages if m.tool_result is not None]
    return {one.name: orjson.loads(one.content) for one in read}


def look_tokens(request: CompleteRequest) -> int:
    """Of all that the look puts into the conversation."""
    calls = [c.name + c.arguments for m in request.messages for c in m.tool_calls]
    read = [m.tool_result.content for m in request.messages if m.tool_result is not None]
    return sum(map(most_tokens_of, [*calls, *read]))


def named(number: int) -> str:
    """Names that no product has, all different."""
    return f"shop-{number:02}-" + ("\U0001f4a9x9Q" if number % 2 else "zqxj") * 60


def fifty_hostile() -> tuple[Mapping[str, object], CompleteRequest]:
    """Answers of sweeps over fifty products that all moved, and the question."""
    products: Sequence[str] = [named(number) for number in range(50)]
    since = "2026-04-07T14:11:00Z"
    answers: dict[str, object] = {
        METRICS: {"range": RANGE, "shifts": [moved(name, "latency", since) for name in products],
                  "within": dict.fromkeys(products, "errors"), "without": products},
        LOGS: {"changes": [{"product": name, "level": "error", "change": "new", "after": 9,
                            "example": name * 3} for name in products]},
        TRACES: {"calls": [f"{a} > {b}" for a in products for b in products[:6]]},
        CLUSTER: {"ill": [{"product": name, "kind": "Pod", "name": name, "state": "OOMKilled"}
                          for name in products]},
        DEPLOYS: {"deploys": [{"product": name, "version": name, "ts": since}
                              for name in products]},
    }  # fmt: skip
    return answers, asked(meta=Meta(products=tuple(products), now=NOW))
