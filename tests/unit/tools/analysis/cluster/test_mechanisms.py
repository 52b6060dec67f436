"""The meaning of Kubernetes' words, and the owner of an object."""

import pytest

from tools.analysis.cluster.inventory import owner_of
from tools.analysis.cluster.mechanisms import mechanism_of


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


@pytest.mark.parametrize(
    ("name", "owner"),
    [("cart-db-7f9-x1", "cart-db"), ("cart-7f9-x1", "cart"), ("cart", "cart"), ("cartoon-1", "")],
)
def test_object_belongs_to_the_longest_product_its_name_begins_with(name: str, owner: str) -> None:
    assert owner_of(name, ("cart", "cart-db")) == owner
