"""The kinds that may be read, by every name people give them, and where the API keeps them.

Secrets are not here, and nothing that is not here can be asked for.
"""

import re
from dataclasses import dataclass
from typing import Final

from tools.errors import InvalidArguments

# RFC 1123, as the API server checks names; a name that fits cannot leave its place in a path.
EVERYWHERE: Final = "*"
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SELECTOR: Final = re.compile(r"[A-Za-z0-9._/=!,() -]{1,500}")


@dataclass(frozen=True, slots=True)
class Kind:
    """`group` is its part of the path: `api/v1` or `apis/apps/v1`."""

    name: str
    plural: str
    group: str
    short: tuple[str, ...] = ()
    namespaced: bool = True

    def path(self, namespace: str = "", name: str = "") -> str:
        """Of one object, of those of a namespace, or of all. Raises InvalidArguments."""
        parts = [self.group]
        if namespace and namespace != EVERYWHERE and self.namespaced:
            parts += ["namespaces", checked_namespace(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(checked_name(name))
        return "/" + "/".join(parts)


KINDS: Final = (
    Kind("Pod", "pods", "api/v1", ("po",)),
    Kind("Service", "services", "api/v1", ("svc",)),
    Kind("Endpoints", "endpoints", "api/v1", ("ep",)),
    Kind("ConfigMap", "configmaps", "api/v1", ("cm",)),
    Kind("PersistentVolumeClaim", "persistentvolumeclaims", "api/v1", ("pvc",)),
    Kind("ResourceQuota", "resourcequotas", "api/v1", ("quota",)),
    Kind("Node", "nodes", "api/v1", ("no",), namespaced=False),
    Kind("Namespace", "namespaces", "api/v1", ("ns",), namespaced=False),
    Kind("PersistentVolume", "persistentvolumes", "api/v1", ("pv",), namespaced=False),
    Kind("Deployment", "deployments", "apis/apps/v1", ("deploy",)),
    Kind("ReplicaSet", "replicasets", "apis/apps/v1", ("rs",)),
    Kind("StatefulSet", "statefulsets", "apis/apps/v1", ("sts",)),
    Kind("DaemonSet", "daemonsets", "apis/apps/v1", ("ds",)),
    Kind("Job", "jobs", "apis/batch/v1"),
    Kind("CronJob", "cronjobs", "apis/batch/v1", ("cj",)),
    Kind("Ingress", "ingresses", "apis/networking.k8s.io/v1", ("ing",)),
    Kind("NetworkPolicy", "networkpolicies", "apis/networking.k8s.io/v1", ("netpol",)),
    Kind("HorizontalPodAutoscaler", "horizontalpodautoscalers", "apis/autoscaling/v2", ("hpa",)),
    Kind("PodDisruptionBudget", "poddisruptionbudgets", "apis/policy/v1", ("pdb",)),
)
_BY_NAME: Final = {
    name: kind for kind in KINDS for name in (kind.name.lower(), kind.plural, *kind.short)
}


def kind_of(text: str) -> Kind:
    """Raises InvalidArguments, listing what there is."""
    kind = _BY_NAME.get(text.strip().lower())
    if kind is not None:
        return kind
    if text.strip().lower() in {"secret", "secrets"}:
        raise InvalidArguments("kind: secrets are never shown")
    raise InvalidArguments(
        f"kind: not readable here; kinds are {', '.join(k.plural for k in KINDS)}"
    )


def checked_name(text: str) -> str:
    """The name. Raises InvalidArguments unless it is RFC 1123's."""
    if _NAME.fullmatch(text) is None or ".." in text:
        raise InvalidArguments("name: lower-case letters, digits, '-' and '.', at most 253")
    return text


def checked_namespace(text: str) -> str:
    """The namespace. Raises InvalidArguments unless it is an RFC 1123 label."""
    if _NAMESPACE.fullmatch(text) is None:
        raise InvalidArguments("namespace: lower-case letters, digits and '-', at most 63")
    return text


def checked_selector(text: str) -> str:
    """The label selector. Raises InvalidArguments for what cannot be one."""
    if text and _SELECTOR.fullmatch(text) is None:
        raise InvalidArguments("selector: labels such as app=checkout,tier!=cache")
    return text
