"""Why a container does not run: its image, its configuration, its crash, its probes."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from tools.analysis.cluster.fields import (
    instant_at,
    mapping_at,
    name_of,
    namespace_of,
    number_at,
    rows_at,
    text_at,
    value_at,
)
from tools.analysis.cluster.finding import Impact
from tools.analysis.cluster.inventory import (
    Inventory,
    declared_ports,
    message_of,
    port_of_probe,
)
from tools.cluster_objects import ClusterEvent, KubernetesObject

PROBES: Final = {
    "liveness": "livenessProbe",
    "readiness": "readinessProbe",
    "startup": "startupProbe",
}
_PULLING: Final = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull",
     "RegistryUnavailable", "ImageInspectError"}
)  # fmt: skip
_CONFIGURING: Final = frozenset(
    {"CreateContainerConfigError", "CreateContainerError", "RunContainerError",
     "ContainerCannotRun", "StartError", "PostStartHookError"}
)  # fmt: skip
STARTING: Final = frozenset({"", "ContainerCreating", "PodInitializing"})
_KILLED: Final = frozenset({137, 143})  # by a signal: an OOM kill, or the kubelet after a probe
_RECOVERED: Final = timedelta(minutes=5)  # without another crash: the longest back-off
_PROBED_LATELY: Final = timedelta(minutes=10)
_MISSING: Final = re.compile(
    r"(?i)\b(secret|configmap|serviceaccount|persistentvolumeclaim) \"?([\w./-]+)\"? not found"
)
_NO_KEY: Final = re.compile(r"(?i)couldn't find key ([\w./-]+) in (secret|configmap) ([\w./-]+)")
_BINARY: Final = re.compile(r"(malformed HTTP response).*", re.DOTALL)  # bytes say nothing
_RUNTIME: Final = re.compile(r"(?:containerd|docker|crio|cri-dockerd)\.sock")
_MOUNTS: Final = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_SANDBOX: Final = ("FailedCreatePodSandBox", "NetworkNotReady")
# A registry's refusals, the most specific first.
_PULL_ERRORS: Final[Sequence[tuple[str, str]]] = (
    (r"no such host|server misbehaving|name resolution|dial tcp: lookup",
     "the registry's name does not resolve (DNS)"),
    (r"unauthorized|authentication|authoriz|denied|forbidden|\b40[13]\b|no basic auth",
     "the registry denies access: credentials (imagePullSecrets) are missing or wrong"),
    (r"x509|certificate", "the registry's certificate is not trusted"),
    (r"toomanyrequests|too many requests|rate limit|\b429\b", "the registry's rate limit is reached"),
    (r"timeout|deadline exceeded|connection refused|i/o", "the registry cannot be reached"),
    (r"no space left", "the node's disk is full"),
    (r"no match for platform|exec format", "the image is built for another platform"),
    (r"not found|manifest unknown|does not exist|invalid", "the image or its tag does not exist"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trouble:
    """A pod's fault, and its impact if the pod were the only one.

    `crashed` is the container whose log says more.
    """

    state: str
    mechanism: str
    reason: str
    crashed: str = ""
    impact: Impact = Impact.DOWN


def trouble_of(
    pod: KubernetesObject, row: KubernetesObject, cluster: Inventory, *, is_init: bool = False
) -> Trouble | None:
    """Of one container status; None where the container runs, ended well or is starting."""
    if row.get("ready") is True and not is_init:
        return None
    name, who = text_at(row, "name"), "init container" if is_init else "container"
    waiting, ended = mapping_at(row, "state", "waiting"), mapping_at(row, "state", "terminated")
    reason = text_at(waiting, "reason")
    if reason in _PULLING:
        return _pull(pod, row, reason, cluster)
    if reason in _CONFIGURING:
        return _configuration(pod, row, reason, cluster)
    if ended and number_at(ended, "exitCode") == 0:
        return None if is_init or reason else _restarting(pod, row, cluster)
    if reason == "CrashLoopBackOff" or ended:
        return _crash(pod, row, f"{who} {name}", cluster)
    if reason not in STARTING:
        return Trouble(reason, "container cannot be started", text_at(waiting, "message") or reason)
    return None


def stuck(pod: KubernetesObject, cluster: Inventory) -> Trouble | None:
    """Why a scheduled pod's containers are not created: volumes, network, image still pulled."""
    for reasons, mechanism in ((_MOUNTS, "volume cannot be mounted"), (_SANDBOX, "pod network")):
        if event := next(iter(_events(pod, cluster, *reasons)), None):
            said = message_of(event)
            runtime = "container runtime is down" if _RUNTIME.search(said) else ""
            return Trouble("ContainerCreating", missing_object(said) or runtime or mechanism, said)
    return None


