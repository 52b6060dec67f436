"""Which look at the logs triage reads as one at all products, of this version and of earlier ones."""

import orjson
import pytest

from adapters.llm.messages import CompleteRequest, Message, Meta, Role, ToolCall, ToolResult
from adapters.llm.triage.case import Case, read_case
from adapters.llm.triage.evidence import LOGS, facts_of, swept

PRODUCTS = ("checkout", "cart")


def case(*looks: tuple[str, dict[str, object]]) -> Case:
    """Each a tool and its arguments; each returns one new kind of line, of the product E1, E2."""
    messages = [Message(Role.USER, "why is checkout slow?")]
    for at, (tool, arguments) in enumerate(looks, 1):
        row = {"product": f"E{at}", "level": "error", "change": "new", "after": 9}
        body = {"evidence": f"E{at}", "result": {"changes": [row], "lines": {}}}
        call = ToolCall(f"c{at}", tool, orjson.dumps(arguments).decode())
        messages.append(Message(Role.ASSISTANT, tool_calls=(call,)))
        result = ToolResult(call.id, tool, orjson.dumps(body).decode())
        messages.append(Message(Role.TOOL, tool_result=result))
    return read_case(CompleteRequest("s", tuple(messages), meta=Meta(products=PRODUCTS)))


@pytest.mark.parametrize(
    "closer", [{"product": "cart"}, {"level": "error"}, {"query": "timeout", "others": True}]
)
def test_a_closer_look_does_not_replace_the_sweep(closer: dict[str, object]) -> None:
    seen = case(("core__error_patterns", {"time_range": "last 30m"}), (LOGS, closer))

    assert [fact.product for fact in facts_of(seen).logs] == ["E1"]


@pytest.mark.parametrize("wider", [{}, {"product": "*"}, {"product": "cart", "others": True}])
def test_the_newest_sweep_counts(wider: dict[str, object]) -> None:
    seen = case(("core__error_patterns", {}), (LOGS, wider))

    assert [fact.product for fact in facts_of(seen).logs] == ["E2"]


def test_a_sweep_under_its_former_name_is_read() -> None:
    found = swept(case(("core__sweep_logs", {"product": "checkout"})), LOGS)

    assert found is not None
    assert (found.mark, found.arguments["product"]) == ("E1", "checkout")
