"""Each fault of an invented cluster is reported with its object and its mechanism, and once."""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.cluster_objects import (
    HASH,
    Object,
    ago,
    autoscaler,
    built,
    claim,
    container,
    deployment,
    ended,
    endpoints,
    event,
    inventory,
    mounting,
    node,
    pod,
    quota,
    running,
    service,
    unscheduled,
    volume,
    waiting,
)
from tools.analysis.cluster.finding import Finding, Impact
from tools.analysis.cluster.survey import findings
from tools.cluster_objects import ClusterEvent

POD = f"billing-{HASH}-k2m4p"
SET = f"billing-{HASH}"
GRPC = {"containers": [container(port=8080, livenessProbe={"httpGet": {"port": 8080}})]}
HASTY = {"httpGet": {"port": 8080}, "initialDelaySeconds": 1, "periodSeconds": 2,
         "failureThreshold": 1}  # fmt: skip
CRASHED = waiting("CrashLoopBackOff", lastState=ended(code=137), restartCount=4)
SHORT = deployment(ready=0, status={"replicas": 0, "unavailableReplicas": 1})
DENIED = 'Error creating: pods "billing-x" is forbidden: '
PULL = 'Failed to pull image "registry.example/app:v7": '


def faults_of(objects: Sequence[Object], events: Sequence[ClusterEvent] = ()) -> list[Finding]:
    found = findings(inventory([node(), *objects], events))
    return [one for one in found if one.impact is not Impact.RISK]


def ingress(backend: str, port: int = 80) -> Object:
    path = {"path": "/", "backend": {"service": {"name": backend, "port": {"number": port}}}}
    return built("Ingress", "billing", spec={
        "rules": [{"host": "shop.example", "http": {"paths": [path]}}]})  # fmt: skip


def policy(types: list[str], selector: Object | None = None, **rules: Any) -> Object:
    """A NetworkPolicy for all pods, or for those selected."""
    spec = {"podSelector": selector or {}, "policyTypes": types, **rules}
    return built("NetworkPolicy", "deny", spec=spec)


