"""Every tool with a recorded backend, called by a model through the running bot."""

from typing import Any

import pytest

from bot.workspace.seeds import CHECKOUT
from tests.fakes.model_server import Call, Recorded, Round
from tests.fixtures_service import shared_stage
from tests.stage import Stage, results, turn_of

__all__ = ["shared_stage"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "get_incident_history": ({"query": "checkout slow after release"}, "Rolled back to v2.1.9"),
    "get_admin_info": ({"product": "checkout"}, "v2.4.0"),
    "kubectl_get": ({"kind": "pods", "selector": "app=checkout"}, "checkout-1"),
    "kubectl_describe": ({"kind": "deployment", "name": "checkout"}, "DATABASE_PASSWORD"),
    "kubectl_logs": ({"pod": "checkout-1", "tail": 5}, "T"),
    "kubectl_events": ({"kind": "deployment", "name": "checkout"}, "ScalingReplicaSet"),
    "get_recent_deploys": ({"product": "checkout", "time_range": "last 2h"}, "v2.4.0"),
}
SETTINGS: dict[str, Any] = {}


def SCRIPT(request: Recorded) -> Round:  # noqa: N802 - what the shared fixture looks for
    """Call the tool that the question names, then say what it is."""
    name = turn_of(request)[0]["content"].partition(": ")[2].strip()
    if results(request):
        return Round(text=(f"That is what {name} shows [1].",))
    return Round(calls=(Call(f"core__{name}", CALLS[name][0]),))


@pytest.mark.parametrize("name", CALLS)
async def test_a_recorded_backend_answers_through_the_bot(shared_stage: Stage, name: str) -> None:
    answer = await shared_stage.answered(f"@kortex use: {name}", shared_stage.newcomer(), CHECKOUT)

    (result,) = results(shared_stage.models.requests[-1])
    assert CALLS[name][1] in result
    assert "not for you" not in result
    assert f"what {name} shows" in answer


async def test_an_answer_of_the_channel_is_found_in_the_next_question(shared_stage: Stage) -> None:
    await shared_stage.answered("@kortex use: kubectl_get", shared_stage.newcomer(), CHECKOUT)
    await shared_stage.answered(
        "@kortex use: get_incident_history", shared_stage.newcomer(), CHECKOUT
    )

    rows = shared_stage.query("SELECT title, source, scope FROM incidents")
    assert ("kortex", CHECKOUT) in {(source, scope) for _, source, scope in rows}
    (result,) = results(shared_stage.models.requests[-1])
    assert "shop:INC-240" in result