def missing_object(said: str) -> str:
    """`secret not found`, `key missing in configmap`; empty where nothing is said to be missing."""
    key = _NO_KEY.search(said)
    if key:
        return f"key missing in {key[2].lower()}"
    found = _MISSING.search(said)
    return f"{found[1].lower()} not found" if found else ""


def failing_probe(
    pod: KubernetesObject, cluster: Inventory, kinds: Sequence[str]
) -> tuple[str, str] | None:
    """Which probe fails, and how; by the newest event of these kinds of probes."""
    for event in _events(pod, cluster, "Unhealthy", "ProbeWarning"):
        if cluster.is_older_than(event.at, _PROBED_LATELY):
            continue
        said = _BINARY.sub(r"\1", message_of(event))
        kind = next((one for one in kinds if said.lower().startswith(f"{one} probe")), "")
        if kind:
            return kind, "; ".join((said, *_about_probe(pod, kind, said)))
    return None


def restarted(pod: KubernetesObject, row: KubernetesObject, cluster: Inventory) -> Trouble | None:
    """A container that runs again since minutes: for want of memory, or again and again."""
    last, restarts = mapping_at(row, "lastState", "terminated"), number_at(row, "restartCount") or 0
    since = instant_at(row, "state", "running", "startedAt")
    if since is None or cluster.is_older_than(since, _RECOVERED) or not number_at(last, "exitCode"):
        return None
    out_of_memory = text_at(last, "reason") == "OOMKilled"
    probe = failing_probe(pod, cluster, ("liveness", "startup"))
    if not (out_of_memory or restarts >= 2 or (restarts and probe)):
        return None
    found = _crash(pod, row, f"container {text_at(row, 'name')}", cluster)
    return replace(found, impact=Impact.DEGRADED if row.get("ready") is True else Impact.DOWN)


def _pull(pod: KubernetesObject, row: KubernetesObject, state: str, cluster: Inventory) -> Trouble:
    events = _events(pod, cluster, "Failed", "FailedToRetrieveImagePullSecret", "InspectFailed")
    said = next((m for e in events if "pull image" in (m := message_of(e)).lower()), "")
    said = said or text_at(row, "state", "waiting", "message") or state
    lowered = said.lower()
    why = next((words for pattern, words in _PULL_ERRORS if re.search(pattern, lowered)), "")
    secret = next((message_of(e) for e in events if "ImagePullSecret" in e.reason), "")
    image = text_at(row, "image") or _image(pod, text_at(row, "name"))
    parts = (f"image pull of {image} fails" + (f": {why}" if why else ""), secret, _end_of(said))
    return Trouble(state, "image cannot be pulled", "; ".join(part for part in parts if part))


def _image(pod: KubernetesObject, container: str) -> str:
    rows = rows_at(pod, "spec", "containers")
    return next((text_at(one, "image") for one in rows if one.get("name") == container), "")


def _end_of(said: str) -> str:
    first = re.search(r'(?i)pull image "([^"]*)"', said)
    end = re.split(r'(?:resolve reference|pull and unpack image|pull image) "[^"]*":?\s*', said)[-1]
    return f'"{first[1]}": {end}' if first and end else said


def _configuration(
    pod: KubernetesObject, row: KubernetesObject, state: str, cluster: Inventory
) -> Trouble:
    said = text_at(row, "state", "waiting", "message")
    if not said:
        events = _events(pod, cluster, "Failed", "FailedPostStartHook")
        said = next((message_of(event) for event in events), state)
    return Trouble(state, missing_object(said) or "container cannot be started", said)