SERVED = (pod(), service(), endpoints("billing", "10.1.1.1"))
FAULTS: dict[str, tuple[list[Object], list[ClusterEvent], str, str, list[str]]] = {
    "image tag": (
        [deployment(ready=0), pod("billing", waiting("ErrImagePull"))],
        [event("Pod", POD, "Failed", PULL + "manifest unknown")],
        "billing", "image cannot be pulled", ["registry.example/app:v7", "tag does not exist"],
    ),
    "registry credentials": (
        [deployment(ready=0), pod("billing", waiting("ImagePullBackOff"))],
        [event("Pod", POD, "Failed", PULL + "401 Unauthorized")],
        "billing", "image cannot be pulled", ["imagePullSecrets"],
    ),
    "registry name": (
        [deployment(ready=0), pod("billing", waiting("ImagePullBackOff"))],
        [event("Pod", POD, "Failed", PULL + "dial tcp: lookup registry.example: no such host")],
        "billing", "image cannot be pulled", ["DNS"],
    ),
    "missing Secret": (
        [pod("billing", waiting("CreateContainerConfigError", 'secret "card-keys" not found'))],
        [], "billing", "secret not found", ["card-keys"],
    ),
    "missing key": (
        [pod("billing", waiting("CreateContainerConfigError",
                                "couldn't find key URL in ConfigMap fleet/billing-env"))],
        [], "billing", "key missing in configmap", ["URL", "billing-env"],
    ),
    "missing ConfigMap volume": (
        [pod("billing", waiting("ContainerCreating"))],
        [event("Pod", POD, "FailedMount", 'MountVolume.SetUp failed: configmap "rules" not found')],
        "billing", "configmap not found", ["rules"],
    ),
    "init container": (
        [pod("billing", waiting("PodInitializing"), status={
            "phase": "Pending",
            "initContainerStatuses": [waiting("CrashLoopBackOff", lastState=ended())]})],
        [], "billing", "container crashes", ["init container app", "exit code 1"],
    ),
    "out of memory": (
        [pod("billing", waiting("CrashLoopBackOff", lastState=ended("OOMKilled", 137)),
             spec={"containers": [container(resources={"limits": {"memory": "64Mi"}})]})],
        [], "billing", "out of memory", ["64Mi"],
    ),
    "HTTP probe of a gRPC port": (
        [pod("billing", CRASHED, spec=GRPC)],
        [event("Pod", POD, "Unhealthy", r"Liveness probe failed: malformed HTTP response \x00\x1e")],
        "billing", "liveness probe fails", ["gRPC"],
    ),
    "hasty liveness probe": (
        [pod("billing", CRASHED, spec={"containers": [container(livenessProbe=HASTY)]})],
        [event("Pod", POD, "Unhealthy", 'Liveness probe failed: Get "http://10.1.1.1:8080/": x')],
        "billing", "liveness probe fails", ["timing", "failure threshold 1"],
    ),
    "readiness probe of another port": (
        [pod("billing", running(ready=False),
             spec={"containers": [container(readinessProbe={"tcpSocket": {"port": 9999}})]})],
        [event("Pod", POD, "Unhealthy", "Readiness probe failed: dial tcp 10.1.1.1:9999: refused")],
        "billing", "readiness probe fails", ["port 9999", "8080"],
    ),
    "insufficient memory": (
        [unscheduled(message="0/1 nodes are available: 1 Insufficient memory.", containers=[
            container(resources={"requests": {"memory": "64Gi"}})])],
        [], "billing", "insufficient memory", ["64Gi", "8Gi"],
    ),
    "node selector": (
        [unscheduled(message="0/1 nodes: 1 node(s) didn't match Pod's node affinity/selector.",
                     nodeSelector={"disk": "nvme"})],
        [], "billing", "node selector or affinity", ["disk=nvme"],
    ),
    "taint": (
        [unscheduled(message="0/1 nodes: 1 node(s) had untolerated taint {team: ml}.")],
        [], "billing", "taint not tolerated", ["team: ml"],
    ),
    "no scheduler": (
        [unscheduled()], [], "", "kube-scheduler is probably down", ["no scheduling event"],
    ),
    "storage class": (
        [unscheduled("ledger", "pod has unbound immediate PersistentVolumeClaims",
                     **mounting("ledger-data")),
         claim(storageClassName="fastest"), built("StorageClass", "standard", "")],
        [], "ledger", "StorageClass not found", ["fastest", "standard"],
    ),
    "volume of another claim": (
        [unscheduled("ledger", "unbound PersistentVolumeClaims", **mounting("ledger-data")),
         claim(storageClassName=""),
         volume(spec={"claimRef": {"name": "archive", "namespace": "fleet"}})],
        [event("PersistentVolumeClaim", "ledger-data", "FailedBinding",
               "no persistent volumes available", type="Normal")],
        "ledger", "volume is bound to another claim", ["archive", "no persistent volumes"],
    ),
    "claim selector": (
        [unscheduled("ledger", "unbound PersistentVolumeClaims", **mounting("ledger-data")),
         claim(storageClassName="", selector={"matchLabels": {"tier": "gold"}}),
         volume(labels={"tier": "tin"})],
        [], "ledger", "claim selector matches no volume", ["tier=gold", "tier=tin"],
    ),
    "access mode of a volume": (
        [
            unscheduled("ledger", "unbound PersistentVolumeClaims", **mounting("ledger-data")),
            claim(storageClassName="", accessModes=["ReadWriteMany"]),
            volume(),
        ],
        [],
        "ledger",
        "access mode mismatch",
        ["ReadWriteMany", "ReadWriteOnce"],
    ),
    "capacity of a volume": (
        [
            unscheduled("ledger", "unbound PersistentVolumeClaims", **mounting("ledger-data")),
            claim(storageClassName="", resources={"requests": {"storage": "20Gi"}}),
            volume(),
        ],
        [],
        "ledger",
        "no volume is large enough",
        ["20Gi", "1Gi"],
    ),
    "a claim that lost its volume": (
        [pod("ledger", spec=mounting("ledger-data")), claim(phase="Lost", storageClassName="x")],
        [],
        "ledger",
        "volume claim not bound",
        ["Lost"],
    ),
    "startup probe": (
        [
            pod(
                "billing",
                CRASHED,
                spec={"containers": [container(startupProbe={"grpc": {"port": 9}})]},
            )
        ],
        [event("Pod", POD, "Unhealthy", "Startup probe failed: service 10.1.1.1:9 refused")],
        "billing",
        "startup probe fails",
        ["port 9", "8080"],
    ),
    "its own DNS server": (
        [
            pod(
                "billing",
                waiting("CrashLoopBackOff", lastState=ended(), restartCount=1),
                spec={"dnsPolicy": "None", "dnsConfig": {"nameservers": ["10.9.9.9"]}},
            )
        ],
        [],
        "billing",
        "container crashes",
        ["10.9.9.9", "dnsPolicy None"],
    ),
    "pods that do not exist": (
        [deployment(wanted=3, ready=1), pod()],
        [],
        "billing",
        "fewer ready than wanted",
        ["1 of 3", "2 of its pods do not exist"],
    ),
    "a failed pod that nothing replaces": (
        [
            pod(
                "billing",
                ownerReferences=[],
                status={"phase": "Failed", "reason": "Evicted", "message": "low on disk"},
            )
        ],
        [],
        "billing",
        "pod failed",
        ["low on disk"],
    ),
    "a Deployment none of whose pods exist": (
        [deployment(ready=0), pod("ledger")],
        [],
        "billing",
        "fewer ready than wanted",
        ["none of its pods exists"],
    ),
    "no claim": (
        [unscheduled("ledger", 'persistentvolumeclaim "ledger-data" not found',
                     **mounting("ledger-data")), quota(requests__storage=("0", "1Gi"))],
        [], "ledger", "persistentvolumeclaim not found", ["requests.storage", "quota"],
    ),
    "quota": (
        [SHORT],
        [event("ReplicaSet", SET, "FailedCreate", DENIED + "exceeded quota: small, requested: "
               "pods=1, used: pods=9, limited: pods=9")],
        "billing", "exceeded quota", ["small", "pods=9"],
    ),
    "service account": (
        [SHORT],
        [event("ReplicaSet", SET, "FailedCreate", DENIED + 'serviceaccount "robot" not found')],
        "billing", "serviceaccount not found", ["robot"],
    ),
    "webhook, minutes ago and no pod since": (
        [SHORT],
        [event("ReplicaSet", SET, "FailedCreate", 'failed calling webhook "sign"', minutes=50)],
        "billing", "admission webhook fails", ["sign"],
    ),
    "scaled to zero": (
        [deployment(wanted=0, ready=0), service(), endpoints()],
        [event("Deployment", "billing", "ScalingReplicaSet",
               "Scaled down replica set billing-x to 0 from 3", type="Normal")],
        "billing", "scaled to 0 replicas", ["to 0 from 3", "no endpoints"],
    ),
    "selector of a Service": (
        [deployment(), pod(), service(selector={"app": "billing-next"}), endpoints()],
        [], "billing", "selector matches no pod", ["app=billing-next", "app=billing"],
    ),
    "targetPort": (
        [deployment(), pod(spec={"containers": [
            container(readinessProbe={"tcpSocket": {"port": 8080}})]}),
         service(ports=[{"port": 80, "targetPort": 9090}]), endpoints("billing", "10.1.1.1")],
        [], "billing", "targetPort mismatch", ["9090", "8080"],
    ),
    "targetPort by name": (
        [deployment(), pod(), service(ports=[{"port": 80, "name": "x", "targetPort": "grpc"}]),
         endpoints()],
        [], "billing", "targetPort mismatch", ["grpc", "http"],
    ),
    "protocol": (
        [deployment(), pod(),
         service(ports=[{"port": 80, "targetPort": 8080, "protocol": "UDP"}])],
        [], "billing", "protocol mismatch", ["UDP", "TCP"],
    ),
    "no Service, quota used up": (
        [deployment(), pod(), service("ledger"), quota(services=("1", "1"))],
        [], "billing", "exceeded quota", ["services=1"],
    ),
    "kubelet": (
        [built("Node", "beta", "", status={"conditions": [
            {"type": "Ready", "status": "Unknown",
             "message": "Kubelet stopped posting node status."}]}),
         pod(spec={"nodeName": "beta"})],
        [], "", "kubelet does not report", ["beta", "billing"],
    ),
    "container runtime": (
        [built("Node", "beta", "", status={"conditions": [
            {"type": "Ready", "status": "False", "message": "container runtime is down"}]})],
        [], "", "container runtime is down", ["beta"],
    ),
    "disk pressure": (
        [node("beta", {"type": "DiskPressure", "status": "True", "message": "disk is full"})],
        [], "", "node under disk pressure", ["beta"],
    ),
    "pod network": (
        [pod("billing", waiting("ContainerCreating"))],
        [event("Pod", POD, "FailedCreatePodSandBox", "failed to setup network: cni")],
        "billing", "pod network", ["cni"],
    ),
    "failed Job": (
        [built("Job", "ledger-close", status={"conditions": [
            {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded",
             "message": "Job has reached the specified backoff limit",
             "lastTransitionTime": ago(minutes=9)}]})],
        [], "ledger", "job failed", ["backoff limit"],
    ),
    "rollout": (
        [deployment(wanted=3, ready=2, status={"conditions": [
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
             "message": "ReplicaSet has timed out progressing."}]}), pod()],
        [], "billing", "rollout does not progress", ["2 of 3", "timed out"],
    ),
    "DaemonSet": (
        [built("DaemonSet", "mailer", status={"desiredNumberScheduled": 4, "numberReady": 1}),
         pod("ledger")],
        [], "mailer", "fewer ready than wanted", ["1 of 4"],
    ),
    "DaemonSet that matches no node": (
        [built("DaemonSet", "mailer", status={"desiredNumberScheduled": 0, "numberReady": 0},
               spec={"template": {"spec": {"nodeSelector": {"disk": "fast"}}}}), pod("ledger")],
        [], "mailer", "matches no node", ["disk=fast", "1 nodes"],
    ),
    "paused rollout": (
        [deployment(wanted=3, ready=3, spec={"paused": True}, status={"updatedReplicas": 1})],
        [], "billing", "rollout is paused", ["1 of 3"],
    ),
    "suspended CronJob": (
        [built("CronJob", "ledger-close", spec={"suspend": True, "schedule": "0 * * * *"},
               status={"lastScheduleTime": ago(hours=30)}), pod("ledger")],
        [], "ledger", "CronJob is suspended", ["0 * * * *", "last run"],
    ),
    "Ingress without a Service": (
        [deployment(), *SERVED, ingress("billing-old")],
        [], "billing", "Ingress without backend", ["billing-old", "does not exist", "shop.example/"],
    ),
    "Ingress to a port that the Service does not have": (
        [deployment(), *SERVED, ingress("billing", port=8443)],
        [], "billing", "Ingress without backend", ["no port 8443"],
    ),
    "NetworkPolicy without a rule": (
        [deployment(), *SERVED, policy(["Ingress"])],
        [], "billing", "network policy denies", ["deny", "into", "Service billing"],
    ),
    "NetworkPolicy for callers that do not exist": (
        [deployment(), *SERVED, policy(
            ["Ingress"], ingress=[{"from": [{"podSelector": {"matchLabels": {"app": "gone"}}}]}])],
        [], "billing", "network policy denies", ["into"],
    ),
    "NetworkPolicy for another port": (
        [deployment(), *SERVED, policy(["Ingress"], ingress=[{"ports": [{"port": 9090}]}])],
        [], "billing", "network policy denies", ["into"],
    ),
    "NetworkPolicy that lets nothing out": (
        [deployment(), pod(), policy(["Egress"])],
        [], "billing", "network policy denies", ["out of", "DNS"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_reported_once_with_object_and_mechanism(fault: str) -> None:
    objects, events, product, mechanism, words = FAULTS[fault]
    found = faults_of(objects, events)

    assert [(one.product, one.mechanism) for one in found] == [(product, mechanism)]
    assert [word for word in words if word not in found[0].reason] == []


PATIENT = {"containers": [container(readinessProbe={"tcpSocket": {"port": 8080},
                                                    "initialDelaySeconds": 120})]}  # fmt: skip
FROM_SHOP = [{"from": [{"podSelector": {"matchLabels": {"app": "billing"}}}]}]
LOOK_ALIKES: dict[str, tuple[list[Object], list[ClusterEvent]]] = {
    "a policy that denies beside one that allows": (
        [deployment(), *SERVED, policy(["Ingress"]), policy(["Ingress"], ingress=FROM_SHOP)], []),
    "a policy with an empty rule, which allows all": (
        [deployment(), *SERVED, policy(["Ingress"], ingress=[{}])], []),
    "a policy for callers of other namespaces": (
        [deployment(), *SERVED, policy(
            ["Ingress"], ingress=[{"from": [{"namespaceSelector": {}}]}])], []),
    "a policy for a named port and a range": (
        [deployment(), *SERVED, policy(["Ingress"], ingress=[
            {"ports": [{"port": "http"}, {"port": 9000, "endPort": 9100}]}])], []),
    "a policy for other pods": (
        [deployment(), *SERVED, policy(["Ingress"], {"matchLabels": {"app": "x"}})], []),
    "a policy that an expression selects by": (
        [deployment(), *SERVED, policy(["Ingress"], {"matchExpressions": [
            {"key": "app", "operator": "In", "values": ["x"]}]})], []),
    "denied pods that no Service leads to": ([deployment(), pod(), policy(["Ingress"])], []),
    "an Ingress to a Service": ([deployment(), *SERVED, ingress("billing")], []),
    "an Ingress without rules": ([deployment(), *SERVED, built("Ingress", "billing", spec={})], []),
    "a DaemonSet for nodes that are not there, of no product": (
        [built("DaemonSet", "gpu-driver", status={"desiredNumberScheduled": 0},
               spec={"template": {"spec": {"nodeSelector": {"gpu": "yes"}}}}), pod()], []),
    "a paused rollout that is complete": (
        [deployment(wanted=2, ready=2, spec={"paused": True}, status={"updatedReplicas": 2}), pod()],
        []),
    "a CronJob that was suspended long ago": (
        [built("CronJob", "ledger-close", spec={"suspend": True},
               status={"lastScheduleTime": ago(days=40)}), pod("ledger")], []),
    "a CronJob that runs": (
        [built("CronJob", "ledger-close", spec={"suspend": False},
               status={"lastScheduleTime": ago(hours=1)}), pod("ledger")], []),
    "a Service without a selector": ([built("Service", "legacy", spec={"ports": [{"port": 1}]})], []),
    "an ExternalName": (
        [service(type="ExternalName", externalName="db.example", selector={"app": "x"})], []),
    "scaled to zero by an autoscaler": (
        [deployment(wanted=0, ready=0), service(), endpoints(), autoscaler()], []),
    "a completed Job": (
        [built("Job", "ledger-close", status={"conditions": [
            {"type": "Complete", "status": "True"}]}),
         pod("ledger", running(ready=False, state=ended(code=0)),
             status={"phase": "Succeeded"})], []),
    "a rollout in progress": (
        [deployment(wanted=2, ready=1, status={"conditions": [
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated"}]}),
         pod(), pod("billing", running(0.3, ready=False), name=f"billing-{HASH}-zzzzz")], []),
    "a StatefulSet that starts one pod after the other": (
        [
            deployment(kind="StatefulSet", wanted=3, ready=0),
            pod(
                "billing",
                running(0.2, ready=False),
                ownerReferences=[{"kind": "StatefulSet", "name": "billing", "controller": True}],
            ),
        ],
        [],
    ),
    "a pod whose probe has time left": (
        [pod("billing", running(1.5, ready=False), spec=PATIENT)],
        [event("Pod", POD, "Unhealthy", "Readiness probe failed: refused")]),
    "a pod just created": (
        [unscheduled() | {"metadata": {"name": POD, "namespace": "fleet",
                                       "creationTimestamp": ago(seconds=5)}}], []),
    "a pod that stops": (
        [pod() | {"metadata": {"name": POD, "namespace": "fleet",
                               "deletionTimestamp": ago(seconds=20)}}], []),
    "restarts of yesterday": (
        [pod("billing", running(1400, restartCount=9, lastState=ended(minutes=1400)))], []),
    "restarts while it started, ready since": (
        [pod("billing", running(8, restartCount=3, lastState=ended(minutes=9)))],
        [event("Pod", POD, "BackOff", "Back-off restarting failed container", minutes=9)]),
    "a refusal that is over": (
        [deployment(), pod()],
        [event("ReplicaSet", SET, "FailedCreate", DENIED + 'serviceaccount "robot" not found')]),
    "a claim that waits for its first pod": ([claim(storageClassName="standard")], []),
    "a cordoned node": ([node("beta", unschedulable=True)], []),
    "a named port that its endpoints have": (
        [deployment(), pod(spec={"containers": [{"name": "app", "ports": [
            {"containerPort": 8080}]}]}),
         service(ports=[{"name": "web", "port": 80, "targetPort": "http"}]),
         endpoints("billing", "10.1.1.1")], []),
    "a Service of a preview without pods": (
        [deployment(), pod(), service(), service("billing-preview")], []),
    "a worker without a Service": ([deployment(), pod(), service("ledger")], []),
    "an autoscaler at its maximum": (
        [deployment(), pod(), autoscaler("billing", {
            "type": "ScalingLimited", "status": "True", "reason": "TooManyReplicas"})], []),
    "an evicted pod that was replaced": (
        [deployment(), pod(), pod(name="billing-old", status={
            "phase": "Failed", "reason": "Evicted", "containerStatuses": []})], []),
}  # fmt: skip


@pytest.mark.parametrize("look_alike", LOOK_ALIKES)
def test_a_healthy_look_alike_is_not_a_fault(look_alike: str) -> None:
    objects, events = LOOK_ALIKES[look_alike]

    assert faults_of(objects, events) == []


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (autoscaler("billing", {"type": "ScalingActive", "status": "False",
                                "reason": "FailedGetResourceMetric", "message": "no metrics"}),
         "cannot scale: no metrics"),
        (built("PodDisruptionBudget", "billing-pdb", status={"currentHealthy": 1,
                                                             "desiredHealthy": 2}),
         "1 healthy pods, 2 required"),
        (node("beta", unschedulable=True), "SchedulingDisabled"),
    ],
)  # fmt: skip
def test_a_fault_without_impact_is_a_risk(one: Object, words: str) -> None:
    (found,) = findings(inventory([node(), one]))

    assert found.impact is Impact.RISK
    assert words in found.reason


@pytest.mark.parametrize(
    ("objects", "impact"),
    [
        ([deployment(wanted=0, ready=0), service(), endpoints()], Impact.UNSURE),
        ([pod(), service(ports=[{"port": 80, "targetPort": 9090}])], Impact.UNSURE),
        ([pod("billing", CRASHED), pod(name=f"billing-{HASH}-zzzzz")], Impact.DEGRADED),
        ([pod("billing", CRASHED)], Impact.DOWN),
    ],
)
def test_an_impact_is_no_surer_than_its_evidence(objects: list[Object], impact: Impact) -> None:
    assert [one.impact for one in faults_of(objects)] == [impact]


def test_pods_with_the_same_failure_are_one_finding() -> None:
    pods = [pod("billing", CRASHED, name=f"billing-{HASH}-{n}") for n in range(7)]

    assert [one.objects for one in faults_of(pods)] == [7]


def test_a_partly_read_kind_proves_no_absence() -> None:
    objects = [node(), pod("ledger"), service(selector={"app": "next"})]
    known: dict[str, Any] = {"known": {"partial": frozenset({"Pod"})}}

    assert findings(inventory(objects, **known)) == []


def test_causes_come_before_other_products_and_before_risks() -> None:
    lost = built("Node", "beta", "", status={"conditions": [{"type": "Ready", "status": "False"}]})
    objects = [pod("foreign", CRASHED), pod("mailer", CRASHED), autoscaler(), lost]
    found = findings(inventory(objects))

    assert [one.workload for one in found][:3] == ["beta", "mailer", "foreign"]
