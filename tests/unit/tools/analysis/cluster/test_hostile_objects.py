"""Objects of any shape are surveyed without an error, and never hide a fault beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.cluster_objects import built, inventory, node, pod, waiting
from tools.analysis.cluster.crash import MOST_CHARS, crash_reason
from tools.analysis.cluster.survey import findings

KINDS = (
    "Pod", "Node", "Deployment", "StatefulSet", "DaemonSet", "Job", "Service", "Endpoints",
    "ResourceQuota", "PersistentVolumeClaim", "PersistentVolume", "StorageClass",
    "HorizontalPodAutoscaler", "PodDisruptionBudget",
)  # fmt: skip
FIELDS = (
    "metadata", "name", "namespace", "labels", "app", "spec", "status", "conditions", "type",
    "containers", "containerStatuses", "ports", "targetPort", "selector", "replicas", "phase",
    "ownerReferences", "volumes", "claimRef", "subsets", "template", "state", "waiting", "reason",
    "readinessProbe", "httpGet", "port", "hard", "used", "services", "lastState", "terminated",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 2**64), st.floats(allow_nan=False),
    st.sampled_from(("billing", "a.b", "Pending", "Running", "False", "2026-11-21T14:00:00", "\ud800")),
)  # fmt: skip
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(FIELDS), inner, max_size=6)
    ),
    max_leaves=25,
)
PARTS = st.dictionaries(st.sampled_from(FIELDS), ANYTHING, max_size=6)


@given(st.lists(st.tuples(st.sampled_from(KINDS), PARTS), max_size=4))
def test_objects_of_any_shape_hide_no_fault(odd: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
    broken = pod("billing", waiting("CrashLoopBackOff"), name="billing-own", ownerReferences=[])
    objects = [node(), broken, *({"metadata": {}, **parts, "kind": kind} for kind, parts in odd)]

    assert "billing-own" in {one.name for one in findings(inventory(objects))}


@given(PARTS)
def test_an_object_of_any_shape_is_surveyed(parts: Mapping[str, Any]) -> None:
    objects = [built(kind, "billing", spec=parts, status=parts) for kind in KINDS]

    assert all(one.reason for one in findings(inventory(objects)))


@given(st.lists(st.text(max_size=900), max_size=30))
def test_any_last_lines_give_a_short_reason(lines: list[str]) -> None:
    assert len(crash_reason(lines)) <= MOST_CHARS
