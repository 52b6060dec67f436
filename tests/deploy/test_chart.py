"""`make deploy-check`: the chart, rendered by Helm, against Kubernetes' own schemas and the restricted standard."""

from typing import Any

import kubernetes_validate
import pytest

from tests.deploy.charted import Object, Refused, of_kind, rendered
from tests.unit.test_deployment import reads_of

pytestmark = pytest.mark.deploy

EVERYTHING: Object = {
    "kubernetes": {
        "enabled": True,
        "extraRules": [
            {"apiGroups": ["argoproj.io"], "resources": ["rollouts"], "verbs": ["get", "list"]}
        ],
    },
    "networkPolicy": {
        "ingress": {"from": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}]},
        "egress": {
            "backends": [{"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}], "ports": [9090, 3100]}]
        },
    },
    "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "image": {"repository": "registry.example/kortex", "digest": f"sha256:{'0a' * 32}"},
    "imagePullSecrets": [{"name": "pull"}],
    "existingConfigMap": "",
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "extraVolumes": [{"name": "plugins", "configMap": {"name": "plugins"}}],
    "extraVolumeMounts": [{"name": "plugins", "mountPath": "/etc/kortex-plugins"}],
    "service": {"type": "LoadBalancer", "port": 80, "annotations": {"example/a": "b"}},
    "serviceAccount": {"create": True, "name": "reader", "annotations": {"example/role": "r"}},
    "podAnnotations": {"a": "b"},
    "podLabels": {"team": "sre"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "affinity": {"podAntiAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    ],
    "priorityClassName": "high",
}
NAMESPACED: Object = {"kubernetes": {"enabled": True, "namespaces": ["shop", "payments"]}}
VALUES = [
    pytest.param({}, id="defaults"),
    pytest.param(EVERYTHING, id="everything"),
    pytest.param(NAMESPACED, id="namespaces"),
    pytest.param({"existingConfigMap": "own", "networkPolicy": {"enabled": False}}, id="own map"),
]
# https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted
ALLOWED_VOLUMES = {
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret",
}  # fmt: skip


@pytest.mark.parametrize("version", ["1.27", "1.37"])
@pytest.mark.parametrize("values", VALUES)
def test_every_object_is_valid_for_kubernetes(values: Object, version: str) -> None:
    for one in rendered(values):
        if one["kind"] != "PodMonitor":  # of the Prometheus operator, not of Kubernetes
            kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.parametrize("values", VALUES)
def test_the_pods_pass_the_restricted_standard(values: Object) -> None:
    (deployment,) = of_kind(rendered(values), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert {
        kind for volume in pod["volumes"] for kind in volume.keys() - {"name"}
    } <= ALLOWED_VOLUMES
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65532
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in (*pod["initContainers"], *pod["containers"]):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert not {"privileged", "procMount", "seLinuxOptions", "runAsUser"} & context.keys()
        assert not [port for port in container.get("ports", []) if "hostPort" in port]


def test_each_worker_is_scraped_on_its_own_port() -> None:
    objects = rendered(EVERYTHING | {"workers": 2})
    (deployment,), (monitor,) = of_kind(objects, "Deployment"), of_kind(objects, "PodMonitor")
    (policy,) = of_kind(objects, "NetworkPolicy")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    named = {port["name"]: port["containerPort"] for port in container["ports"]}

    assert named == {"http": 3000, "own-3001": 3001, "own-3002": 3002}
    scraped = [each["port"] for each in monitor["spec"]["podMetricsEndpoints"]]
    assert scraped == ["own-3001", "own-3002"]
    assert [each["port"] for each in policy["spec"]["ingress"][0]["ports"]] == [3000, 3001, 3002]


def test_both_security_contexts_can_be_overridden() -> None:
    values = {
        "podSecurityContext": {"runAsUser": None, "runAsGroup": None, "fsGroup": None},
        "securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "a.json"}},
    }
    (deployment,) = of_kind(rendered(values), "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"].keys() == {"runAsNonRoot", "seccompProfile"}
    for container in (*pod["initContainers"], *pod["containers"]):
        assert container["securityContext"]["seccompProfile"]["type"] == "Localhost"
        assert container["securityContext"]["allowPrivilegeEscalation"] is False


def test_the_role_allows_only_what_the_tools_read() -> None:
    (role,) = of_kind(rendered({"kubernetes": {"enabled": True}}), "ClusterRole")
    assert reads_of(role["rules"]) == reads_of(role["rules"], verbs={"get", "list"})
    assert not [rule for rule in role["rules"] if "secrets" in rule["resources"]]
    (everything,) = of_kind(rendered(EVERYTHING), "ClusterRole")
    assert EVERYTHING["kubernetes"]["extraRules"][0] in everything["rules"]


def test_named_namespaces_limit_the_role() -> None:
    objects = rendered(NAMESPACED)
    roles, bindings = of_kind(objects, "Role"), of_kind(objects, "RoleBinding")
    assert {one["metadata"]["namespace"] for one in roles} == {"shop", "payments"}
    assert {one["metadata"]["namespace"] for one in bindings} == {"shop", "payments"}
    assert {one["subjects"][0]["namespace"] for one in bindings} == {"ops"}
    assert not of_kind(objects, "ClusterRole")
    assert not [
        one
        for role in roles
        for rule in role["rules"]
        for one in rule["resources"]
        if one == "nodes"
    ]


@pytest.mark.parametrize(
    "config",
    ["  [slack]\n[http]\n", 'a = "{{ .Values.image }}"\n', "\tb = '<&>'\n\n\n", 'c = "ü\u2028"'],
)
def test_the_configuration_arrives_unchanged(config: str) -> None:
    (written,) = of_kind(rendered({"config": config}), "ConfigMap")
    assert written["data"] == {"kortex.toml": config}


def test_without_kubernetes_the_chart_creates_no_rights_and_no_token() -> None:
    objects = rendered({})
    (deployment,) = of_kind(objects, "Deployment")
    assert deployment["spec"]["template"]["spec"]["automountServiceAccountToken"] is False
    assert not [one for one in objects if "Role" in one["kind"]]


def test_the_network_policy_names_every_destination() -> None:
    (policy,) = of_kind(rendered(EVERYTHING), "NetworkPolicy")
    spec = policy["spec"]
    ports = [[port["port"] for port in rule["ports"]] for rule in spec["egress"]]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert ports == [[53, 53], [5432], [443], [443, 6443], [9090, 3100]]
    assert spec["ingress"][0]["ports"] == [{"port": 3000, "protocol": "TCP"}]
    (closed,) = of_kind(rendered({}), "NetworkPolicy")
    assert closed["spec"]["ingress"] == []
    public = closed["spec"]["egress"][2]["to"][0]["ipBlock"]
    assert "169.254.0.0/16" in public["except"]  # where clouds hand out the node's credentials


@pytest.mark.parametrize(
    "values",
    [
        {"replicas": 3},
        {"http": {"port": 80}},
        {"http": {"port": "3000"}},
        {"image": {"digest": "latest"}},
        {"secrets": {"existing": ""}},
        {"env": [{"name": "TOKEN", "secret": "xoxb"}]},
        {"kubernetes": {"enabled": True, "namespaces": ["Shop"]}},
        *(
            {"kubernetes": {"enabled": True, "extraRules": [rule]}}
            for rule in (
                {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["*"], "verbs": ["get"]},
                {"apiGroups": ["*"], "resources": ["rollouts"], "verbs": ["get"]},
                {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]},
                {"apiGroups": ["argoproj.io"], "resources": ["rollouts"], "verbs": ["patch"]},
            )
        ),
    ],
    ids=str,
)
def test_meaningless_and_excessive_values_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        rendered(values)