def _restarting(pod: KubernetesObject, row: KubernetesObject, cluster: Inventory) -> Trouble | None:
    """A container that ended with 0, though its pod is to run on."""
    if text_at(pod, "spec", "restartPolicy") in {"Never", "OnFailure"}:
        return None
    return _crash(pod, row, f"container {text_at(row, 'name')}", cluster)


def _crash(pod: KubernetesObject, row: KubernetesObject, who: str, cluster: Inventory) -> Trouble:
    state = text_at(row, "state", "waiting", "reason")
    ended = mapping_at(row, "state", "terminated") or mapping_at(row, "lastState", "terminated")
    code, why = number_at(ended, "exitCode"), text_at(ended, "reason")
    restarts = number_at(row, "restartCount") or 0
    times = f", restarted {restarts} time{'' if restarts == 1 else 's'}" if restarts else ""
    state = state or why or "Running"
    times += _own_dns(pod)
    said = f"{who} ended" + (f" with exit code {code}" if code is not None else "") + times
    if why == "OOMKilled":
        limit = _limit(pod, text_at(row, "name"))
        return Trouble(state, "out of memory", f"{said}: OOMKilled, it exceeded its memory{limit}")
    probe = failing_probe(pod, cluster, ("liveness", "startup"))
    if probe is not None and (code is None or code in _KILLED):
        kind, how = probe
        return Trouble(state, f"{kind} probe fails", f"{said}, killed by its {kind} probe: {how}")
    message = text_at(ended, "message")
    said = f"{said}: {message}" if message else said
    return Trouble(state, "container crashes", said, text_at(row, "name"))


def _own_dns(pod: KubernetesObject) -> str:
    """That it does not use the cluster's DNS, without which no Service's name resolves."""
    servers = value_at(pod, "spec", "dnsConfig", "nameservers")
    if text_at(pod, "spec", "dnsPolicy") != "None" or not isinstance(servers, list):
        return ""
    return f", resolves names by its own DNS server {', '.join(map(str, servers))} (dnsPolicy None)"


def _limit(pod: KubernetesObject, name: str) -> str:
    found = (
        text_at(row, "resources", "limits", "memory")
        for row in rows_at(pod, "spec", "containers")
        if text_at(row, "name") == name
    )
    limit = next(found, "")
    return f" (limit {limit})" if limit else ""


def _about_probe(pod: KubernetesObject, kind: str, said: str) -> Iterator[str]:
    if "malformed HTTP" in said:
        yield f"the {kind} probe speaks HTTP to a port with another protocol, such as gRPC"
    ports = sorted({number for number, _, _ in declared_ports(mapping_at(pod, "spec"))})
    for container in rows_at(pod, "spec", "containers"):
        probe = mapping_at(container, PROBES[kind])
        port = port_of_probe(probe)
        asked = port is not None and (f":{port}" in said or f":{port}/" in said)
        if isinstance(port, int) and ports and port not in ports and asked:
            listed = ", ".join(map(str, ports))
            yield f"the {kind} probe asks port {port}, the container's port is {listed}"
        if kind != "readiness" and asked and (patience := _patience(probe)) < _LEAST_PATIENCE_S:
            yield (
                f"the {kind} probe's timing is short: the container is killed "
                f"{patience} s after its start (initial delay {number_at(probe, 'initialDelaySeconds') or 0} s, "
                f"period {number_at(probe, 'periodSeconds') or 10} s, "
                f"failure threshold {number_at(probe, 'failureThreshold') or 3})"
            )


_LEAST_PATIENCE_S: Final = 15


def _patience(probe: KubernetesObject) -> int:
    """Seconds from the container's start until failures of this probe end it."""
    delay = number_at(probe, "initialDelaySeconds") or 0
    period = number_at(probe, "periodSeconds") or 10
    return delay + period * (number_at(probe, "failureThreshold") or 3)


def _events(pod: KubernetesObject, cluster: Inventory, *reasons: str) -> Sequence[ClusterEvent]:
    return cluster.events_of("Pod", namespace_of(pod), name_of(pod), *reasons)
