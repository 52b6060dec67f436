"""What is wrong in a cluster, by its own words: pods, nodes, workloads and warning events.

States: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/ and the kubelet's event reasons,
https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/events/event.go
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from pydantic import JsonValue

# A state or reason, in lower case, to what is behind it.
_MECHANISMS: Final[Sequence[tuple[str, str]]] = (
    (r"oomkill|out of memory|oom_", "out of memory"),
    (r"errimage|imagepull|invalidimagename|pulling image|pull image|manifest", "image cannot be pulled"),
    (r"createcontainerconfig|configmap|secret .*not found", "container cannot be configured"),
    (r"crashloop|back-off restarting", "container crashes"),
    (r"exceeded quota|quota", "quota exceeded"),
    (r"unschedulable|failedscheduling|insufficient", "cannot be scheduled"),
    (r"evict|pressure", "node under pressure"),
    (r"nodenotready|nodelost|notready|node .*unreachable|nodestatusunknown", "node not ready"),
    (r"unhealthy|probe failed|probe errored", "probe fails"),
    (r"failedmount|failedattachvolume|volume", "volume cannot be mounted"),
    (r"progressdeadline", "rollout does not progress"),
    (r"failedcreate|createcontainererror|runcontainererror|failedpostart|failedsync", "container cannot be started"),
    (r"networknotready|failedcreatepodsandbox|cni", "pod network fails"),
    (r"pending", "pod pending"),
    (r"error|failed|unknown", "pod failed"),
)  # fmt: skip
_WELL: Final = frozenset({"Running", "Completed", "Succeeded", "Terminating"})
_STARTING: Final = frozenset({"ContainerCreating", "PodInitializing"})
_READY: Final = re.compile(r"(\d+)/(\d+)")
_UNTOLD: Final = frozenset({"", "pod failed", "pod pending"})
_LONGEST_DETAIL: Final = 300


def mechanism_of(*texts: str) -> str:
    """What is behind a state, reason or message; empty when none is known."""
    for text in texts:
        lowered = text.lower()
        for pattern, mechanism in _MECHANISMS:
            if re.search(pattern, lowered):
                return mechanism
    return ""


def how_telling(status: str) -> int:
    """0 for a crash, whose reason is elsewhere; 1 where nothing is said; 2 where the state says why."""
    mechanism = mechanism_of(status)
    return 0 if mechanism == "container crashes" else 1 if mechanism in _UNTOLD else 2


def pod_is_ill(ready: str, status: str) -> bool:
    """Whether a row of `kubectl get pods` is of a pod that does not do its work."""
    if status in _WELL:
        return status == "Running" and workload_is_short(ready)
    return status not in _STARTING


def workload_is_short(ready: str) -> bool:
    """Whether fewer are ready than wanted: `1/3`."""
    found = _READY.fullmatch(ready.strip())
    return found is not None and int(found[1]) < int(found[2])


def node_is_ill(status: str) -> bool:
    """Whether a row of `kubectl get nodes` is of one that takes no work for a bad reason."""
    return status.split(",", maxsplit=1)[0] != "Ready"


def owner_of(name: str, products: Collection[str]) -> str:
    """The product that an object's name is made of, the longest; empty when none is."""
    fits = [p for p in products if name == p or name.startswith((f"{p}-", f"{p}."))]
    return max(fits, key=len, default="")


def why_ill(pod: Mapping[str, JsonValue]) -> str:
    """Reasons and messages of a pod's status, the most telling first, as one line."""
    status = _of(pod, "status")
    told: list[str] = []
    for row in (*_rows(status, "initContainerStatuses"), *_rows(status, "containerStatuses")):
        for when in ("state", "lastState"):
            for state in ("waiting", "terminated"):
                told += _words(_of(_of(row, when), state))
    for condition in _rows(status, "conditions"):
        if condition.get("status") != "True":
            told += _words(condition)
    told += _words(status)
    return "; ".join(dict.fromkeys(told))[:_LONGEST_DETAIL]


def _words(state: Mapping[str, JsonValue]) -> list[str]:
    reason, message, code = state.get("reason"), state.get("message"), state.get("exitCode")
    parts = [str(part) for part in (reason, message) if part]
    if isinstance(code, int) and code:
        parts.append(f"exit code {code}")
    return [": ".join(parts)] if parts else []


def _of(value: Mapping[str, JsonValue], key: str) -> Mapping[str, JsonValue]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _rows(value: Mapping[str, JsonValue], key: str) -> list[dict[str, JsonValue]]:
    found = value.get(key)
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
