"""The cause of a Kubernetes state, reason or message, in a few words.

States: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/ and the kubelet's event
reasons, https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/events/event.go
"""

import re
from collections.abc import Sequence
from typing import Final

# A state or reason, in lower case, to its cause.
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


def mechanism_of(*texts: str) -> str:
    """The cause of a state, reason or message; empty if unknown."""
    for text in texts:
        lowered = text.lower()
        for pattern, mechanism in _MECHANISMS:
            if re.search(pattern, lowered):
                return mechanism
    return ""
