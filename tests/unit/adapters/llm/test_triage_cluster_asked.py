"""Later questions about Kubernetes, answered from one look at the cluster and without a model."""

from typing import Any

import pytest

from adapters.llm.messages import Message, Role
from tests.fixtures_triage import TOOLS, Investigation, investigate, world

PRODUCTS = ("front", "basket", "stock")
POD = "basket-5c9f-x2"
WHY = (
    f"pod {POD}: container app ended with exit code 137, restarted 6 times, killed by its liveness"
    " probe: Liveness probe failed: timeout: failed to connect service within 1s: context deadline"
    " exceeded; the container is killed 3 s after its start"
)
ILL = {
    "kind": "Pod", "name": POD, "product": "basket", "state": "Error", "impact": "down",
    "mechanism": "liveness probe fails", "detail": WHY,
}  # fmt: skip


def warning(at: str, thing: str, *, over: bool) -> dict[str, Any]:
    return {"ts": f"2026-04-07T{at}Z", "object": f"Pod/{thing}", "product": thing.partition("-")[0],
            "reason": "Unhealthy", "message": "Readiness probe failed", "count": 2, "over": over}  # fmt: skip


CLUSTER = {
    "ill": [ILL],
    "pods": {"front": "2 of 2 well", "basket": "0 of 1 well", "stock": "1 of 1 well"},
    "warnings": [
        warning("14:33:00", "stock-1", over=True),
        warning("14:31:00", "basket-5c9f-x2", over=False),
    ],
}
LINES = {"lines": [{"ts": "2026-04-07T14:34:00Z", "level": "error", "message": "panic: nil"}]}
HEADLINE = "**Most likely cause: basket, liveness probe fails (Error).**"


async def asked(question: str, **around: Any) -> Investigation:
    """In a thread about the front, in which the cause was found in the basket."""
    told = {"sweep_cluster": CLUSTER, "get_logs": LINES, "sweep_metrics": LookupError("none")}
    earlier = [
        Message(Role.USER, text="why does front fail?"),
        Message(Role.ASSISTANT, text=HEADLINE),
    ]
    return await investigate(
        world(around=told | around), question, PRODUCTS, TOOLS, earlier=earlier
    )


@pytest.mark.parametrize(
    "question",
    ["how many restarts", "exit code?", "is the probe wrong", "pods not ready?", "describe it"],
)
async def test_the_reason_of_a_failing_object_is_complete(question: str) -> None:
    found = await asked(question)

    assert found.text.startswith(("**1 object has a failure:**", "**basket: 0 of 1 pod is"))
    assert "restarted 6 times" in found.text
    assert "killed 3 s after its start" in found.text
    assert [tool for tool, _ in found.calls] == ["core__sweep_cluster"]


async def test_ongoing_events_come_before_past_ones() -> None:
    lines = (await asked("show me the events")).text.split("\n- ")[1:]

    assert "14:31:00 Pod/basket-5c9f-x2 Unhealthy: Readiness probe failed" in lines[0]
    assert "14:33:00 Pod/stock-1 Unhealthy (over)" in lines[1]


async def test_without_warnings_the_answer_says_so() -> None:
    found = await asked("any events?", sweep_cluster=CLUSTER | {"warnings": []})

    assert "No warning events" in found.text


async def test_a_partly_read_cluster_is_not_called_healthy() -> None:
    healthy = CLUSTER | {"ill": [], "unread": ["pods could not be read: forbidden"]}
    found = await asked("which pods fail?", sweep_cluster=healthy)

    assert "not everything could be read" in found.text


@pytest.mark.parametrize("question", ["logs of the crashing pod", "previous logs"])
async def test_logs_of_a_failing_object_are_those_of_the_cause(question: str) -> None:
    found = await asked(question)

    assert [one["product"] for one in found.asked("core__get_logs")] == ["basket"]
    assert "you mean basket, where the cause was found" in found.text


async def test_a_failing_deployment_is_not_a_deploy() -> None:
    ill = ILL | {"kind": "Deployment", "mechanism": "scaled to 0 replicas", "state": "0/0 ready"}
    found = await asked("was it the deploy?", sweep_cluster=CLUSTER | {"ill": [ill]})

    assert "It looks like it" not in found.text


async def test_a_running_unready_pod_is_not_called_healthy() -> None:
    rows = {"columns": ["Name", "Ready", "Status"], "rows": [[POD, "0/1", "Running"]]}
    found = await asked("why does it fail?", kubectl_get=rows)

    assert "its pod is running" not in str(found.calls)
    assert "1 of 1 pod not ready" in str(found.calls)


async def test_an_outage_without_metrics_is_not_called_harmless() -> None:
    found = await asked("which services are affected")

    assert found.text.startswith("**I cannot tell which products are affected")
    assert "Most likely cause: basket" in found.text
