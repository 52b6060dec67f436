"""Every tool with a recorded backend, called by a model through the running bot."""

from typing import Any

import pytest

from bot.demo.workspace.seeds import CHECKOUT, PAYMENTS, QUIET, RESPONDER
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import Stage, question_of, results

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Arguments, what the result holds, and the channel whose toolset has it.
CALLS: dict[str, tuple[dict[str, Any], str, str]] = {
    "get_incident_history": (
        {"query": "checkout slow after release"}, "Rolled back to v2.1.9", CHECKOUT,
    ),
    "get_admin_info": ({"product": "checkout"}, "v2.4.0", CHECKOUT),
    "kubectl_get": ({"kind": "pods", "selector": "app=checkout"}, "checkout-1", CHECKOUT),
    "kubectl_describe": ({"kind": "deployment", "name": "checkout"}, "DATABASE_PASSWORD", CHECKOUT),
    "kubectl_logs": ({"pod": "checkout-1", "tail": 5}, "T", CHECKOUT),
    "kubectl_events": (
        {"kind": "deployment", "name": "checkout"}, "ScalingReplicaSet", CHECKOUT,
    ),
    "get_recent_deploys": ({"product": "checkout", "time_range": "last 2h"}, "v2.4.0", CHECKOUT),
    "get_application": ({"app_name": "checkout"}, "orders-db", CHECKOUT),
    "search_patterns": ({"intent": "checkout slow after a release"}, "roll that deploy", CHECKOUT),
    "list_workflows": ({"app_name": "payments"}, "workflows", PAYMENTS),
    "list_resources": ({"type": "postgres"}, "payments-db", PAYMENTS),
    "get_dashboard_stats": ({}, "total_applications", PAYMENTS),
    "search_capabilities": ({"query": "postgres"}, "PostgresCluster", QUIET),
    "get_resource_schema": (
        {"kind": "Deployment", "api_version": "apps/v1"}, "spec.replicas", QUIET,
    ),
}  # fmt: skip
TOOLSETS = {"checkout": "investigate", "payments": "platform", "quiet": "recommend"}
SETTINGS: dict[str, Any] = {
    "platform": {"kind": "recorded", "connections": {"mira": {"users": [RESPONDER]}}},
    "channels": [
        {
            "match": f"incident-{name}",
            "session": "{channel}",
            "products": ["checkout", "payments"],
            "toolset": toolset,
        }
        for name, toolset in TOOLSETS.items()
    ],
}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Call the tool that the question names, then say what it is."""
    name = question_of(request).partition(": ")[2].strip()
    if results(request):
        return Round(text=(f"That is what {name} shows [1].",))
    return Round(calls=(Call(f"core__{name}", CALLS[name][0]),))


@pytest.mark.parametrize("name", CALLS)
async def test_a_recorded_backend_answers_through_the_bot(shared_stage: Stage, name: str) -> None:
    answer = await shared_stage.answered(f"@kortex use: {name}", RESPONDER, CALLS[name][2])

    (result,) = results(shared_stage.models.requests[-1])
    assert CALLS[name][1] in result
    assert "not for you" not in result
    assert f"what {name} shows" in answer


async def test_platform_tools_are_hidden_from_a_user_without_a_connection(
    shared_stage: Stage,
) -> None:
    await shared_stage.answered("@kortex use: get_application", shared_stage.newcomer(), CHECKOUT)

    request = shared_stage.models.requests[-1]
    shown = {tool["function"]["name"] for tool in request.body["tools"]}
    assert "core__kubectl_get" in shown
    assert shown.isdisjoint({"core__get_application", "core__list_workflows"})
    assert "no such tool" in results(request)[0] or "policy_denied" in results(request)[0]


async def test_an_earlier_answer_in_the_channel_is_found_by_the_next_question(
    shared_stage: Stage,
) -> None:
    await shared_stage.answered("@kortex use: kubectl_get", shared_stage.newcomer(), CHECKOUT)
    await shared_stage.answered(
        "@kortex use: get_incident_history", shared_stage.newcomer(), CHECKOUT
    )

    rows = shared_stage.query("SELECT title, source, scope FROM incidents")
    assert ("kortex", CHECKOUT) in {(source, scope) for _, source, scope in rows}
    (result,) = results(shared_stage.models.requests[-1])
    assert "shop:INC-240" in result
