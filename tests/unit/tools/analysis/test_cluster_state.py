"""What is ill in a cluster, and the mechanism behind it."""

import pytest
from pydantic import JsonValue

from tools.analysis.cluster_state import (
    mechanism_of,
    node_is_ill,
    owner_of,
    pod_is_ill,
    why_ill,
    workload_is_short,
)


@pytest.mark.parametrize(
    ("ready", "status", "ill"),
    [
        ("1/1", "Running", False),
        ("0/1", "Running", True),
        ("0/1", "CrashLoopBackOff", True),
        ("0/1", "ImagePullBackOff", True),
        ("0/1", "Pending", True),
        ("0/1", "OOMKilled", True),
        ("0/1", "ContainerCreating", False),
        ("0/1", "Completed", False),
        ("1/1", "Terminating", False),
    ],
)
def test_pod_is_ill_by_its_row(ready: str, status: str, ill: bool) -> None:
    assert pod_is_ill(ready, status) is ill


@pytest.mark.parametrize(
    ("text", "mechanism"),
    [
        ("OOMKilled: exit code 137", "out of memory"),
        ('Failed to pull image "x:1": manifest unknown', "image cannot be pulled"),
        ("CrashLoopBackOff", "container crashes"),
        ("Unschedulable: 0/2 nodes: 2 Insufficient cpu", "cannot be scheduled"),
        ("Readiness probe failed: 503", "probe fails"),
        ('pods "x" is forbidden: exceeded quota', "quota exceeded"),
        ("NodeNotReady", "node not ready"),
        ("ProgressDeadlineExceeded", "rollout does not progress"),
        ("FailedMount", "volume cannot be mounted"),
        ("something else", ""),
    ],
)
def test_mechanism_is_read_from_states_and_messages(text: str, mechanism: str) -> None:
    assert mechanism_of(text) == mechanism


def test_why_is_the_pods_own_words() -> None:
    waiting: JsonValue = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}
    last: JsonValue = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
    status: JsonValue = {"containerStatuses": [{"state": waiting, "lastState": last}]}

    assert why_ill({"status": status}) == (
        "CrashLoopBackOff: back-off 40s; OOMKilled: exit code 137"
    )
    assert why_ill({}) == ""


@pytest.mark.parametrize(
    ("name", "owner"),
    [("cart-db-7f9-x1", "cart-db"), ("cart-7f9-x1", "cart"), ("cart", "cart"), ("cartoon-1", "")],
)
def test_object_belongs_to_the_longest_product_its_name_begins_with(name: str, owner: str) -> None:
    assert owner_of(name, ("cart", "cart-db")) == owner


def test_workloads_and_nodes_are_judged_by_their_rows() -> None:
    assert workload_is_short("1/3")
    assert not workload_is_short("3/3")
    assert node_is_ill("NotReady")
    assert not node_is_ill("Ready,SchedulingDisabled")
